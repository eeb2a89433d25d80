// Package identity keeps who an engine instance is: a UUID in its state directory, locked for the life of the process.
//
// The static membership and the transactional id of an instance derive from it. So a process that was killed and started again on
// the same directory takes its own place back at once, instead of waiting for the session of its former self to run out, and
// ends the transaction that it left open. Two processes on one directory would fence each other for ever: the lock refuses the
// second.
package identity
