package processors

// FlatMap makes any number of records of each: f emits them, and they are sent in that order once f has returned without an error. So
// a function that fails half-way sends nothing. A null that K or V can't hold is a *NullError.
func FlatMap[K, V, K2, V2 any](f func(k K, v V, emit func(K2, V2)) error) Supplier {
	type pair struct {
		key   K2
		value V2
	}
	return wire(func(_ Runtime, next Next[K2, V2]) Next[K, V] {
		args := argumentsOf[K, V]()
		keys, values := nilsOf[K2](), nilsOf[V2]()
		var out Record[K2, V2]
		var emitted []pair
		emit := func(k K2, v V2) { emitted = append(emitted, pair{k, v}) }
		return func(r *Record[K, V]) error {
			if err := args.check(r.KeyNull, r.ValueNull); err != nil {
				return err
			}
			emitted = emitted[:0]
			defer func() { clear(emitted) }()
			if err := f(r.Key, r.Value, emit); err != nil {
				return err
			}
			for i := range emitted {
				p := &emitted[i]
				out = Record[K2, V2]{
					Key: p.key, KeyNull: keys.isNil(p.key), Value: p.value, ValueNull: values.isNil(p.value),
					Timestamp: r.Timestamp, Headers: r.Headers,
				}
				if err := next(&out); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

// FlatMapValues makes any number of values of each record, as FlatMap does. A null that V can't hold gives none.
func FlatMapValues[K, V, V2 any](f func(k K, v V, emit func(V2)) error) Supplier {
	return wire(func(_ Runtime, next Next[K, V2]) Next[K, V] {
		args, results := nilsOf[V](), nilsOf[V2]()
		var out Record[K, V2]
		var emitted []V2
		emit := func(v V2) { emitted = append(emitted, v) }
		return func(r *Record[K, V]) error {
			if args.missing(r.ValueNull) {
				return nil
			}
			emitted = emitted[:0]
			defer func() { clear(emitted) }()
			if err := f(r.Key, r.Value, emit); err != nil {
				return err
			}
			out.Key, out.KeyNull, out.Timestamp, out.Headers = r.Key, r.KeyNull, r.Timestamp, r.Headers
			for _, v := range emitted {
				out.Value, out.ValueNull = v, results.isNil(v)
				if err := next(&out); err != nil {
					return err
				}
			}
			return nil
		}
	})
}
