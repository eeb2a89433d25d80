// Package rows turns records into rows, whatever the table's format: it says which columns a stream's rows have, and fills them.
//
// A format's sink gathers Options (from the options that its users give), lays the rows out when the topology is built (New, which
// finds what doesn't fit), and then calls Append for each record, from any goroutine that owns the batch's columns.Builder. Columns
// come in this order: the key's, the value's (the fields of a Go struct by package columns/gorows, or of an Avro schema by package
// columns/avrorows, columns/jsonrows or columns/protorows), those of the source record, those of the run.
//
// The package knows no table format, no file format, no store and no Kafka client.
package rows
