// Package pyenv makes Python environments for tests and benchmarks that need programs which this project did not write: a virtual
// environment for each list of pinned requirements, made once on a machine, in the user's cache directory. Several processes may ask
// for one at once: one makes it, the others wait. A Helper is a Python program that answers requests beside the process, one JSON line
// each. It knows nothing of what is installed, nor of what is asked.
package pyenv
