// Package scan takes rows out of the stores of a task for those who ask from outside, in typed queries and over HTTP: rows of all kinds of stores in one form,
// whose bytes are their own, at most so many at once. So nothing of a task is held open while code of a user, or a connection, has the rows.
//
// A Portion that has more behind it is followed by the next one, from its last row on. The package knows bytes only, and not which task has which keys.
package scan
