// Package protorows appends Protobuf messages to the columns of a declared Avro schema, by avrorows.Transcoder. Each message is read by the
// descriptor that it was written with: the .proto text of its schema id in the registry, compiled here, with the imports that it refers to; the
// message indexes behind the id choose the message in that file. Fields are found by their name, or by their JSON name, or by an alias of the
// declared field; what isn't declared is passed over.
//
//	bool                                       boolean
//	all integer types                          int, long (checked); dates and times in the declared unit
//	float, double                              float, double
//	string; enum                               string, enum; an enum's name, or its number for a declared int
//	bytes                                      bytes, fixed
//	message; map                               record; map (keys as texts)
//	repeated                                   array
//	google.protobuf.Timestamp                  timestamp-…, local-timestamp-…, date
//	google.protobuf.Duration                   long, microseconds
//	google.protobuf.StringValue and its like   the value, or null
//	google.type.Date                           date
//	confluent.type.Decimal                     decimal
//
// A field with presence (optional, a message, in a oneof) that isn't set is missing: it is null, or gets the declared default. Others have the
// value that Protobuf gives them: zero, or no elements.
package protorows
