// Package before runs the loyalty programme as it was: with goka's own processor, whose state is in LevelDB, and which counts each purchase at
// least once.
package before
