// Package fetched keeps what tests and benchmarks fetch once on a machine (Python environments, jars, programs) below the user's cache directory. Several
// processes may ask for a thing at once: one fetches it, the others wait. A fetch that fails, as downloads do now and then, is tried again twice. All the
// fetches of a process share one limit, well below that of `go test`, so that a slow network leaves tests skipped and not a test binary killed; and what has
// failed isn't tried again for some minutes, so that a machine without a network doesn't try for each package of tests. It knows nothing of what is fetched.
package fetched
