package serde

import "fmt"

// Header is one record header. Keys may repeat; order counts.
//
// Header slices are shared between records and must not be modified in place: copy, then change.
type Header struct {
	Key   string
	Value []byte // nil is a null value
}

// String is key=value, for logs and the messages of tests.
func (h Header) String() string { return fmt.Sprintf("%s=%q", h.Key, h.Value) }
