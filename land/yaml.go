package land

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// addresses are brokers, as a list or as one text with commas.
type addresses []string

func (a *addresses) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*a = strings.Split(n.Value, ",")
		return nil
	}
	return n.Decode((*[]string)(a))
}

// span is a length of time, such as 168h or 7d.
type span time.Duration

func (s *span) UnmarshalYAML(n *yaml.Node) error {
	d, err := time.ParseDuration(n.Value)
	if days, ok := strings.CutSuffix(n.Value, "d"); ok && err != nil {
		var count int64
		count, err = strconv.ParseInt(days, 10, 16) // 89 years: more than a duration's hours hold is far beyond
		d = time.Duration(count) * 24 * time.Hour
	}
	if err != nil || d < 0 {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %q is no length of time: write it like 168h or 7d", n.Line, n.Value)}}
	}
	*s = span(d)
	return nil
}

var (
	unknownKey = regexp.MustCompile(`field (\S+) not found in type \S+`)
	wrongType  = regexp.MustCompile("cannot unmarshal !!\\S+ (`[^`]*`) into (\\S+)")
)

// inOwnWords says what is wrong in a file without Go's names for it.
func inOwnWords(err error) error {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return err
	}
	var errs []error
	for _, text := range wrong.Errors {
		text = unknownKey.ReplaceAllString(text, `unknown key "$1"`)
		text = wrongType.ReplaceAllString(text, "$1 can't stand here: a value of type $2 is needed")
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}
