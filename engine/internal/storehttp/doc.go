// Package storehttp serves the stores of an application over HTTP, read-only, as JSON: docs/operations/queries.md has the paths. Every instance answers for all: what it
// doesn't have it asks the one that does.
//
// A request is taken apart (ask.go) and answered from the partitions that may have the rows: by scans of what is here (collect.go), shown by the stores'
// serdes (render.go), or by forwarding it to the instance that has the partition, once (forward.go).
//
// The package knows how to ask and to answer. Which stores there are, how they are read, and where their partitions are, it is told through Config and Store.
package storehttp
