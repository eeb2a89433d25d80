package delta

import (
	"fmt"
	"strings"
)

// UnsupportedError says which demands of a table this package can't meet, and what to do.
type UnsupportedError struct {
	Table    string
	Verb     string   // "read" or "write"
	Features []string // table features, protocol versions or constraints, by name, with the column where there is one
	Advice   string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("table %s: can't %s it: it uses %s; %s", e.Table, e.Verb, strings.Join(e.Features, ", "), e.Advice)
}
