package processors

import (
	"encoding/binary"
	"slices"

	"github.com/tributary-io/tributary/state"
)

// sessionRows is rows for a session store.
type sessionRows[K, V any] struct {
	coder[K, V]
	bytes     state.SessionBytes
	retention int64      // ms
	inMemory  bool       // the store
	held      *coalesced // of a store whose updates wait for the commit
	sentEnd   int64      // the latest end of a session that was sent, -1 before the first
	row       []byte     // names the row that is written, for held
}

func openSessionRows[K, V any](rt Runtime, s Store[K, V]) (*sessionRows[K, V], error) {
	spec, err := specOf(rt, s.Name)
	if err != nil {
		return nil, fatal(err)
	}
	t := &sessionRows[K, V]{coder: newCoder(rt, s, spec), retention: spec.RetentionMs, inMemory: spec.InMemory}
	t.bytes, err = rt.Stores().SessionBytes(s.Name)
	return t, fatal(err)
}

// holdBack makes the updates of the store wait for the commit, where its spec says so.
func (t *sessionRows[K, V]) holdBack(out *updates[Windowed[K], V]) error {
	spec, err := specOf(t.rt, t.name)
	if err != nil {
		return fatal(err)
	}
	t.held = coalesce(t.rt, spec, func() error { return t.flush(out) })
	out.held = t.held != nil
	t.sentEnd = t.bytes.StreamTime()
	return nil
}

// flush sends what was held back. What the store had before counts only while retention doesn't hide it from the sessions sent so far: of
// older sessions the deletion isn't sent, and an update has no old value. Kafka Streams' record cache reads the old value when it is
// flushed, from a store whose stream time moves by what is flushed.
func (t *sessionRows[K, V]) flush(out *updates[Windowed[K], V]) error {
	return t.held.flush(func(row *heldRow) error {
		if t.hidden(row.window) {
			row.old = nil
		}
		key, err := t.decodeKeyShared(row.key)
		if err != nil {
			return err
		}
		windowed := Windowed[K]{Key: key, Window: row.window}
		now, err := t.get(windowed)
		if err != nil {
			return err
		}
		c, ok, err := t.changeOf(row, now, out.old)
		if err != nil || !ok {
			return err
		}
		t.sentEnd = max(t.sentEnd, row.window.End)
		if t.inMemory && t.hidden(row.window) {
			t.rt.Dropped(DroppedExpired) // as Kafka Streams counts it, whose store below the cache refuses it
		}
		return out.forward(windowed, c, row.window.End, row.by.Headers)
	})
}

// hidden tells whether retention hides a session from the sessions sent so far.
func (t *sessionRows[K, V]) hidden(w Window) bool { return w.End <= t.sentEnd-t.retention }

// hold notes that a session of the key last found is about to be written.
func (t *sessionRows[K, V]) hold(w Window) error {
	if t.held == nil {
		return nil
	}
	t.row = binary.BigEndian.AppendUint64(append(t.row[:0], t.key...), uint64(w.Start))
	t.row = binary.BigEndian.AppendUint64(t.row, uint64(w.End))
	return t.held.touch(t.row, t.key, w, func() ([]byte, error) {
		data, ok, err := t.bytes.Get(t.key, w.Start, w.End, nil)
		if err != nil || !ok {
			return nil, t.failed("get", err)
		}
		return filled(data), nil
	})
}

// get reads one session.
func (t *sessionRows[K, V]) get(key Windowed[K]) (Row[V], error) {
	if err := t.encodeKey(key.Key); err != nil {
		return noRow[V](), err
	}
	data, ok, err := t.bytes.Get(t.key, key.Window.Start, key.Window.End, t.dst())
	if err != nil {
		return noRow[V](), t.failed("get", err)
	}
	if !ok {
		return noRow[V](), nil
	}
	return t.decodeGot(data, key.Window.End)
}

// session is a session in the store.
type session[V any] struct {
	window Window
	value  agg[V]
	again  []byte // the value's bytes, where it may be changed in place
}

// findAll appends to dst the sessions of key, which set and remove then mean, that end at or after earliestEnd and start at or before
// latestStart.
func (t *sessionRows[K, V]) findAll(dst []session[V], key K, earliestEnd, latestStart int64) (_ []session[V], err error) {
	if err := t.encodeKey(key); err != nil {
		return dst, err
	}
	it, err := t.bytes.Find(t.key, earliestEnd, latestStart, state.Forward)
	if err != nil {
		return dst, t.failed("find", err)
	}
	defer func() {
		if closed := it.Close(); err == nil {
			err = fatal(closed)
		}
	}()
	for it.Next() {
		row, err := t.decodeShared(it.Value(), NoTimestamp)
		if err != nil {
			return dst, err
		}
		s := session[V]{window: Window{Start: it.Start(), End: it.End()}, value: agg[V]{row.Value, row.Null}}
		if t.mutable {
			s.again = slices.Clone(t.last)
		}
		dst = append(dst, s)
	}
	return dst, nil
}

// before is a session's value once more, where merging may have changed it in place.
func (t *sessionRows[K, V]) before(s *session[V]) (agg[V], error) {
	if s.again == nil {
		return s.value, nil
	}
	row, err := t.decodeShared(s.again, NoTimestamp)
	return agg[V]{row.Value, row.Null}, err
}

// set writes a session of the key last found; what is too old to be kept is counted.
func (t *sessionRows[K, V]) set(w Window, a agg[V]) error {
	data, err := t.encodeValue(a.value, a.null)
	if err != nil {
		return err
	}
	if err := t.hold(w); err != nil {
		return err
	}
	expired, err := t.bytes.Put(t.key, data, w.Start, w.End)
	if err != nil {
		return t.failed("put", err)
	}
	if expired {
		t.rt.Dropped(DroppedExpired)
	}
	return nil
}

func (t *sessionRows[K, V]) remove(w Window) error {
	if err := t.hold(w); err != nil {
		return err
	}
	if err := t.bytes.Remove(t.key, w.Start, w.End); err != nil {
		return t.failed("remove", err)
	}
	return nil
}

// sessionView is the View of a session store. A row's time is its session's end.
type sessionView[K, V any] struct{ store Store[K, V] }

// StoreNames implements ViewSupplier.
func (s sessionView[K, V]) StoreNames() []string { return []string{s.store.Name} }

// Open implements ViewSupplier.
func (s sessionView[K, V]) Open(rt Runtime) (View[Windowed[K], V], error) {
	t, err := openSessionRows(rt, s.store)
	if err != nil {
		return nil, err
	}
	return unversioned[Windowed[K], V](t.get), nil
}
