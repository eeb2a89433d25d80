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

// VersionedSemantics is implemented by nodes that treat out-of-order updates of versioned tables specially (KIP-914): the topology
// tells them at Build whether the table they read is versioned.
type VersionedSemantics interface {
	UseVersionedSemantics(bool)
}

// ViewSupplier opens the rows of a table for one node of one task.
type ViewSupplier[K, V any] interface {
	// StoreNames are the stores that have to be connected to the node that reads the view.
	StoreNames() []string
	// Open is called from the reading node's Init: the stores are open by then. The view belongs to that node and is closed with it.
	Open(rt Runtime) (View[K, V], error)
}

// Row is a row of a table.
type Row[V any] struct {
	Value     V
	Null      bool  // no row
	Timestamp int64 // ms; NoTimestamp if unknown
}

// time is the row's time. What a view has computed to nothing has none.
func (r *Row[V]) time() int64 {
	if r.Null {
		return NoTimestamp
	}
	return r.Timestamp
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

// oldValues is the switch that Table.EnableOldValues turns. It is set at Build and read by tasks.
type oldValues struct{ send bool }

// enable turns the switch for a table that has a store of its own, or else where its parents can send old values.
func (o *oldValues) enable(own, force bool, parents ...func(force bool) bool) bool {
	if o.send {
		return true
	}
	if !own {
		for _, enable := range parents {
			if !enable(force) {
				return false
			}
		}
	}
	o.send = true
	return true
}

// updates sends the updates of a table.
type updates[K, V any] struct {
	next Next[K, Change[V]]
	old  bool // send old values
	held bool // updates wait for the commit: see coalesced
	out  Record[K, Change[V]]
}

func newUpdates[K, V any](children []Child, old bool) (*updates[K, V], error) {
	next, err := Fan[K, Change[V]](children)
	return &updates[K, V]{next: next, old: old}, err
}

// send sends an update that r has caused. c.Old goes along only if someone wants old values.
func send[K, In, V any](u *updates[K, V], r *Record[K, In], c Change[V], ts int64) error {
	return u.send(r.Key, c, ts, r.Headers)
}

func (u *updates[K, V]) send(key K, c Change[V], ts int64, headers []Header) error {
	if u.held {
		return nil
	}
	return u.forward(key, c, ts, headers)
}

func (u *updates[K, V]) forward(key K, c Change[V], ts int64, headers []Header) error {
	if !u.old && !c.OldNull {
		var none V
		c.Old, c.OldNull = none, true
	}
	u.out = Record[K, Change[V]]{Key: key, Value: c, Timestamp: ts, Headers: headers}
	return u.next(&u.out)
}
