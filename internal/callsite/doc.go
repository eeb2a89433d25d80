// Package callsite finds the user's line in a stack of calls: the one at which an operator was declared, or in which a function panicked. What
// is between it and the caller (the operators, the task, the engine, the Go runtime) tells a user nothing. A file of tests is always a
// user's, and so is what the module ships to be run rather than imported, such as the examples.
package callsite
