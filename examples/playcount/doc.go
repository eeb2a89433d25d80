// Package playcount counts plays of titles by the minute and lands the counts in a Delta table: the small application that the README
// shows, with its test and the program that runs it. The README's code is taken from these files, which a test checks.
package playcount
