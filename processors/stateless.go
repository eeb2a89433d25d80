package processors

// Filter keeps the records for which keep is true. A null that V can't hold passes: there is nothing to ask.
func Filter[K, V any](keep func(K, V) (bool, error)) Supplier { return filter(keep, true) }

// FilterNot keeps the records for which drop is false. A null that V can't hold passes.
func FilterNot[K, V any](drop func(K, V) (bool, error)) Supplier { return filter(drop, false) }

func filter[K, V any](test func(K, V) (bool, error), want bool) Supplier {
	return wire(func(_ Runtime, next Next[K, V]) Next[K, V] {
		values := nilsOf[V]()
		return func(r *Record[K, V]) error {
			if values.missing(r.ValueNull) {
				return next(r)
			}
			got, err := test(r.Key, r.Value)
			if err != nil || got != want {
				return err
			}
			return next(r)
		}
	})
}

// Map makes one new record of each record. A null that K or V can't hold is a *NullError.
func Map[K, V, K2, V2 any](f func(K, V) (K2, V2, error)) Supplier {
	return wire(func(_ Runtime, next Next[K2, V2]) Next[K, V] {
		args := argumentsOf[K, V]()
		keys, values := nilsOf[K2](), nilsOf[V2]()
		var out Record[K2, V2]
		return func(r *Record[K, V]) error {
			if err := args.check(r.KeyNull, r.ValueNull); err != nil {
				return err
			}
			k, v, err := f(r.Key, r.Value)
			if err != nil {
				return err
			}
			out = Record[K2, V2]{
				Key: k, KeyNull: keys.isNil(k), Value: v, ValueNull: values.isNil(v),
				Timestamp: r.Timestamp, Headers: r.Headers,
			}
			return next(&out)
		}
	})
}

// MapValues makes a new value of each record. A null that V can't hold stays a null.
func MapValues[K, V, V2 any](f func(K, V) (V2, error)) Supplier {
	return wire(func(_ Runtime, next Next[K, V2]) Next[K, V] {
		values, results := nilsOf[V](), nilsOf[V2]()
		var out Record[K, V2]
		return func(r *Record[K, V]) error {
			out.Key, out.KeyNull, out.Timestamp, out.Headers = r.Key, r.KeyNull, r.Timestamp, r.Headers
			if values.missing(r.ValueNull) {
				var null V2
				out.Value, out.ValueNull = null, true
				return next(&out)
			}
			v, err := f(r.Key, r.Value)
			if err != nil {
				return err
			}
			out.Value, out.ValueNull = v, results.isNil(v)
			return next(&out)
		}
	})
}

// SelectKey gives each record a new key. A null that K or V can't hold is a *NullError.
func SelectKey[K, V, K2 any](f func(K, V) (K2, error)) Supplier {
	return wire(func(_ Runtime, next Next[K2, V]) Next[K, V] {
		args := argumentsOf[K, V]()
		keys := nilsOf[K2]()
		var out Record[K2, V]
		return func(r *Record[K, V]) error {
			if err := args.check(r.KeyNull, r.ValueNull); err != nil {
				return err
			}
			k, err := f(r.Key, r.Value)
			if err != nil {
				return err
			}
			out = Record[K2, V]{
				Key: k, KeyNull: keys.isNil(k), Value: r.Value, ValueNull: r.ValueNull,
				Timestamp: r.Timestamp, Headers: r.Headers,
			}
			return next(&out)
		}
	})
}

// Peek calls f for each record and sends it on. A null that V can't hold is not shown to f.
func Peek[K, V any](f func(K, V) error) Supplier {
	return wire(func(_ Runtime, next Next[K, V]) Next[K, V] {
		values := nilsOf[V]()
		return func(r *Record[K, V]) error {
			if !values.missing(r.ValueNull) {
				if err := f(r.Key, r.Value); err != nil {
					return err
				}
			}
			return next(r)
		}
	})
}

// ForEach calls f for each record and ends there. A null that V can't hold is not shown to f.
func ForEach[K, V any](f func(K, V) error) Supplier {
	return wire(func(Runtime, Next[K, V]) Next[K, V] {
		values := nilsOf[V]()
		return func(r *Record[K, V]) error {
			if values.missing(r.ValueNull) {
				return nil
			}
			return f(r.Key, r.Value)
		}
	})
}

// PassThrough sends records on as they are: the nodes of merges and branches.
func PassThrough[K, V any]() Supplier {
	return SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		next, err := Fan[K, V](children)
		return Instance{Next: Guard(rt, next)}, err
	})
}
