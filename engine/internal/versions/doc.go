// Package versions tells versions of a topology apart that are in one group of the classic protocol while one replaces the other. Members tell each other
// what they declare, share the tasks of those sub-topologies only that they declare equally, and say what differs.
//
// A Version is what an instance tells others of its own topology: a digest of each sub-topology (its shape), and the saved plan, packed. It keeps of an
// assignment what is meant as it understands it, and remembers which other versions were met. The names alone make a smaller digest, the Signature, which
// says what a checkpoint is of.
//
// The package knows neither the group's protocols nor tasks.
package versions
