// Package plancommands makes the commands that tell of a topology: its description, what in it is durable, what a change does to that, and the
// rights that it needs; it writes what a reset does, and has the mistakes of a command line say how it's done right, and ends a command line by signals. cmd/tributary has them for the applications that ship, engine/appcmd for any. Where a
// plan comes from is the caller's: the package knows neither clusters nor what a topology is for.
package plancommands
