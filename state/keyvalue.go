package state

import (
	"bytes"
	"fmt"
)

// keyValue is a plain or timestamped key-value store. Its rows are plain keys, its changelog keys are the user's keys.
type keyValue struct {
	access
	lru      *lru
	cache    *recordCache // nil if none would show
	estimate int64        // of a store that stands in for a database; see ApproximateNumEntries
}

func (s *keyValue) rowKey(key []byte) []byte {
	s.row = append(appendPrefix(s.row[:0], s.id, classPlain), key...)
	return s.row
}

func (s *keyValue) changelogKey(row []byte, _ *[]byte) []byte { return row[prefixLen:] }

// Get implements KeyValueBytes.
func (s *keyValue) Get(key, dst []byte) (value []byte, ts int64, ok bool, err error) {
	if s.cache != nil {
		if value, ts, ok = s.cache.get(key, dst); ok {
			return value, ts, true, nil
		}
	}
	value, ts, ok, err = s.getKept(key, dst)
	if s.cache != nil && ok {
		if !s.spec.timestamped() {
			ts = noTime
		}
		s.cache.put(key, notNil(value[len(dst):]), ts)
	}
	return value, ts, ok, err
}

// getKept is Get past the record cache.
func (s *keyValue) getKept(key, dst []byte) (value []byte, ts int64, ok bool, err error) {
	n := len(dst)
	buf, ok, err := s.getRow(s.rowKey(key), dst)
	if err != nil || !ok {
		return dst, 0, false, err
	}
	if s.lru != nil && !s.readOnly {
		s.lru.touch(key)
	}
	value, ts, err = s.cutHead(buf, n)
	return value, ts, err == nil, err
}

// Put implements KeyValueBytes.
func (s *keyValue) Put(key, value []byte, ts int64) error {
	if err := s.writable(); err != nil {
		return err
	}
	e, err := s.write(s.rowKey(key), s.head(ts), value)
	if err != nil {
		return err
	}
	if !s.spec.Caching { // else it counts when it is sealed
		s.count(value != nil)
	}
	if s.lru != nil {
		if err := s.lru.put(s, key, value != nil); err != nil {
			return err
		}
	}
	if s.cache != nil {
		s.cache.put(key, value, ts)
	}
	s.logRow(e, s.headLen(), s.logTime(value, ts))
	return nil
}

// logTime is the timestamp of a changelog record. It is the row's, too, where that shows although the store doesn't keep it.
func (s *keyValue) logTime(value []byte, ts int64) int64 {
	if value != nil && s.cache != nil && !s.spec.Unsent {
		return ts
	}
	return s.access.logTime(value, ts)
}

// PutIfAbsent implements KeyValueBytes.
func (s *keyValue) PutIfAbsent(key, value []byte, ts int64, dst []byte) (old []byte, oldTS int64, ok bool, err error) {
	if err := s.writable(); err != nil {
		return dst, 0, false, err
	}
	old, oldTS, ok, err = s.Get(key, dst)
	if err != nil || ok {
		return old, oldTS, ok, err
	}
	return dst, 0, false, s.Put(key, value, ts)
}

// PutAll implements KeyValueBytes.
func (s *keyValue) PutAll(entries []BytesEntry) error {
	if s.lru != nil {
		return s.putAllLimited(entries)
	}
	for i := range entries {
		if err := s.Put(entries[i].Key, entries[i].Value, entries[i].Timestamp); err != nil {
			return err
		}
	}
	return nil
}

