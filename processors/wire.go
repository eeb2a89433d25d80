package processors

// wire makes a Supplier of a node that sends K2, V2 to all its children. body is called once a task, and what it returns runs under
// Guard.
func wire[K, V, K2, V2 any](body func(rt Runtime, next Next[K2, V2]) Next[K, V]) Supplier {
	return SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		next, err := Fan[K2, V2](children)
		if err != nil {
			return Instance{}, err
		}
		return Instance{Next: Guard(rt, body(rt, next))}, nil
	})
}
