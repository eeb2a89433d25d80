package serde

// Header is one record header. Keys may repeat; order counts.
//
// Header slices are shared between records and must not be modified in place: copy, then change.
type Header struct {
	Key   string
	Value []byte // nil is a null value
}