// putAllLimited is PutAll where entries fall out: as in Kafka Streams the tombstones of all that do come before the records of all that are put.
func (s *keyValue) putAllLimited(entries []BytesEntry) error {
	if err := s.writable(); err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := s.write(s.rowKey(e.Key), s.head(e.Timestamp), e.Value); err != nil {
			return err
		}
		if err := s.lru.put(s, e.Key, e.Value != nil); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if s.cache != nil {
			s.cache.put(e.Key, e.Value, e.Timestamp)
		}
		if err := s.logRaw(e.Key, e.Value, s.logTime(e.Value, e.Timestamp)); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements KeyValueBytes.
func (s *keyValue) Delete(key, dst []byte) (old []byte, oldTS int64, ok bool, err error) {
	if err := s.writable(); err != nil {
		return dst, 0, false, err
	}
	old, oldTS, ok, err = s.Get(key, dst)
	if err != nil {
		return dst, 0, false, err
	}
	return old, oldTS, ok, s.Put(key, nil, 0)
}

// Range implements KeyValueBytes.
func (s *keyValue) Range(from, to []byte) (KeyValueIterator, error) { return s.scan(from, to, false) }

// ReverseRange implements KeyValueBytes.
func (s *keyValue) ReverseRange(from, to []byte) (KeyValueIterator, error) {
	return s.scan(from, to, true)
}

func (s *keyValue) scan(from, to []byte, reverse bool) (KeyValueIterator, error) {
	if from != nil && to != nil && bytes.Compare(from, to) > 0 {
		return &keyValueIterator{}, nil
	}
	it, err := s.rows(from, to, reverse)
	if err != nil || s.cache == nil || s.lru == nil {
		return it, err
	}
	return s.cache.merged(it, reverse, func(key []byte) bool {
		return bytes.Compare(key, from) >= 0 && (to == nil || bytes.Compare(key, to) <= 0)
	})
}

// rows scans the rows that the store keeps.
func (s *keyValue) rows(from, to []byte, reverse bool) (KeyValueIterator, error) {
	it := &keyValueIterator{s: s, head: s.headLen()}
	low := append(appendPrefix(it.bounds[:0:len(it.bounds)/2], s.id, classPlain), from...)
	high := it.bounds[len(it.bounds)/2:][:0]
	if to == nil {
		high = appendPrefix(high, s.id, classPlain+1)
	} else {
		high = append(append(appendPrefix(high, s.id, classPlain), to...), 0)
	}
	return it.open(low, high, reverse)
}

// Prefix implements KeyValueBytes.
func (s *keyValue) Prefix(prefix []byte) (KeyValueIterator, error) {
	it := &keyValueIterator{s: s, head: s.headLen()}
	low := append(appendPrefix(it.bounds[:0:len(it.bounds)/2], s.id, classPlain), prefix...)
	high, _ := successor(it.bounds[len(it.bounds)/2:][:0], low) // what is before the prefix ends below 0xff
	rows, err := it.open(low, high, false)
	if err != nil || s.cache == nil || s.lru == nil {
		return rows, err
	}
	return s.cache.merged(rows, false, func(key []byte) bool { return bytes.HasPrefix(key, prefix) })
}

func (s *keyValue) restore(r *RestoreRecord) error {
	_, err := s.write(s.rowKey(r.Key), s.head(r.Timestamp), r.Value)
	s.count(r.Value != nil)
	if err == nil && s.lru != nil {
		err = s.lru.put(s, r.Key, r.Value != nil)
	}
	return err
}

// cachedTime is the time of a plain store's row.
func (s *keyValue) cachedTime(key []byte) int64 {
	if s.cache == nil {
		return 0
	}
	_, ts, ok := s.cache.get(key, s.val[:0])
	if !ok {
		return noTime
	}
	return ts
}

func (s *keyValue) dropped() error {
	if s.readOnly {
		return nil
	}
	if s.cache != nil {
		s.cache.rows.clear()
	} else if s.spec.CachesRecords() {
		s.cache = &recordCache{}
	}
	if s.standsIn() && (!s.spec.Caching || s.open.empty()) { // else what is committed is counted still
		n, err := s.entriesInMemory()
		if err != nil {
			return err
		}
		s.estimate = n
	}
	if s.spec.MaxEntries == 0 {
		return nil
	}
	s.lru = newLRU(s.spec.MaxEntries)
	it, err := s.rows(nil, nil, false)
	if err != nil {
		return err
	}
	for it.Next() {
		s.lru.touchNew(it.Key())
	}
	return it.Close()
}

// keyValueIterator implements KeyValueIterator. The zero value is empty.
type keyValueIterator struct {
	c      cursor
	s      *keyValue
	head   int
	bounds [96]byte // where bounds lie if they are short
}

func (it *keyValueIterator) open(low, high []byte, reverse bool) (KeyValueIterator, error) {
	if err := it.c.init(it.s.store, it.s.readOnly); err != nil {
		return nil, fmt.Errorf("store %q: %w", it.s.spec.Name, err)
	}
	it.c.reset(low, high, reverse, false)
	return it, nil
}

func (it *keyValueIterator) Next() bool {
	if it.s == nil || !it.c.next() {
		return false
	}
	if len(it.c.val) < it.head {
		return it.c.fail(fmt.Errorf("store %q: a stored value of %d bytes has no timestamp: %w", it.s.spec.Name, len(it.c.val), ErrCorruption))
	}
	return true
}

func (it *keyValueIterator) Key() []byte   { return it.c.key()[prefixLen:] }
func (it *keyValueIterator) Value() []byte { return it.c.value()[it.head:] }

func (it *keyValueIterator) Timestamp() int64 {
	if it.head == 0 {
		return it.s.cachedTime(it.Key())
	}
	return getTS(it.c.value())
}

func (it *keyValueIterator) Err() error   { return it.c.err() }
func (it *keyValueIterator) Close() error { return it.c.close() }
