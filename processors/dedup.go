package processors

import (
	"encoding/binary"
	"math"

	"github.com/tributary-io/tributary/state"
)

// Dedup passes the first record of each id and drops later ones. It is a Supplier.
//
// An id is remembered from its first record until stream time, which is the largest event time that this node has seen, is WithinMs
// past that record's time. While it is remembered every record with it is dropped, whatever its own time.
type Dedup[K, V any] struct {
	// ID gives the record's id; a record with an empty id passes, and so does a null that V can't hold.
	ID func(K, V) (string, error)
	// WithinMs is how long an id is remembered. Forever ignores it and remembers for good.
	WithinMs int64
	Forever  bool
	// DropOlder drops records whose time is WithinMs or more behind stream time. They can't be told from duplicates any more, and pass
	// otherwise.
	DropOlder bool
	// Store is a store of kind Window with a retention of WithinMs or more, or of kind KeyValue where Forever is set. Its keys are the
	// ids, its values the first record's time in 8 bytes, big endian.
	Store string
}

// New implements Supplier.
func (d Dedup[K, V]) New(rt Runtime, children []Child) (Instance, error) {
	next, err := Fan[K, V](children)
	if err != nil {
		return Instance{}, err
	}
	n := &dedup[K, V]{Dedup: d, rt: rt, next: next, values: nilsOf[V](), time: newStreamTime(rt)}
	return Instance{Next: Guard(rt, n.process), Init: n.open}, nil
}

type dedup[K, V any] struct {
	Dedup[K, V]
	rt     Runtime
	next   Next[K, V]
	values nils[V]
	time   streamTime

	windows state.WindowBytes
	forever state.KeyValueBytes
	key     []byte
	first   [8]byte
	got     []byte
}

func (n *dedup[K, V]) open() (err error) {
	if n.Forever {
		n.forever, err = n.rt.Stores().KeyValueBytes(n.Store)
	} else {
		n.windows, err = n.rt.Stores().WindowBytes(n.Store)
	}
	return fatal(err)
}

func (n *dedup[K, V]) process(r *Record[K, V]) error {
	if n.values.missing(r.ValueNull) {
		return n.next(r)
	}
	id, err := n.ID(r.Key, r.Value)
	if err != nil {
		return err
	}
	n.time.observe(r.Timestamp)
	if id == "" {
		return n.next(r)
	}
	if !n.Forever && r.Timestamp <= n.time.now-n.WithinMs {
		if n.DropOlder {
			n.rt.Dropped(DroppedLate)
			return nil
		}
		return n.next(r)
	}
	n.key = append(n.key[:0], id...)
	known, err := n.remembered()
	if err != nil {
		return fatalf("store %q: get: %w", n.Store, err)
	}
	if known {
		n.rt.Dropped(DroppedDuplicate)
		return nil
	}
	if err := n.remember(r.Timestamp); err != nil {
		return fatalf("store %q: put: %w", n.Store, err)
	}
	return n.next(r)
}

func (n *dedup[K, V]) remembered() (known bool, err error) {
	if n.Forever {
		n.got, _, known, err = n.forever.Get(n.key, n.got[:0])
		return known, err
	}
	it, err := n.windows.Fetch(n.key, max(0, n.time.now-n.WithinMs+1), math.MaxInt64, state.Forward)
	if err != nil {
		return false, err
	}
	known = it.Next()
	return known, it.Close()
}

func (n *dedup[K, V]) remember(ts int64) error {
	binary.BigEndian.PutUint64(n.first[:], uint64(ts))
	if n.Forever {
		return n.forever.Put(n.key, n.first[:], ts)
	}
	_, err := n.windows.Put(n.key, n.first[:], ts, ts)
	return err
}
