// Package sqlite brings Iceberg catalogs in an SQLite file: for one machine, for tests, and to try things. Its driver is written
// in Go, so that programs need no C compiler. Several processes may use the same file at once; it must lie on a local disk.
//
// It is a package of its own so that programs with another catalog don't link the driver.
package sqlite
