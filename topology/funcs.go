package topology

// This file turns functions without an error into functions with one: what processors run.

func lift0[R any](f func() R) func() (R, error) {
	if f == nil {
		return nil
	}
	return func() (R, error) { return f(), nil }
}

func lift2[A, B, R any](f func(A, B) R) func(A, B) (R, error) {
	if f == nil {
		return nil
	}
	return func(a A, b B) (R, error) { return f(a, b), nil }
}

func lift3[A, B, C, R any](f func(A, B, C) R) func(A, B, C) (R, error) {
	if f == nil {
		return nil
	}
	return func(a A, b B, c C) (R, error) { return f(a, b, c), nil }
}

// ofValue is a function of the key and the value that looks at the value only.
func ofValue[K, V, R any](f func(V) R) func(K, V) (R, error) {
	if f == nil {
		return nil
	}
	return func(_ K, v V) (R, error) { return f(v), nil }
}

func liftMap[K, V, K2, V2 any](f func(K, V) (K2, V2)) func(K, V) (K2, V2, error) {
	if f == nil {
		return nil
	}
	return func(k K, v V) (K2, V2, error) {
		k2, v2 := f(k, v)
		return k2, v2, nil
	}
}

func liftAction[K, V any](f func(K, V)) func(K, V) error {
	if f == nil {
		return nil
	}
	return func(k K, v V) error {
		f(k, v)
		return nil
	}
}

func liftEmit[K, V, E any](f func(K, V, E)) func(K, V, E) error {
	if f == nil {
		return nil
	}
	return func(k K, v V, emit E) error {
		f(k, v, emit)
		return nil
	}
}

// onUse is the type parameter of those methods of generic types that would have none. Callers never write it: having one type
// only, it is inferred. The compiler makes code of every plain method for each pair of types that a topology has, and of whatever
// these methods use in turn, called or not; of a method with a type parameter where it is called. docs/decisions/compile-time.md.
type onUse = struct{}
