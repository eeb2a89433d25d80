// Package object is the small view of an object store that the lake needs: whole objects with names, written once, found by
// prefix, and one primitive that everything rests on: put if absent.
//
// A commit of a table passes through it like this: data files are written with Create, made durable together with Sync, and
// then the log entry that names them is written with PutIfAbsent. Only that last step can conflict with other writers.
//
// The stores are Local (a folder of a local or network disk with hard links), Memory (tests and harness), those of the clouds: s3store, gcsstore, azurestore
// (opened with Open), and Faulty, which wraps another store and breaks it on demand, for tests of whatever stands
// on top. CheckPutIfAbsent refuses a store whose put-if-absent isn't one.
//
// The package knows nothing of tables, formats or Kafka.
package object
