package processors

import "github.com/tributary-io/tributary/state"

// windowRows is rows for a window store: the row of a key and a window's start.
type windowRows[K, V any] struct {
	coder[K, V]
	bytes       state.WindowBytes
	timestamped bool
	retention   int64 // ms
}

func openWindowRows[K, V any](rt Runtime, s Store[K, V]) (*windowRows[K, V], error) {
	spec, err := specOf(rt, s.Name)
	if err != nil {
		return nil, fatal(err)
	}
	t := &windowRows[K, V]{coder: newCoder(rt, s, spec), timestamped: spec.Kind == state.TimestampedWindow, retention: spec.RetentionMs}
	t.bytes, err = rt.Stores().WindowBytes(s.Name)
	return t, fatal(err)
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
	if !t.timestamped {
		ts = NoTimestamp
	}
	return t.decodeGot(data, ts)
}

// set writes the row of the key last found, in the window that starts at start. What is too old to be kept is counted.
func (t *windowRows[K, V]) set(v V, null bool, start, ts int64) error {
	data, err := t.encodeValue(v, null)
	if err != nil {
		return err
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
