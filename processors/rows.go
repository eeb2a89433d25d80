package processors

import "github.com/tributary-io/tributary/state"

// rows reads and writes the rows of a table in a key-value or versioned store.
type rows[K, V any] struct {
	coder[K, V]
	kv          state.KeyValueBytes
	timestamped bool                 // the store keeps times
	timed       bool                 // its rows have times, if only while they are cached
	versions    state.VersionedBytes // instead of kv
	held        *coalesced           // of a store whose updates wait for the commit
}

func openRows[K, V any](rt Runtime, s Store[K, V]) (*rows[K, V], error) {
	spec, err := specOf(rt, s.Name)
	if err != nil {
		return nil, fatal(err)
	}
	t := &rows[K, V]{coder: newCoder(rt, s, spec), timestamped: spec.Kind == state.TimestampedKeyValue}
	t.timed = t.timestamped || spec.CachesRecords()
	switch spec.Kind {
	case state.KeyValue, state.TimestampedKeyValue:
		t.kv, err = rt.Stores().KeyValueBytes(s.Name)
	case state.Versioned:
		t.versions, err = rt.Stores().VersionedBytes(s.Name)
	default:
		err = &state.LookupError{Store: s.Name, Want: "key-value or versioned", Got: spec.Kind}
	}
	return t, fatal(err)
}

// openOwnRows opens the store of a node that sends its updates to out, at once or, where the store's spec says so, at the commit.
func openOwnRows[K, V any](rt Runtime, s Store[K, V], out *updates[K, V]) (*rows[K, V], error) {
	t, err := openRows(rt, s)
	if err != nil || t.kv == nil {
		return t, err
	}
	spec, err := specOf(rt, s.Name)
	if err != nil {
		return nil, fatal(err)
	}
	t.held = coalesce(rt, spec, func() error { return t.flush(out) })
	out.held = t.held != nil
	return t, nil
}

// flush sends what was held back.
func (t *rows[K, V]) flush(out *updates[K, V]) error {
	return t.held.flush(func(row *heldRow) error {
		key, err := t.decodeKeyShared(row.key)
		if err != nil {
			return err
		}
		now, err := t.find(key)
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
		case !t.timestamped:
			ts = row.ts
		}
		return out.forward(key, c, ts, row.by.Headers)
	})
}

// bytesNow reads the bytes of the row that put is about to write, as the store itself has it.
func (t *rows[K, V]) bytesNow() ([]byte, error) {
	data, ok, err := state.GetKept(t.kv, t.key)
	if err != nil || !ok {
		return nil, t.failed("get", err)
	}
	return filled(data), nil
}

func (t *rows[K, V]) versioned() bool { return t.versions != nil }

// find reads the row of a key, which put then writes.
func (t *rows[K, V]) find(key K) (Row[V], error) {
	if err := t.encodeKey(key); err != nil {
		return noRow[V](), err
	}
	if t.versions != nil {
		v, ok, err := t.versions.Get(t.key, t.dst())
		return t.version(v, ok, err)
	}
	data, ts, ok, err := t.kv.Get(t.key, t.dst())
	if err != nil {
		return noRow[V](), t.failed("get", err)
	}
	if !ok {
		return noRow[V](), nil
	}
	if !t.timed {
		ts = NoTimestamp
	}
	return t.decodeGot(data, ts)
}

// at names the key that put then writes, without reading its row.
func (t *rows[K, V]) at(key K) error { return t.encodeKey(key) }

// findAsOf reads the row of a key as it was at a time.
func (t *rows[K, V]) findAsOf(key K, asOf int64) (Row[V], error) {
	if t.versions == nil {
		return noRow[V](), fatalf("store %q is not versioned: it can't tell a row as of %d", t.name, asOf)
	}
	if err := t.encodeKey(key); err != nil {
		return noRow[V](), err
	}
	v, ok, err := t.versions.GetAsOf(t.key, asOf, t.dst())
	return t.version(v, ok, err)
}

func (t *rows[K, V]) version(v state.BytesVersion, ok bool, err error) (Row[V], error) {
	if err != nil {
		return noRow[V](), t.failed("get", err)
	}
	if !ok {
		return noRow[V](), nil
	}
	return t.decodeGot(v.Value, v.ValidFrom)
}

// put writes the row of the key last found. put is false if a versioned store refused it as too old, latest is false if it holds a
// newer version.
func (t *rows[K, V]) put(v V, null bool, ts int64) (put, latest bool, err error) {
	data, err := t.encodeValue(v, null)
	if err != nil {
		return false, false, err
	}
	if t.held != nil {
		if err := t.held.touch(t.key, t.key, Window{}, t.bytesNow); err != nil {
			return false, false, err
		}
		t.held.held[len(t.held.held)-1].ts = ts
	}
	if t.versions == nil {
		if err := t.kv.Put(t.key, data, ts); err != nil {
			return false, false, t.failed("put", err)
		}
		return true, true, nil
	}
	validTo, err := t.versions.Put(t.key, data, ts)
	if err != nil {
		return false, false, t.failed("put", err)
	}
	if validTo == state.VersionNotPut {
		t.rt.Dropped(DroppedExpired)
		return false, false, nil
	}
	return true, validTo == state.LatestVersion, nil
}

// StoreView reads a table's own store, of kind TimestampedKeyValue, KeyValue or Versioned.
type StoreView[K, V any] struct{ Store Store[K, V] }

// StoreNames implements ViewSupplier.
func (s StoreView[K, V]) StoreNames() []string { return []string{s.Store.Name} }

// Open implements ViewSupplier.
func (s StoreView[K, V]) Open(rt Runtime) (View[K, V], error) {
	t, err := openRows(rt, s.Store)
	if err != nil {
		return nil, err
	}
	return rowsView[K, V]{t}, nil
}

type rowsView[K, V any] struct{ rows *rows[K, V] }

// Get implements View.
func (v rowsView[K, V]) Get(key K) (Row[V], error) { return v.rows.find(key) }

// GetAsOf implements View.
func (v rowsView[K, V]) GetAsOf(key K, asOf int64) (Row[V], error) { return v.rows.findAsOf(key, asOf) }

// Versioned implements View.
func (v rowsView[K, V]) Versioned() bool { return v.rows.versioned() }
