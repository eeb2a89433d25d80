// Package topics looks after topics: it finds those of the user, creates and checks those that belong to the engine, and purges
// what has been read.
//
// Internal topics (changelogs, repartition topics, topics before lake sinks) are made by the engine and checked at every start:
// another number of partitions would send records to the wrong tasks, and another cleanup policy would lose them. A topic that this
// instance has seen before and that is gone, or was made anew, is an error as long as local state remembers it: making it again
// silently would lose what was in it (Memory).
//
// The package knows no topology: callers say which topics they want.
package topics
