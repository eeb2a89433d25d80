package processors

// Table is a supplier of a node that sends Change[V], the update stream of a table.
//
// Two things about a table are decided by what comes later in the topology, while it is built: whether the node must send old
// values along, and whether another node reads the table's rows (see View). Both are asked for at Build, before any task is made.
type Table[K, V any] interface {
	Supplier
	// EnableOldValues asks the node to send old values. Without force, it reports false if that would need a store which is
	// not there; with force a table source gets its store (see TableSource.Materialized).
	EnableOldValues(force bool) bool
	// View gives access to the table's rows for joins and queries. It reads the node's own store, or computes from its parents'
	// views; asking for it may give a table source its store.
	View() ViewSupplier[K, V]
}

// ViewSupplier opens the rows of a table for one node of one task.
type ViewSupplier[K, V any] interface {
	// StoreNames are the stores that have to be connected to the node that reads the view.
	StoreNames() []string
	// Open is called from the reading node's Init: the stores are open by then.
	Open(rt Runtime) (View[K, V], error)
}

// Row is a row of a table.
type Row[V any] struct {
	Value     V
	Null      bool  // no row
	Timestamp int64 // ms; NoTimestamp if unknown
}

// View reads the rows of a table. It is used by the task's worker only.
type View[K, V any] interface {
	// Get gives the present row of key. A row that isn't there has Null set.
	Get(key K) (Row[V], error)
	// GetAsOf gives the row of key as of a time; only versioned views have history.
	GetAsOf(key K, asOf int64) (Row[V], error)
	// Versioned reports whether the view keeps versions (KIP-889).
	Versioned() bool
}
