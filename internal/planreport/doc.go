// Package planreport writes for people what commands tell of a topology: its description, what in it is durable, what a change does to
// that, the rights that it needs, and what a reset does. cmd/tributary tells it of the applications that ship, engine/appcmd of any. It
// knows neither flags nor clusters.
package planreport
