// Package avrorows appends Avro records to columns, straight from their bytes.
//
// Declare reads the schema that the table's owner has declared and says which columns it makes. For each schema that a
// producer writes with (found by its registry id, since a fingerprint ignores much of a schema) Plan resolves the two once by
// the rules of Avro's "Schema Resolution": fields are matched by name or the declared alias, defaults fill what the writer
// lacks, what is not declared is skipped, int and float promote. Appending a row runs the plan over the bytes; no Go value
// is made in between, and nothing is allocated for flat records.
//
// # Types
//
//	boolean, int, long, float, double, string, bytes   boolean, integer, long, float, double, string, binary
//	enum                                               string
//	fixed(n)                                           binary
//	decimal(p,s), p <= 38                              decimal(p,s)
//	uuid                                               string; canonical form where the wire has 16 bytes
//	date                                               date
//	time-millis, time-micros                           long, microseconds of the day
//	timestamp-millis, -micros, -nanos                  timestamp; nanoseconds are rounded down
//	local-timestamp-millis, -micros, -nanos            timestamp_ntz, or timestamp by Options.LocalAsUTC
//	duration                                           struct<months:long,days:long,millis:long>
//	array, map, record                                 array, map, struct
//	["null", T] in any order                           T, nullable
//	a union of more types                              struct with one member for each branch, all but one null
//	null                                               no column
//
// big-decimal, recursive types, names that differ only in case and decimals of more than 38 digits are refused with the path.
// Where both schemas have a timestamp or time type of different units the value is converted by the writer's unit, so that the
// instant stays; Avro's own rules would take the number as it is. Named types resolve whatever their names are,
// except where a union leaves a choice.
//
// Strings must be valid UTF-8, and the bytes must end where the value ends; anything else is a *sink.RowError.
package avrorows
