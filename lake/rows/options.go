package rows

import (
	"github.com/tributary-io/tributary/lake/columns/avrorows"
	"github.com/tributary-io/tributary/lake/columns/protorows"
)

// Format says how values that are []byte are encoded.
type Format uint8

// The formats of values. In all of them an Avro schema declares the columns.
const (
	Avro Format = iota
	JSON
	Protobuf
)

// Options say what the rows of a stream look like.
type Options struct {
	KeyName    string          // of the key's column; empty for none
	ValueName  string          // of the column of values that are not structs
	Source     bool            // add the columns of the source record
	RunID      string          // what lands the rows; empty for no columns of the run
	AvroValue  *avrorows.Text  // values are []byte, in Avro unless Format says otherwise, declared by this schema
	AvroSource avrorows.Source // gives the schemas that values were written with; nil for bare Avro of the declared schema
	Format     Format          // of the bytes, where AvroValue declares their columns
	Protobuf   protorows.Source
	AvroHints  *avrorows.Text // declares the columns of struct values further than Go types can
	LocalAsUTC bool           // store Avro's local timestamps as timestamps in UTC
	Tombstones bool           // make rows of null values
}

// Names of the columns of the source record.
const (
	SourcePartition = "_kafka_partition" // integer
	SourceOffset    = "_kafka_offset"    // long
	SourceTimestamp = "_kafka_timestamp" // timestamp: the record's in its topic, which is the append time where the topic says so
)
