package topology

import "github.com/tributary-io/tributary/processors"

// This file makes joiners, which get pointers to both sides, of functions that say by their types which side may be missing.

// joinValues is a function of the key and both sides that looks at the sides only.
func joinValues[K, L, R, O any](f func(L, R) O) func(K, L, R) (O, error) {
	if f == nil {
		return nil
	}
	return func(_ K, l L, r R) (O, error) { return f(l, r), nil }
}

// joinBoth is for inner joins.
func joinBoth[K, L, R, O any](f func(K, L, R) (O, error)) processors.Joiner[K, L, R, O] {
	if f == nil {
		return nil
	}
	return func(k K, l *L, r *R) (O, error) { return f(k, *l, *r) }
}

// joinLeft is for left joins.
func joinLeft[K, L, R, O any](f func(K, L, *R) (O, error)) processors.Joiner[K, L, R, O] {
	if f == nil {
		return nil
	}
	return func(k K, l *L, r *R) (O, error) { return f(k, *l, r) }
}

// joinOuter is for outer joins.
func joinOuter[K, L, R, O any](f func(K, *L, *R) (O, error)) processors.Joiner[K, L, R, O] {
	if f == nil {
		return nil
	}
	return f
}

// ofSides is a function of both sides of a join of tables.
func ofSides[K, L, R, O any](f func(L, R) (O, error)) func(K, L, R) (O, error) {
	if f == nil {
		return nil
	}
	return func(_ K, l L, r R) (O, error) { return f(l, r) }
}
