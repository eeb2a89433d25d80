// Package schemas holds the Avro schemas that ship with Tributary, and declares the streams that use them.
//
// A stream is declared by two files named after its topic: <topic>.yaml says who owns it, how sensitive it is, and how the topic
// is to be made; <topic>.avsc is the schema of its values. Both are embedded in the binary:
//
//	orders := schemas.MustStream("ods.demo.order_events")
//	serde.Avro[OrderEvent](registry, orders.Schema)
//
// Every field of a schema has a doc and says by attributes what a catalogue must know: ods.sensitivity (public, internal,
// confidential or restricted), ods.pii (whether it is about a person) and ods.key (whether it is the record's key). The lake turns
// docs into column comments and attributes into column tags. Load refuses a declaration that leaves any of it out.
//
// The package does no I/O beyond reading the files, and knows no broker, no registry and no Avro library.
package schemas
