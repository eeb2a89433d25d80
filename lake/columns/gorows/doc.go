// Package gorows appends Go values to columns.
//
// Compile looks once at a Go type and makes a Plan: the columns that its values have, and the steps that read them at their
// offsets in memory. Appending a row runs the steps over the value's memory, without reflection and, for values without maps,
// big numbers or text marshalers, without an allocation.
//
// # Names and options
//
// A field's column is named by its `lake` tag, else by its `avro` tag, else by its `json` tag, else as the Go field; "-" leaves
// the field out. Fields of embedded structs belong to the struct that embeds them, by the rules of encoding/json; where those
// would silently drop an ambiguous name, Compile refuses it. The lake tag takes options after the name:
//
//	Total  int64     `lake:"total,decimal(12,2),comment=in euros"`
//	Email  string    `lake:"email,ods.pii=true,notnull"`
//	Day    time.Time `lake:",date,partition"`
//
// "notnull" declares the column NOT NULL, "partition" makes it a partition column, "decimal(p,s)" gives the type of a big.Rat
// or big.Int, or says that an integer counts units of 10^-s, or that a []byte (such as serde.Decimal) holds such an integer in
// two's complement, most significant byte first, as Avro writes decimals; "date" keeps only the date of a time.Time (in its own zone),
// "string" stores a []byte as text, "key.name=value" with a dot in the key is a tag of the column, and "comment=" takes the rest.
//
// # Types
//
// bool; int8 to int64 and int as byte, short, integer, long; unsigned integers as the next larger type, uint64 and uint as long
// if the value fits; float32, float64; string; []byte and byte arrays as binary; [16]byte as a UUID in text; time.Time as
// timestamp; time.Duration as long in microseconds; columns.Day as date; big.Rat and big.Int as decimal; types with MarshalText as string; pointers as nullable values;
// structs, slices, arrays and maps with string keys. A nil slice or map is null. Everything else is refused with its path.
//
// The package knows neither Kafka nor files.
package gorows
