package delta

import "fmt"

// SchemaChangeError names a change of schema that can't be made in place.
type SchemaChangeError struct {
	Path   string // dotted; "element", "key" and "value" for the insides of arrays and maps
	Reason string // names both types
}

func (e *SchemaChangeError) Error() string {
	return fmt.Sprintf("column %s: %s; land the stream in a new table, or keep the declared column as it was", e.Path, e.Reason)
}
