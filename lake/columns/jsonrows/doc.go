// Package jsonrows appends JSON documents to the columns of a declared Avro schema, by avrorows.Transcoder: fields are found by name or
// alias, whatever their order; what isn't declared is passed over. A document may stand behind Confluent's prefix (0x00 and a schema id of four
// bytes), as JSON Schema serializers write it; which schema that is doesn't matter here, since a document says itself what is in it.
//
// How values are read:
//
//	true, false             boolean
//	number                  int, long (without a fraction), float, double, decimal (all digits count); dates and times in the declared unit
//	"text"                  string, enum, uuid; "NaN", "Infinity", "-Infinity" for floats; digits for int, long and decimal
//	"2024-01-02"            date
//	"15:04:05.678"          time-millis, time-micros
//	"2024-01-02T03:04:05Z"  timestamp-…; without a zone local-timestamp-…
//	"aGk="                  bytes, fixed (base64, also the URL alphabet)
//	{…}                     record, map; duration as {"months":1,"days":2,"millis":3}
//	[…]                     array
//	null, or missing        null, or the declared default where it is missing
//
// In a union of more types the kind of the value chooses the branch; where it leaves a choice, an object with the branch's name as its
// only key does.
package jsonrows
