// Package columns collects rows as columns, so that a batch of records becomes one Arrow record without a copy.
//
// A Schema says which columns a table has, in terms that Go types, Avro schemas, Arrow, Parquet and Delta share. A Builder
// holds one batch: a plan (see gorows for Go values and avrorows for Avro bytes) appends the values of one row to the
// builder's columns and calls EndRow, or Rollback when a value can't be stored, which leaves no trace of the row. Record then
// wraps the columns' memory as Arrow arrays.
//
// Columns are numbered in pre-order over the schema (a struct, then its fields; a list, then its element; a map, then key and
// value). Plans hold such numbers, so that one compiled plan serves every batch.
//
// The package knows no file format, no log, no store and no Kafka.
package columns
