// Package sinktest puts table formats through what may happen to those who land rows in them, for the tests of all formats alike:
//
//	Instance   a process that lands an input, loses its replies, is fenced, dies at any operation and is started again
//	Weather    two of them in turn, until the whole input has landed
//	Crowd      four of them at once, each sure that it owns everything
//	Advance    offsets of one partition, from the table's progress on
//	KillLoop   a child process of the test that is killed with -9 again and again
//	Part, Move, Open, WantRefused   what the tests of each format alone begin and end with
//
// What is broken (a store, a catalog) and what must be in the table at the end is for the tests of each format: the package knows sinks only by
// their contract, package lake/sink.
package sinktest
