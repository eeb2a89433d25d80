package state

import (
	"iter"

	"github.com/tributary-io/tributary/serde"
)

// SessionEntry is an entry of a session store.
type SessionEntry[K, V any] struct {
	Key        K
	Start, End int64
	Value      V
}

// SessionStore is a session store; see SessionBytes for order and expiry. One goroutine at a time.
type SessionStore[K, V any] struct {
	c     coder[K, V]
	bytes SessionBytes
}

// NewSession gives the typed store of kind Session with that name.
func NewSession[K, V any](s Stores, name string, key serde.Codec[K], val serde.Codec[V]) (*SessionStore[K, V], error) {
	c, err := newCoder(name, key, val)
	if err != nil {
		return nil, err
	}
	if err := checkKind(s, name, Session); err != nil {
		return nil, err
	}
	b, err := s.SessionBytes(name)
	if err != nil {
		return nil, err
	}
	return &SessionStore[K, V]{c: c, bytes: b}, nil
}

// Bytes is the store beneath.
func (s *SessionStore[K, V]) Bytes() SessionBytes { return s.bytes }

// Put sets the value of a session. expired: see SessionBytes.Put.
func (s *SessionStore[K, V]) Put(key K, v V, start, end int64) (expired bool, err error) {
	k, err := s.c.encodeKey(key)
	if err != nil {
		return false, err
	}
	data, err := s.c.encodeValue(v)
	if err != nil {
		return false, err
	}
	return s.bytes.Put(k, data, start, end)
}

// Remove removes a session.
func (s *SessionStore[K, V]) Remove(key K, start, end int64) error {
	k, err := s.c.encodeKey(key)
	if err != nil {
		return err
	}
	return s.bytes.Remove(k, start, end)
}

// Get gives the value of exactly that session, if it is there.
func (s *SessionStore[K, V]) Get(key K, start, end int64) (v V, ok bool, err error) {
	k, err := s.c.encodeKey(key)
	if err != nil {
		return v, false, err
	}
	data, ok, err := s.bytes.Get(k, start, end, s.c.dst())
	if err != nil || !ok {
		return v, false, err
	}
	v, err = s.c.decodeGot(data)
	return v, err == nil, err
}

// Fetch scans all sessions of key.
func (s *SessionStore[K, V]) Fetch(key K, dir Direction) iter.Seq2[SessionEntry[K, V], error] {
	return func(yield func(SessionEntry[K, V], error) bool) {
		k, err := s.c.encodeKey(key)
		if err != nil {
			yield(SessionEntry[K, V]{}, err)
			return
		}
		it, err := s.bytes.Fetch(k, dir)
		s.walk(it, err, yield)
	}
}

// FetchRange scans all sessions of the keys from..to; nil is open.
func (s *SessionStore[K, V]) FetchRange(from, to *K, dir Direction) iter.Seq2[SessionEntry[K, V], error] {
	return func(yield func(SessionEntry[K, V], error) bool) {
		f, t, err := s.c.encodeBounds(from, to)
		if err != nil {
			yield(SessionEntry[K, V]{}, err)
			return
		}
		it, err := s.bytes.FetchRange(f, t, dir)
		s.walk(it, err, yield)
	}
}

// Find scans the sessions of key that end at or after earliestEnd and start at or before latestStart.
func (s *SessionStore[K, V]) Find(key K, earliestEnd, latestStart int64, dir Direction) iter.Seq2[SessionEntry[K, V], error] {
	return func(yield func(SessionEntry[K, V], error) bool) {
		k, err := s.c.encodeKey(key)
		if err != nil {
			yield(SessionEntry[K, V]{}, err)
			return
		}
		it, err := s.bytes.Find(k, earliestEnd, latestStart, dir)
		s.walk(it, err, yield)
	}
}

// FindRange is Find over the keys from..to; nil is open.
func (s *SessionStore[K, V]) FindRange(from, to *K, earliestEnd, latestStart int64, dir Direction) iter.Seq2[SessionEntry[K, V], error] {
	return func(yield func(SessionEntry[K, V], error) bool) {
		f, t, err := s.c.encodeBounds(from, to)
		if err != nil {
			yield(SessionEntry[K, V]{}, err)
			return
		}
		it, err := s.bytes.FindRange(f, t, earliestEnd, latestStart, dir)
		s.walk(it, err, yield)
	}
}

// FindEnded scans the sessions of all keys that end within from..to, inclusive, also those that retention hides but that are still kept.
func (s *SessionStore[K, V]) FindEnded(from, to int64) iter.Seq2[SessionEntry[K, V], error] {
	return func(yield func(SessionEntry[K, V], error) bool) {
		it, err := s.bytes.FindEnded(from, to)
		s.walk(it, err, yield)
	}
}

func (s *SessionStore[K, V]) walk(it SessionIterator, err error, yield func(SessionEntry[K, V], error) bool) {
	walk(it, err, yield, func() (e SessionEntry[K, V], err error) {
		e = SessionEntry[K, V]{Start: it.Start(), End: it.End()}
		e.Key, e.Value, err = s.c.decodeRow(it.Key(), it.Value())
		return e, err
	})
}
