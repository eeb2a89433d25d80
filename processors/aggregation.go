package processors

import "errors"

// Aggregation says how values become an aggregate. Made by Counting, Reducing and Aggregating.
//
// An aggregate may be null: before the first value of a reduction, and where a function returns the nil of a nullable A. A null
// aggregate deletes the row.
type Aggregation[K, V, A any] struct {
	// init makes the aggregate of no values.
	init func() (agg[A], error)
	// add and sub put a value in and take it out again.
	add, sub func(key K, v V, a agg[A]) (agg[A], error)
	// merge joins two aggregates of the same key: of sessions that have grown together.
	merge func(key K, a, b agg[A]) (agg[A], error)
	// nulls says that add takes null values: the nil of a nullable V, or any where values don't matter.
	nulls bool
}

// agg is an aggregate with its null bit.
type agg[A any] struct {
	value A
	null  bool
}

// Counting counts values; nulls too, where the operator lets them through (time windows and sessions).
func Counting[K, V any]() Aggregation[K, V, int64] {
	return Aggregation[K, V, int64]{
		init:  func() (agg[int64], error) { return agg[int64]{}, nil },
		add:   func(_ K, _ V, a agg[int64]) (agg[int64], error) { return agg[int64]{value: a.value + 1}, nil },
		sub:   func(_ K, _ V, a agg[int64]) (agg[int64], error) { return agg[int64]{value: a.value - 1}, nil },
		merge: func(_ K, a, b agg[int64]) (agg[int64], error) { return agg[int64]{value: a.value + b.value}, nil },
		nulls: true,
	}
}

// Reducing combines values; the first value of a key is its first aggregate. sub takes a value out again; it is needed for grouped
// tables and may be nil elsewhere.
func Reducing[K, V any](add, sub func(agg, value V) (V, error)) Aggregation[K, V, V] {
	values := nilsOf[V]()
	apply := func(f func(agg, value V) (V, error), a, v V) (agg[V], error) {
		out, err := f(a, v)
		return agg[V]{out, values.isNil(out)}, err
	}
	r := Aggregation[K, V, V]{
		init: func() (agg[V], error) { return agg[V]{null: true}, nil },
		add: func(_ K, v V, a agg[V]) (agg[V], error) {
			if a.null {
				return agg[V]{v, values.isNil(v)}, nil
			}
			return apply(add, a.value, v)
		},
		merge: func(_ K, a, b agg[V]) (agg[V], error) {
			if a.null {
				return b, nil
			}
			return apply(add, a.value, b.value)
		},
		nulls: values.codec.Nullable(),
	}
	if sub != nil {
		r.sub = func(_ K, v V, a agg[V]) (agg[V], error) { return apply(sub, a.value, v) }
	}
	return r
}

// Aggregating starts from init and adds values. sub takes a value out again (grouped tables), merge joins two aggregates (session
// windows); both may be nil elsewhere. Aggregates may be changed in place and returned: each call gets a decoded copy of its own, except
// that init must return a new one each time.
func Aggregating[K, V, A any](init func() (A, error), add, sub func(key K, value V, agg A) (A, error), merge func(key K, a, b A) (A, error)) Aggregation[K, V, A] {
	aggregates := nilsOf[A]()
	result := func(a A, err error) (agg[A], error) { return agg[A]{a, aggregates.isNil(a)}, err }
	g := Aggregation[K, V, A]{
		init:  func() (agg[A], error) { return result(init()) },
		add:   func(key K, v V, a agg[A]) (agg[A], error) { return result(add(key, v, a.value)) },
		nulls: nilsOf[V]().codec.Nullable(),
	}
	if sub != nil {
		g.sub = func(key K, v V, a agg[A]) (agg[A], error) { return result(sub(key, v, a.value)) }
	}
	if merge != nil {
		g.merge = func(key K, a, b agg[A]) (agg[A], error) { return result(merge(key, a.value, b.value)) }
	}
	return g
}

var (
	errNoSubtractor   = errors.New("internal: the aggregation of a grouped table has no subtractor")
	errNoMerger       = errors.New("internal: the aggregation of sessions has no merger")
	errAggregateNoKey = errors.New("a record without a key reached the aggregation of a table")
)
