package state

import (
	"iter"

	"github.com/tributary-io/tributary/serde"
)

// WindowEntry is an entry of a window store. Timestamp is 0 in plain stores.
type WindowEntry[K, V any] struct {
	Key       K
	Start     int64
	Value     V
	Timestamp int64
}

// WindowStore is a plain window store; see WindowBytes for order and expiry. One goroutine at a time.
type WindowStore[K, V any] struct{ windowReads[K, V] }

// TimestampedWindowStore is a window store whose values carry a timestamp; see WindowBytes for order and expiry. One goroutine at
// a time.
type TimestampedWindowStore[K, V any] struct{ windowReads[K, V] }

// NewWindow gives the typed store of kind Window with that name.
func NewWindow[K, V any](s Stores, name string, key serde.Codec[K], val serde.Codec[V]) (*WindowStore[K, V], error) {
	r, err := openWindow(s, name, Window, key, val)
	if err != nil {
		return nil, err
	}
	return &WindowStore[K, V]{r}, nil
}

// NewTimestampedWindow gives the typed store of kind TimestampedWindow with that name. A plain one will do, too, as for NewTimestampedKeyValue.
func NewTimestampedWindow[K, V any](s Stores, name string, key serde.Codec[K], val serde.Codec[V]) (*TimestampedWindowStore[K, V], error) {
	if spec, ok := s.Spec(name); ok && spec.Kind == Window && !spec.RetainDuplicates {
		r, err := openWindow(s, name, Window, key, val)
		if err != nil {
			return nil, err
		}
		if !cached(r.bytes) {
			r.bytes = untimedWindows{r.bytes}
		}
		return &TimestampedWindowStore[K, V]{r}, nil
	}
	r, err := openWindow(s, name, TimestampedWindow, key, val)
	if err != nil {
		return nil, err
	}
	return &TimestampedWindowStore[K, V]{r}, nil
}

func openWindow[K, V any](s Stores, name string, kind Kind, key serde.Codec[K], val serde.Codec[V]) (r windowReads[K, V], err error) {
	if r.c, err = newCoder(name, key, val); err != nil {
		return r, err
	}
	if err = checkKind(s, name, kind); err != nil {
		return r, err
	}
	r.bytes, err = s.WindowBytes(name)
	return r, err
}

// Put sets the value of a window. expired: see WindowBytes.Put.
func (s *WindowStore[K, V]) Put(key K, v V, start int64) (expired bool, err error) {
	return s.put(key, v, start, 0)
}

// Get gives the value of one window, if it has one.
func (s *WindowStore[K, V]) Get(key K, start int64) (v V, ok bool, err error) {
	v, _, ok, err = s.get(key, start)
	return v, ok, err
}

// Put sets the value and timestamp of a window. expired: see WindowBytes.Put.
func (s *TimestampedWindowStore[K, V]) Put(key K, v V, start, ts int64) (expired bool, err error) {
	return s.put(key, v, start, ts)
}

// Get gives the value and timestamp of one window, if it has one.
func (s *TimestampedWindowStore[K, V]) Get(key K, start int64) (v V, ts int64, ok bool, err error) {
	return s.get(key, start)
}

// windowReads is what plain and timestamped window stores share.
type windowReads[K, V any] struct {
	c     coder[K, V]
	bytes WindowBytes
}

// Bytes is the store beneath.
func (s *windowReads[K, V]) Bytes() WindowBytes { return s.bytes }

// Delete removes the value of a window.
func (s *windowReads[K, V]) Delete(key K, start int64) (expired bool, err error) {
	k, err := s.c.encodeKey(key)
	if err != nil {
		return false, err
	}
	return s.bytes.Put(k, nil, start, 0)
}

// Fetch scans the windows of key that start within from..to, inclusive.
func (s *windowReads[K, V]) Fetch(key K, from, to int64) iter.Seq2[WindowEntry[K, V], error] {
	return s.fetch(key, from, to, Forward)
}

// BackwardFetch is Fetch from the latest to the earliest.
func (s *windowReads[K, V]) BackwardFetch(key K, from, to int64) iter.Seq2[WindowEntry[K, V], error] {
	return s.fetch(key, from, to, Backward)
}

// FetchRange scans the windows of the keys keyFrom..keyTo (nil is open) that start within from..to.
func (s *windowReads[K, V]) FetchRange(keyFrom, keyTo *K, from, to int64, dir Direction) iter.Seq2[WindowEntry[K, V], error] {
	return func(yield func(WindowEntry[K, V], error) bool) {
		f, t, err := s.c.encodeBounds(keyFrom, keyTo)
		if err != nil {
			yield(WindowEntry[K, V]{}, err)
			return
		}
		it, err := s.bytes.FetchRange(f, t, from, to, dir)
		s.walk(it, err, yield)
	}
}

// FetchAll scans all windows that start within from..to.
func (s *windowReads[K, V]) FetchAll(from, to int64, dir Direction) iter.Seq2[WindowEntry[K, V], error] {
	return func(yield func(WindowEntry[K, V], error) bool) {
		it, err := s.bytes.FetchAll(from, to, dir)
		s.walk(it, err, yield)
	}
}

// All scans all windows.
func (s *windowReads[K, V]) All(dir Direction) iter.Seq2[WindowEntry[K, V], error] {
	return func(yield func(WindowEntry[K, V], error) bool) {
		it, err := s.bytes.All(dir)
		s.walk(it, err, yield)
	}
}

func (s *windowReads[K, V]) put(key K, v V, start, ts int64) (expired bool, err error) {
	k, err := s.c.encodeKey(key)
	if err != nil {
		return false, err
	}
	data, err := s.c.encodeValue(v)
	if err != nil {
		return false, err
	}
	return s.bytes.Put(k, data, start, ts)
}

func (s *windowReads[K, V]) get(key K, start int64) (v V, ts int64, ok bool, err error) {
	k, err := s.c.encodeKey(key)
	if err != nil {
		return v, 0, false, err
	}
	data, ts, ok, err := s.bytes.Get(k, start, s.c.dst())
	if err != nil || !ok {
		return v, 0, false, err
	}
	v, err = s.c.decodeGot(data)
	return v, ts, err == nil, err
}

func (s *windowReads[K, V]) fetch(key K, from, to int64, dir Direction) iter.Seq2[WindowEntry[K, V], error] {
	return func(yield func(WindowEntry[K, V], error) bool) {
		k, err := s.c.encodeKey(key)
		if err != nil {
			yield(WindowEntry[K, V]{}, err)
			return
		}
		it, err := s.bytes.Fetch(k, from, to, dir)
		s.walk(it, err, yield)
	}
}

func (s *windowReads[K, V]) walk(it WindowIterator, err error, yield func(WindowEntry[K, V], error) bool) {
	walk(it, err, yield, func() (e WindowEntry[K, V], err error) {
		e = WindowEntry[K, V]{Start: it.Start(), Timestamp: it.Timestamp()}
		e.Key, e.Value, err = s.c.decodeRow(it.Key(), it.Value())
		return e, err
	})
}
