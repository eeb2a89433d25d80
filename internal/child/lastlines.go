package child

import "strings"

// LastLines is the end of what a process has said: at most its last n lines, for an error that tells why it ended.
func LastLines(said string, n int) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
