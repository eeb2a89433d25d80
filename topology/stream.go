package topology

// Stream is a stream of records: each stands for itself.
//
// Operators return new streams, so a stream may be used any number of times. Functions get the key and the value; where one of them
// may be null, it has to be of a Go type that can hold that (see the package documentation). Functions whose names begin with Try
// return an error, which goes to the processing-error handler; so does a panic.
type Stream[K, V any] struct{ s *stream[K, V] }

// Filter keeps the records for which keep is true.
func (s *Stream[K, V]) Filter[_ onUse](keep func(K, V) bool, opts ...Option) *Stream[K, V] {
	return s.TryFilter(lift2(keep), opts...)
}

// TryFilter is Filter with a function that may fail.
func (s *Stream[K, V]) TryFilter[_ onUse](keep func(K, V) (bool, error), opts ...Option) *Stream[K, V] {
	return &Stream[K, V]{filterStream(s.s, keep, false, opts)}
}

// FilterNot keeps the records for which drop is false.
func (s *Stream[K, V]) FilterNot[_ onUse](drop func(K, V) bool, opts ...Option) *Stream[K, V] {
	return s.TryFilterNot(lift2(drop), opts...)
}

// TryFilterNot is FilterNot with a function that may fail.
func (s *Stream[K, V]) TryFilterNot[_ onUse](drop func(K, V) (bool, error), opts ...Option) *Stream[K, V] {
	return &Stream[K, V]{filterStream(s.s, drop, true, opts)}
}

// Map makes one new record of each. What needs records of one key together repartitions behind it: use MapValues where the key
// stays.
func (s *Stream[K, V]) Map[K2, V2 any](f func(K, V) (K2, V2), opts ...Option) *Stream[K2, V2] {
	return s.TryMap(liftMap(f), opts...)
}

// TryMap is Map with a function that may fail.
func (s *Stream[K, V]) TryMap[K2, V2 any](f func(K, V) (K2, V2, error), opts ...Option) *Stream[K2, V2] {
	return &Stream[K2, V2]{mapStream(s.s, f, opts)}
}

// MapValues makes a new value of each record's value.
func (s *Stream[K, V]) MapValues[V2 any](f func(V) V2, opts ...Option) *Stream[K, V2] {
	return s.TryMapValues(ofValue[K](f), opts...)
}

// MapValuesWithKey is MapValues with a function that sees the key.
func (s *Stream[K, V]) MapValuesWithKey[V2 any](f func(K, V) V2, opts ...Option) *Stream[K, V2] {
	return s.TryMapValues(lift2(f), opts...)
}

// TryMapValues is MapValuesWithKey with a function that may fail.
func (s *Stream[K, V]) TryMapValues[V2 any](f func(K, V) (V2, error), opts ...Option) *Stream[K, V2] {
	return &Stream[K, V2]{mapStreamValues(s.s, f, opts)}
}

// FlatMap makes any number of records of each: those that f emits, in that order.
func (s *Stream[K, V]) FlatMap[K2, V2 any](f func(k K, v V, emit func(K2, V2)), opts ...Option) *Stream[K2, V2] {
	return s.TryFlatMap(liftEmit(f), opts...)
}

// TryFlatMap is FlatMap with a function that may fail; then nothing that it emitted goes on.
func (s *Stream[K, V]) TryFlatMap[K2, V2 any](f func(k K, v V, emit func(K2, V2)) error, opts ...Option) *Stream[K2, V2] {
	return &Stream[K2, V2]{flatMapStream(s.s, f, opts)}
}

// FlatMapValues makes any number of records of each, with its key and the values that f emits.
func (s *Stream[K, V]) FlatMapValues[V2 any](f func(v V, emit func(V2)), opts ...Option) *Stream[K, V2] {
	if f == nil {
		return s.TryFlatMapValues[V2](nil, opts...)
	}
	return s.TryFlatMapValues(func(_ K, v V, emit func(V2)) error {
		f(v, emit)
		return nil
	}, opts...)
}

// FlatMapValuesWithKey is FlatMapValues with a function that sees the key.
func (s *Stream[K, V]) FlatMapValuesWithKey[V2 any](f func(k K, v V, emit func(V2)), opts ...Option) *Stream[K, V2] {
	return s.TryFlatMapValues(liftEmit(f), opts...)
}

// TryFlatMapValues is FlatMapValuesWithKey with a function that may fail; then nothing that it emitted goes on.
func (s *Stream[K, V]) TryFlatMapValues[V2 any](f func(k K, v V, emit func(V2)) error, opts ...Option) *Stream[K, V2] {
	return &Stream[K, V2]{flatMapStreamValues(s.s, f, opts)}
}

// SelectKey gives each record a new key. What needs records of one key together repartitions behind it.
func (s *Stream[K, V]) SelectKey[K2 any](f func(K, V) K2, opts ...Option) *Stream[K2, V] {
	return s.TrySelectKey(lift2(f), opts...)
}

// TrySelectKey is SelectKey with a function that may fail.
func (s *Stream[K, V]) TrySelectKey[K2 any](f func(K, V) (K2, error), opts ...Option) *Stream[K2, V] {
	return &Stream[K2, V]{selectStreamKey(s.s, f, opts)}
}

// Peek calls f for each record that passes. It may be called again for a record that is processed again after a failure.
func (s *Stream[K, V]) Peek[_ onUse](f func(K, V), opts ...Option) *Stream[K, V] {
	return s.TryPeek(liftAction(f), opts...)
}

// TryPeek is Peek with a function that may fail.
func (s *Stream[K, V]) TryPeek[_ onUse](f func(K, V) error, opts ...Option) *Stream[K, V] {
	return &Stream[K, V]{peekStream(s.s, f, opts)}
}

// ForEach calls f for each record, and ends the stream. It may be called again for a record that is processed again after a failure.
func (s *Stream[K, V]) ForEach[_ onUse](f func(K, V), opts ...Option) {
	s.TryForEach(liftAction(f), opts...)
}

// TryForEach is ForEach with a function that may fail.
func (s *Stream[K, V]) TryForEach[_ onUse](f func(K, V) error, opts ...Option) {
	forEachInStream(s.s, f, opts)
}

// Merge lets the records of both streams pass, in no order between the two.
func (s *Stream[K, V]) Merge[_ onUse](other *Stream[K, V], opts ...Option) *Stream[K, V] {
	if other == nil {
		return &Stream[K, V]{mergeStreams(s.s, nil, opts)}
	}
	return &Stream[K, V]{mergeStreams(s.s, other.s, opts)}
}
