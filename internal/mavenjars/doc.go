// Package mavenjars fetches what tests and benchmarks need to start programs of the JVM: the jars that a pom.xml with pinned versions
// lists, or a packed distribution, once on a machine, into the user's cache directory. Several processes may ask at once: one fetches, the others wait. It knows
// nothing of what the jars are for.
package mavenjars
