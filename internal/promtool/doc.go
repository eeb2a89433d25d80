// Package promtool gives tests Prometheus' own checker of rules and metrics: the one in PATH, else that of Debian's package prometheus, which is
// unpacked once into the user's cache directory, without being installed. Several processes may ask at the same time.
package promtool
