// Package datafile reads the Parquet files of a Delta table, whoever wrote them, as Arrow batches of the table's columns.
//
//	NewLayout   a table's metadata -> the columns that its data files hold: types, names and ids under column mapping
//	Open        one file: what it is, and whether its values can be written anew without a change
//	File.Batches its rows, batch by batch, in the layout's columns: columns that the file lacks are null, types that were narrower
//	            when it was written are widened, columns of other names (column mapping) are found by physical name or by id
//
// Files that have the layout's columns as they are, none with others in it, are read value by value with the Parquet library's column readers; all others
// with its readers of Arrow columns. The rows are the same.
//
// Rows that a file's deletion vector names are dropped. Partition columns are not in data files; their values are in the log.
//
// The package knows neither commits nor sinks.
package datafile
