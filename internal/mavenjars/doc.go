// Package mavenjars fetches jars for tests and benchmarks that start programs of the JVM: those that a pom.xml with pinned versions
// lists, once on a machine, into the user's cache directory. Several processes may ask at once: one fetches, the others wait. It knows
// nothing of what the jars are for.
package mavenjars
