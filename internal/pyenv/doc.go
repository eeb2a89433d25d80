// Package pyenv makes Python environments for tests and benchmarks that need programs which this project did not write: a virtual
// environment for each list of pinned requirements, made once on a machine, in the user's cache directory. Several processes may ask
// for one at once: one makes it, the others wait. It knows nothing of what is installed.
package pyenv
