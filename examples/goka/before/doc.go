// Package before runs the loyalty programme as it was: with goka's own processor.
package before
