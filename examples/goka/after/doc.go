// Package after runs the loyalty programme with Tributary's engine: the same group graph with the same callbacks, on the same topics, where each
// purchase counts once.
package after
