// Package wire finds out which schema a value was written with, as Confluent's serializers say it: 0x00 and the schema's id in four bytes in
// front of the value, or a header that holds 0x00 and an id, or 0x01 and a GUID. It keeps what was made of each schema, so that a
// registry is asked once for each, and not again and again for those that it doesn't know.
//
// It knows nothing of formats and registries: see avrorows and protorows.
package wire
