package plan

import "fmt"

// maxName is the longest legal name of a Kafka topic, and so of everything that a topic is named after.
const maxName = 249

// CheckName tells whether name can name a node or a store. The rule is that of Kafka topics, since topics are named after both.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name is empty")
	case name == "." || name == "..":
		return fmt.Errorf("the name can't be %q", name)
	case len(name) > maxName:
		return fmt.Errorf("the name has %d characters, more than %d: %s", len(name), maxName, name)
	}
	for _, c := range []byte(name) {
		if !legal(c) {
			return fmt.Errorf("the name %q has a character other than ASCII letters, digits, '.', '_' and '-'", name)
		}
	}
	return nil
}

func legal(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}
