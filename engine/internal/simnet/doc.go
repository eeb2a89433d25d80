// Package simnet is a network in memory for simulations: brokers listen on it, each instance dials through a host of its own, and a
// simulation decides for every Kafka request what becomes of it. Nothing in it is real: under testing/synctest time stands still while
// anything can still happen, and then jumps.
//
// A request passes through the host's policy when it leaves: it may go through, wait, be lost with its connection before the broker has
// seen it, be lost with its answer after the broker has seen it, or come so late that whoever sent it has sent it again. A host that is cut is
// a machine without power: nothing comes from it any more, and nobody is told.
//
// The package knows frames and request keys, and nothing else of the protocol.
package simnet
