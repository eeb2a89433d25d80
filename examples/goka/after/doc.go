// Package after runs the loyalty programme with Tributary's engine: the same group graph with the same callbacks, exactly once.
package after
