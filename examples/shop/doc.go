// Package shop makes the demonstration's input: the events of a shop's orders, and its customers. It also says what the
// demonstration's topology must make of them.
//
// A day's stream is a pure function of a Spec (date, orders a day, seed): the same records with the same keys, bytes, partitions
// and timestamps, in the same order, always. Nothing is stored and no random generator is carried along: everything about an
// order follows by hashing from the seed, the day it was placed and its number. So a day can look back and emit the later events
// of orders that were placed days before.
//
// # What is in a day
//
// Each order is placed, and most are shipped, delivered and sometimes returned, hours to days later. An event arrives a little
// after it happens; some arrive minutes later and so out of order, and some so late that the windows they belong to have closed.
// Producers retry: some events arrive twice, byte for byte, the second time up to ten minutes later and perhaps the day after.
// A few records can't be decoded (see Flaw). Customers have regions; a few moved, a few were deleted, a few are unknown.
//
// # How it is made
//
// Spec.life computes an order's life. schedule packs each arrival of the day into one integer and sorts them; Events walks
// them, and Records encodes them in Confluent's wire format. Model takes the events in that order and computes, on one thread
// and with plain maps, what must land.
//
// The package writes Avro by hand, so that the serdes under test are checked against bytes that they didn't make. It knows no
// broker, no registry and no topology.
package shop
