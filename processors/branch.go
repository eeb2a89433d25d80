package processors

// Route is one way out of a Branch: the child, by name, that gets the records for which When is true.
type Route[K, V any] struct {
	Child string
	When  func(K, V) (bool, error) // nil is always true
}

// Branch sends each record to the first route that takes it, and drops it if none does. A null that V can't hold goes to the first
// route without a condition.
func Branch[K, V any](routes []Route[K, V]) Supplier {
	return SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		nexts := make([]Next[K, V], len(routes))
		for i, r := range routes {
			next, err := childNamed[K, V](rt, children, r.Child)
			if err != nil {
				return Instance{}, err
			}
			nexts[i] = next
		}
		values := nilsOf[V]()
		body := func(r *Record[K, V]) error {
			missing := values.missing(r.ValueNull)
			for i := range routes {
				if when := routes[i].When; when != nil {
					if missing {
						continue
					}
					if ok, err := when(r.Key, r.Value); err != nil {
						return err
					} else if !ok {
						continue
					}
				}
				return nexts[i](r)
			}
			return nil
		}
		return Instance{Next: Guard(rt, body)}, nil
	})
}

// childNamed is the child of that name: it fails with an *UnknownChildError.
func childNamed[K, V any](rt Runtime, children []Child, name string) (Next[K, V], error) {
	for _, c := range children {
		if c.Name == name {
			return Fan[K, V]([]Child{c})
		}
	}
	return nil, &UnknownChildError{Node: rt.NodeName(), Child: name}
}
