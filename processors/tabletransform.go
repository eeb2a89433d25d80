package processors

// ValueTransformer maps a table's values with access to stores. value is nil for a delete. One is made for each task, and one more for
// each view that reads through it.
type ValueTransformer[K, V, V2 any] interface {
	Init(ctx BaseContext) error
	// Transform makes the new value. What value points to is valid until the call returns. A nil of a nullable V2 is a delete; where V2
	// can't hold a nil, a delete stays one and Transform is not called for it.
	Transform(key K, value *V) (V2, error)
	Close() error
}

// NewTableTransformValues makes a table with values from a transformer. store is nil where the result has no store of its own.
func NewTableTransformValues[K, V, V2 any](parent Table[K, V], newTransformer func() ValueTransformer[K, V, V2], store *Store[K, V2]) Table[K, V2] {
	return &tableMap[K, V, V2]{parent: parent, store: store, mapper: func(rt Runtime) (mapValue[K, V, V2], func() error, error) {
		t := newTransformer()
		if err := initTransformer(t, rt); err != nil {
			return nil, nil, err
		}
		results := nilsOf[V2]()
		mapped := func(key K, v *V) (out V2, null bool, err error) {
			if results.missing(v == nil) {
				return out, true, nil
			}
			out, err = t.Transform(key, v)
			return out, results.isNil(out), err
		}
		return mapped, t.Close, nil
	}}
}

func initTransformer[K, V, V2 any](t ValueTransformer[K, V, V2], rt Runtime) (err error) {
	defer recovered(&err)
	return t.Init(&baseContext{Runtime: rt})
}
