package state

import (
	"bytes"
	"slices"
)

// recordCacheBytes is how much a store's record cache may take.
const recordCacheBytes = 1 << 20

// recordCache is the part of Kafka Streams' record cache that readers can tell: a store that keeps less than it is given shows rows as they were
// put, as long as the cache has room for them. A plain store that serves a table shows their times, which it doesn't keep; an LRU map
// shows rows that it has forgotten. What is cached is lost with the process or an abort. It is the task's: views don't look at it.
type recordCache struct {
	rows rowCache
	buf  []byte
}

// CachesRecords tells whether the store shows more than it keeps, for a while: rows that a LRU map has forgotten, the times of a plain store
// that serves a table. KeyValueBytes and WindowBytes give these times then, -1 where they aren't known any more.
func (s *Spec) CachesRecords() bool {
	plain := s.Kind == KeyValue || s.Kind == Window && !s.RetainDuplicates
	return s.Caching && (s.MaxEntries > 0 || plain && !s.Unsent)
}

// get appends the value of key to dst.
func (c *recordCache) get(key, dst []byte) (value []byte, ts int64, ok bool) {
	n := len(dst)
	buf, ok := c.rows.get(rowHash(key), key, dst)
	if !ok {
		return dst, 0, false
	}
	ts = getTS(buf[n:])
	return append(buf[:n], buf[n+8:]...), ts, true
}

// put takes in what was put, a nil value being a delete, or what was read of the store.
func (c *recordCache) put(key, value []byte, ts int64) {
	h := rowHash(key)
	if value == nil {
		c.rows.remove(h, key)
		return
	}
	var head [8]byte
	c.buf = append(append(c.buf[:0], putTS(&head, ts)...), value...)
	c.rows.set(h, key, c.buf, recordCacheBytes)
}

// time is the time of what was put, -1 where it isn't known any more.
func (c *recordCache) time(key []byte) int64 {
	buf, ok := c.rows.get(rowHash(key), key, c.buf[:0])
	if !ok {
		return noTime
	}
	c.buf = buf
	return getTS(buf)
}

// cached tells whether a store has a record cache.
func cached(b any) bool {
	switch s := b.(type) {
	case *keyValue:
		return s.cache != nil
	case *window:
		return s.cache != nil
	}
	return false
}

// GetKept reads the value of a key as the store keeps it, whatever is cached; nil if there is none.
func GetKept(b KeyValueBytes, key []byte) (value []byte, ok bool, err error) {
	if s, isOurs := b.(*keyValue); isOurs && s.cache != nil {
		value, _, ok, err = s.getKept(key, nil)
	} else {
		value, _, ok, err = b.Get(key, nil)
	}
	return value, ok, err
}

func (db *DB) dropRecordCaches() {
	for _, s := range db.stores {
		switch impl := s.impl.(type) {
		case *keyValue:
			if impl.cache != nil {
				impl.cache.rows.clear()
			}
		case *window:
			if impl.cache != nil {
				impl.cache.rows.clear()
			}
		}
	}
}

// merged scans the rows of an LRU map, which it closes, and those among the cached ones that the map has forgotten.
func (c *recordCache) merged(kept KeyValueIterator, reverse bool, within func(key []byte) bool) (KeyValueIterator, error) {
	var out rowList
	c.rows.each(func(key, val []byte) {
		if within(key) {
			out.rows = append(out.rows, BytesEntry{bytes.Clone(key), notNil(bytes.Clone(val[8:])), getTS(val)})
		}
	})
	byKey := func(a, b BytesEntry) int { return bytes.Compare(a.Key, b.Key) }
	slices.SortFunc(out.rows, byKey)
	cached := len(out.rows)
	for kept.Next() {
		row := BytesEntry{Key: kept.Key()}
		if _, known := slices.BinarySearchFunc(out.rows[:cached], row, byKey); !known {
			out.rows = append(out.rows, BytesEntry{bytes.Clone(row.Key), notNil(bytes.Clone(kept.Value())), kept.Timestamp()})
		}
	}
	slices.SortFunc(out.rows, byKey)
	if reverse {
		slices.Reverse(out.rows)
	}
	return &out, kept.Close()
}

// rowList is a KeyValueIterator over rows that were gathered.
type rowList struct {
	rows []BytesEntry
	next int
}

func (l *rowList) Next() bool {
	more := l.next < len(l.rows)
	if more {
		l.next++
	}
	return more
}

func (l *rowList) Key() []byte      { return l.rows[l.next-1].Key }
func (l *rowList) Value() []byte    { return l.rows[l.next-1].Value }
func (l *rowList) Timestamp() int64 { return l.rows[l.next-1].Timestamp }
func (l *rowList) Err() error       { return nil }
func (l *rowList) Close() error     { return nil }
