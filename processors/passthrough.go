package processors

// NewTablePassThrough merges tables that share one store: the end of a cogroup, whose inputs each aggregate into that store.
func NewTablePassThrough[K, V any](parents []Table[K, V], store Store[K, V]) Table[K, V] {
	return newPassThrough(parents, StoreView[K, V]{store})
}

// NewWindowedPassThrough is NewTablePassThrough for time and sliding windows.
func NewWindowedPassThrough[K, V any](parents []Table[Windowed[K], V], store Store[K, V]) Table[Windowed[K], V] {
	return newPassThrough(parents, windowView[K, V]{store})
}

// NewSessionPassThrough is NewTablePassThrough for session windows.
func NewSessionPassThrough[K, V any](parents []Table[Windowed[K], V], store Store[K, V]) Table[Windowed[K], V] {
	return newPassThrough(parents, sessionView[K, V]{store})
}

func newPassThrough[K, V any](parents []Table[K, V], view ViewSupplier[K, V]) Table[K, V] {
	return &tablePassThrough[K, V]{parents, view}
}

type tablePassThrough[K, V any] struct {
	parents []Table[K, V]
	view    ViewSupplier[K, V]
}

// New implements Supplier.
func (t *tablePassThrough[K, V]) New(rt Runtime, children []Child) (Instance, error) {
	return PassThrough[K, Change[V]]().New(rt, children)
}

// EnableOldValues implements Table.
func (t *tablePassThrough[K, V]) EnableOldValues(force bool) bool {
	for _, p := range t.parents {
		p.EnableOldValues(force)
	}
	return true
}

// View implements Table.
func (t *tablePassThrough[K, V]) View() ViewSupplier[K, V] { return t.view }
