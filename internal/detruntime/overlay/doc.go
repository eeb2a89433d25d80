// Overlay writes the files of a Go runtime whose choices are a seed's, and the list of them that "go build -overlay" takes. See package
// detruntime. It refuses a toolchain in which it doesn't find what it has to change.
package main
