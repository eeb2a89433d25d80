package state

import "github.com/tributary-io/tributary/serde"

// Header is a record header. A nil Value is a null value.
type Header = serde.Header

// Context describes the record being processed. The task owns one, binds it to its DB once (see DB.Bind) and updates it before
// each record and punctuation; stores read it when they write changelog records.
//
// Headers, and the bytes in them, are copied by the stores that keep them.
type Context struct {
	Timestamp int64 // of the record, milliseconds since the epoch
	Offset    int64
	Partition int32
	Topic     string
	Headers   []Header
}
