package processors

import (
	"encoding/binary"

	"github.com/tributary-io/tributary/state"
)

// windowRows is rows for a window store: the row of a key and a window's start.
type windowRows[K, V any] struct {
	coder[K, V]
	bytes     state.WindowBytes
	timed     bool       // its rows have times, if only while they are cached
	retention int64      // ms
	held      *coalesced // of a store whose updates wait for the commit
	row       []byte     // names the row that is written, for held
}

func openWindowRows[K, V any](rt Runtime, s Store[K, V]) (*windowRows[K, V], error) {
	spec, err := specOf(rt, s.Name)
	if err != nil {
		return nil, fatal(err)
	}
	t := &windowRows[K, V]{coder: newCoder(rt, s, spec), timed: spec.Kind == state.TimestampedWindow || spec.CachesRecords(), retention: spec.RetentionMs}
	t.bytes, err = rt.Stores().WindowBytes(s.Name)
	return t, fatal(err)
}

// holdBack makes the updates of the store wait for the commit, where its spec says so. end gives the end of a window.
func (t *windowRows[K, V]) holdBack(out *updates[Windowed[K], V], end func(start int64) int64) error {
	spec, err := specOf(t.rt, t.name)
	if err != nil {
		return fatal(err)
	}
	t.held = coalesce(t.rt, spec, func() error { return t.flush(out, end) })
	out.held = t.held != nil
	return nil
}

// flush sends what was held back.
func (t *windowRows[K, V]) flush(out *updates[Windowed[K], V], end func(start int64) int64) error {
	return t.held.flush(func(row *heldRow) error {
		key, err := t.decodeKeyShared(row.key)
		if err != nil {
			return err
		}
		start := row.window.Start
		now, err := t.find(key, start)
		if err != nil {
			return err
		}
		c, ok, err := t.changeOf(row, now, out.old)
		if err != nil || !ok {
			return err
		}
		ts := now.Timestamp
		switch {
		case now.Null:
			ts = row.by.Timestamp
		case ts < 0:
			ts = row.ts
		}
		return out.forward(Windowed[K]{Key: key, Window: Window{Start: start, End: end(start)}}, c, ts, row.by.Headers)
	})
}

// hold notes that the row of the key last found is about to be written in the window that starts at start.
func (t *windowRows[K, V]) hold(start int64) error {
	t.row = binary.BigEndian.AppendUint64(append(t.row[:0], t.key...), uint64(start))
	return t.held.touch(t.row, t.key, Window{Start: start}, func() ([]byte, error) {
		data, _, ok, err := t.bytes.Get(t.key, start, nil)
		if err != nil || !ok {
			return nil, t.failed("get", err)
		}
		return filled(data), nil
	})
}

// find reads the row of key in the window that starts at start. set then writes it.
func (t *windowRows[K, V]) find(key K, start int64) (Row[V], error) {
	if err := t.encodeKey(key); err != nil {
		return noRow[V](), err
	}
	data, ts, ok, err := t.bytes.Get(t.key, start, t.dst())
	if err != nil {
		return noRow[V](), t.failed("get", err)
	}
	if !ok {
		return noRow[V](), nil
	}
	return t.decodeGot(data, t.time(ts))
}

// time is a row's time, which a plain store keeps only as long as it is cached.
func (t *windowRows[K, V]) time(ts int64) int64 {
	if !t.timed {
		return NoTimestamp
	}
	return ts
}

// set writes the row of the key last found, in the window that starts at start. What is too old to be kept is counted.
func (t *windowRows[K, V]) set(v V, null bool, start, ts int64) error {
	data, err := t.encodeValue(v, null)
	if err != nil {
		return err
	}
	if t.held != nil {
		if err := t.hold(start); err != nil {
			return err
		}
		t.held.held[len(t.held.held)-1].ts = ts
	}
	expired, err := t.bytes.Put(t.key, data, start, ts)
	if err != nil {
		return t.failed("put", err)
	}
	if expired {
		t.rt.Dropped(DroppedExpired)
	}
	return nil
}

// StoreView over windows: a row is found by its key and its window's start.
type windowView[K, V any] struct{ store Store[K, V] }

// StoreNames implements ViewSupplier.
func (s windowView[K, V]) StoreNames() []string { return []string{s.store.Name} }

// Open implements ViewSupplier.
func (s windowView[K, V]) Open(rt Runtime) (View[Windowed[K], V], error) {
	t, err := openWindowRows(rt, s.store)
	if err != nil {
		return nil, err
	}
	return unversioned[Windowed[K], V](func(key Windowed[K]) (Row[V], error) { return t.find(key.Key, key.Window.Start) }), nil
}

// unversioned makes a View of a table without history.
type unversioned[K, V any] func(key K) (Row[V], error)

// Get implements View.
func (f unversioned[K, V]) Get(key K) (Row[V], error) { return f(key) }

// GetAsOf implements View.
func (f unversioned[K, V]) GetAsOf(_ K, asOf int64) (Row[V], error) {
	return noRow[V](), fatalf("this table is not versioned: it can't tell a row as of %d", asOf)
}

// Versioned implements View.
func (f unversioned[K, V]) Versioned() bool { return false }
