package processors

// Filter keeps the records for which keep is true. A null that V can't hold passes: there is nothing to ask.
func Filter[K, V any](keep func(K, V) (bool, error)) Supplier { return unbuilt() }

// FilterNot keeps the records for which drop is false.
func FilterNot[K, V any](drop func(K, V) (bool, error)) Supplier { return unbuilt() }

// Map makes one new record of each record. A null that K or V can't hold is a *NullError.
func Map[K, V, K2, V2 any](f func(K, V) (K2, V2, error)) Supplier { return unbuilt() }

// MapValues makes a new value of each record. A null that V can't hold stays a null.
func MapValues[K, V, V2 any](f func(K, V) (V2, error)) Supplier { return unbuilt() }

// SelectKey gives each record a new key. A null that K or V can't hold is a *NullError.
func SelectKey[K, V, K2 any](f func(K, V) (K2, error)) Supplier { return unbuilt() }

// FlatMap makes any number of records of each: f emits them, and they are sent in that order when f has returned without an error.
func FlatMap[K, V, K2, V2 any](f func(k K, v V, emit func(K2, V2)) error) Supplier { return unbuilt() }

// FlatMapValues makes any number of values of each record, as FlatMap does. A null that V can't hold gives none.
func FlatMapValues[K, V, V2 any](f func(k K, v V, emit func(V2)) error) Supplier { return unbuilt() }

// Peek calls f for each record and sends it on. A null that V can't hold is not shown to f.
func Peek[K, V any](f func(K, V) error) Supplier { return unbuilt() }

// ForEach calls f for each record and ends there.
func ForEach[K, V any](f func(K, V) error) Supplier { return unbuilt() }

// PassThrough sends records on as they are: merges, branches and windowed sides of joins.
func PassThrough[K, V any]() Supplier { return unbuilt() }

// Route is one way out of a Branch: the child, by name, that gets the records for which When is true.
type Route[K, V any] struct {
	Child string
	When  func(K, V) (bool, error) // nil is always true
}

// Branch sends each record to the first route that takes it, and drops it if none does. A null that V can't hold goes to the first
// route without a condition.
func Branch[K, V any](routes []Route[K, V]) Supplier { return unbuilt() }
