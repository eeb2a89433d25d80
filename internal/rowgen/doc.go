// Package rowgen makes random tables for tests of the lake's writers: an Avro schema that grows, rows with the values at which writers and readers differ (NaN, -0.0, the
// ends of ranges, long texts beyond ASCII, nulls at any depth), what another reader must give for each, and conditions that statistics and partition
// values let readers skip by, with the number of rows for which they hold. What is to be expected is made from the values themselves, by none of the code that is tested.
package rowgen
