// Package storetest is what every store in a cloud must do, for the tests of the packages that hold one (s3store, gcsstore, azurestore):
//
//	Contract      the operations of object.Store, one by one
//	Faults        refusals and broken connections of a Fake: which outcomes are clear, and which are unknown
//	LostReplies   a Delta table on a Fake that stores and then breaks the connection
//	Writers       concurrent writers of one Delta table
//	Sink          rows through package lake into a table, and back
//
// Fake holds the objects of a server in the process; the protocols around it are the packages' own. What a Fake can't show is how real
// services differ: the same functions run against emulators and real buckets, see docs/operations/object-stores.md.
//
// The package must not know any store's client.
package storetest
