package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// window is a plain or timestamped window store, in one of two layouts:
//
//	key-ordered   by key:  segment | user key | start | sequence number -> value
//	time-ordered  by time: segment | start | user key | sequence number -> value
//	              by key:  segment | user key | start | sequence number -> nothing (the index)
//
// Time-ordered are in-memory stores, and those of aggregations that emit on window close. The sequence number is 0 unless duplicates are
// retained.
type window struct {
	access
	noHooks
	cache *recordCache // of the times of a plain store, nil if none would show; by rows as they are ordered by key
}

func (s *window) timeOrdered() bool { return s.spec.InMemory || s.spec.TimeOrdered }

func (s *store) appendWindowByKey(dst, key []byte, start int64, seq uint32) []byte {
	dst = appendOrdered(appendPrefix(dst, s.id, classByKey), s.segment(start))
	dst = appendOrdered(appendEscaped(dst, key), start)
	return binary.BigEndian.AppendUint32(dst, seq)
}

func (s *store) appendWindowByTime(dst, key []byte, start int64, seq uint32) []byte {
	dst = appendOrdered(appendPrefix(dst, s.id, classByTime), s.segment(start))
	dst = appendEscaped(appendOrdered(dst, start), key)
	return binary.BigEndian.AppendUint32(dst, seq)
}

// rowKey gives the key of the row that holds the value.
func (s *window) rowKey(key []byte, start int64, seq uint32) []byte {
	if s.timeOrdered() {
		s.row = s.appendWindowByTime(s.row[:0], key, start, seq)
	} else {
		s.row = s.appendWindowByKey(s.row[:0], key, start, seq)
	}
	return s.row
}

// cutWindowRow takes a row's key apart. The user key may lie in scratch.
func cutWindowRow(row []byte, scratch *[]byte) (key []byte, start int64, seq uint32, ok bool) {
	if len(row) < segmentEnd+windowKeySuffix {
		return nil, 0, 0, false
	}
	if row[2] == classByTime {
		key, rest, ok := cutEscaped(row[segmentEnd+8:], scratch)
		if !ok || len(rest) != 4 {
			return nil, 0, 0, false
		}
		return key, ordered(row[segmentEnd:]), binary.BigEndian.Uint32(rest), true
	}
	key, rest, ok := cutEscaped(row[segmentEnd:], scratch)
	if !ok || len(rest) != windowKeySuffix {
		return nil, 0, 0, false
	}
	return key, ordered(rest), binary.BigEndian.Uint32(rest[8:]), true
}

func (s *window) changelogKey(row []byte, scratch *[]byte) []byte {
	var unesc []byte
	key, start, seq, _ := cutWindowRow(row, &unesc)
	*scratch = AppendWindowKey((*scratch)[:0], key, start, seq)
	return *scratch
}

// visibleFrom is the earliest start that is not hidden by retention. Time-ordered persistent stores show one more, since Kafka Streams
// looks up windows there when they close. A store that coalesces its updates hides nothing that it still has, as Kafka Streams' record cache
// doesn't.
func (s *window) visibleFrom() int64 {
	if s.spec.Caching {
		return 0
	}
	from := subSaturating(s.StreamTime(), s.spec.RetentionMs)
	if s.spec.TimeOrdered && !s.spec.InMemory {
		return from
	}
	return from + 1
}

// expired tells whether a put at start comes too late, given that stream time includes it: in memory once it would be hidden, on disk
// once its segment is gone.
func (s *window) expired(start int64) bool {
	if s.spec.InMemory {
		return start <= subSaturating(s.cur.streamTime, s.spec.RetentionMs)
	}
	return s.segment(start) < s.minLiveSegment(s.cur.streamTime)
}

// Put implements WindowBytes.
func (s *window) Put(key, value []byte, start, ts int64) (expired bool, err error) {
	if err := s.writableAt(start); err != nil {
		return false, err
	}
	if s.spec.RetainDuplicates {
		return s.putDuplicate(key, value, start, ts)
	}
	s.observe(start)
	expired = s.expired(start)
	if expired && (!s.spec.Caching || s.segment(start) < s.minLiveSegment(s.cur.streamTime)) {
		// Kafka Streams logs what its store refused.
		s.row = AppendWindowKey(s.row[:0], key, start, 0)
		return true, s.logRaw(s.row, value, s.logTime(value, ts))
	}
	// What a store in memory refuses is there as long as Kafka Streams' record cache has it.
	e, err := s.putRow(key, value, start, ts, 0)
	if err != nil {
		return false, err
	}
	if s.cache != nil {
		s.cache.put(s.cachedKey(key, start), value, ts)
	}
	s.logRow(e, s.headLen(), s.logTime(value, ts))
	return expired, nil
}

// cachedKey is what the record cache knows a row by.
func (s *window) cachedKey(key []byte, start int64) []byte {
	s.row2 = s.appendWindowByKey(s.row2[:0], key, start, 0)
	return s.row2
}

// plainTime is the time of a plain store's row.
func (s *window) plainTime(key []byte, start int64) int64 {
	if s.cache == nil {
		return 0
	}
	return s.cache.time(s.cachedKey(key, start))
}

func (s *window) dropped() error {
	switch {
	case s.cache != nil:
		s.cache.rows.clear()
	case !s.readOnly && s.spec.CachesRecords():
		s.cache = &recordCache{}
	}
	return nil
}

// putDuplicate puts into a store that retains duplicates. The changelog has sequence numbers of its own, as in Kafka Streams: it counts
// nulls, which the store ignores.
func (s *window) putDuplicate(key, value []byte, start, ts int64) (expired bool, err error) {
	if value != nil {
		s.observe(start)
		expired = s.expired(start)
		if !expired || !s.spec.InMemory {
			s.cur.seq = nextSeq(s.cur.seq)
		}
		if !expired {
			if _, err := s.putRow(key, value, start, ts, s.cur.seq); err != nil {
				return false, err
			}
		}
	} else if s.spec.InMemory {
		s.observe(start)
		expired = s.expired(start)
	}
	s.cur.logSeq = nextSeq(s.cur.logSeq)
	s.row = AppendWindowKey(s.row[:0], key, start, s.cur.logSeq)
	return expired, s.logRaw(s.row, value, s.logTime(value, ts))
}

func nextSeq(seq uint32) uint32 { return (seq + 1) & 0x7fffffff }

// putRow writes the row and, in the time-ordered layout, its index entry.
func (s *window) putRow(key, value []byte, start, ts int64, seq uint32) (uint32, error) {
	if s.timeOrdered() {
		s.row2 = s.appendWindowByKey(s.row2[:0], key, start, seq)
		if _, err := s.write(s.row2, nil, indexValue(value)); err != nil {
			return 0, err
		}
	}
	return s.write(s.rowKey(key, start, seq), s.head(ts), value)
}

var noBytes = []byte{}

// indexValue is the value of the index entry of a row with that value.
func indexValue(value []byte) []byte {
	if value == nil {
		return nil
	}
	return noBytes
}

// Get implements WindowBytes.
func (s *window) Get(key []byte, start int64, dst []byte) (value []byte, ts int64, ok bool, err error) {
	if start < s.visibleFrom() || s.spec.RetainDuplicates && (s.spec.InMemory || s.readOnly) {
		return dst, 0, false, nil
	}
	var seq uint32
	if s.spec.RetainDuplicates {
		seq = s.cur.seq
	}
	n := len(dst)
	buf, ok, err := s.getRow(s.rowKey(key, start, seq), dst)
	if err != nil || !ok {
		return dst, 0, false, err
	}
	value, ts, err = s.cutHead(buf, n)
	if !s.spec.timestamped() {
		ts = s.plainTime(key, start)
	}
	return value, ts, err == nil, err
}

// Fetch implements WindowBytes.
func (s *window) Fetch(key []byte, from, to int64, dir Direction) (WindowIterator, error) {
	it, ok, err := s.scan(classByKey, from, to, dir)
	if !ok {
		return it, err
	}
	var low, high [windowKeySuffix + 1]byte
	it.sc.keyTails(key, appendOrdered(low[:0], it.from), append(appendOrdered(high[:0], to), 0xff, 0xff, 0xff, 0xff, 0))
	return it, nil
}

// FetchRange implements WindowBytes.
func (s *window) FetchRange(keyFrom, keyTo []byte, from, to int64, dir Direction) (WindowIterator, error) {
	if keyFrom != nil && keyTo != nil && bytes.Compare(keyFrom, keyTo) > 0 {
		return &windowIterator{}, nil
	}
	class := classByKey
	if s.spec.InMemory {
		class = classByTime
	}
	it, ok, err := s.scan(class, from, to, dir)
	if !ok {
		return it, err
	}
	it.keyFrom, it.keyTo = bytes.Clone(keyFrom), bytes.Clone(keyTo)
	if class == classByKey {
		it.sc.rangeTails(keyFrom, keyTo)
	}
	return it, nil
}

// FetchAll implements WindowBytes.
func (s *window) FetchAll(from, to int64, dir Direction) (WindowIterator, error) {
	class := classByKey
	if s.timeOrdered() {
		class = classByTime
	}
	it, ok, err := s.scan(class, from, to, dir)
	if !ok {
		return it, err
	}
	return it, nil
}

// All implements WindowBytes.
func (s *window) All(dir Direction) (WindowIterator, error) {
	return s.FetchAll(0, maxTime, dir)
}

const maxTime = 1<<63 - 1

// scan opens an iterator over the segments that can have windows starting within from..to. ok is false if there are none, or on error.
func (s *window) scan(class byte, from, to int64, dir Direction) (it *windowIterator, ok bool, err error) {
	it = &windowIterator{s: s, from: max(from, s.visibleFrom()), to: to, head: s.headLen()}
	streamTime := s.StreamTime()
	if to < it.from || streamTime < 0 {
		return &windowIterator{}, false, nil
	}
	first := max(0, s.segment(it.from), s.minLiveSegment(streamTime))
	last := min(s.segment(to), s.segment(streamTime))
	if err := it.sc.init(s.store, s.readOnly, class, first, last, dir); err != nil {
		return &windowIterator{}, false, err
	}
	if class == classByKey && s.timeOrdered() {
		if err := it.sc.useIndex(); err != nil {
			it.sc.close()
			return &windowIterator{}, false, err
		}
	}
	return it, true, nil
}

func (s *window) restore(r *RestoreRecord) error {
	key, start, seq, ok := CutWindowKey(r.Key)
	if !ok {
		return errChangelogKey(r.Key, "window")
	}
	if s.spec.RetainDuplicates {
		s.cur.seq = max(s.cur.seq, seq)
		s.cur.logSeq = s.cur.seq
		if r.Value == nil { // a put that did nothing, except that in memory it moved the time
			if s.spec.InMemory {
				s.observe(start)
			}
			return nil
		}
	}
	s.observe(start)
	if s.expired(start) {
		return nil
	}
	_, err := s.putRow(key, r.Value, start, r.Timestamp, seq)
	return err
}

// windowIterator implements WindowIterator. The zero value is empty.
type windowIterator struct {
	sc             segmentScan
	s              *window
	keyFrom, keyTo []byte
	from, to       int64
	head           int

	key   []byte
	start int64
	val   []byte
	unesc []byte
	row   []byte
}

func (it *windowIterator) Next() bool {
	if it.s == nil {
		return false
	}
	for it.sc.next() {
		row := it.sc.c.key()
		key, start, seq, ok := cutWindowRow(row, &it.unesc)
		if !ok {
			return it.sc.c.fail(it.s.errRow(row))
		}
		if start < it.from || start > it.to || !inRange(key, it.keyFrom, it.keyTo) {
			continue
		}
		if it.sc.index {
			it.row = it.s.appendWindowByTime(it.row[:0], key, start, seq)
		}
		val, found, err := it.sc.value(it.row)
		if err != nil {
			return it.sc.c.fail(err)
		}
		if !found {
			continue
		}
		if len(val) < it.head {
			return it.sc.c.fail(fmt.Errorf("store %q: a stored value of %d bytes has no timestamp: %w", it.s.spec.Name, len(val), ErrCorruption))
		}
		it.key, it.start, it.val = key, start, val
		return true
	}
	return false
}

func (it *windowIterator) Key() []byte   { return it.key }
func (it *windowIterator) Start() int64  { return it.start }
func (it *windowIterator) Value() []byte { return it.val[it.head:] }

func (it *windowIterator) Timestamp() int64 {
	if it.head == 0 {
		return it.s.plainTime(it.key, it.start)
	}
	return getTS(it.val)
}

func (it *windowIterator) Err() error   { return it.sc.c.err() }
func (it *windowIterator) Close() error { return it.sc.close() }
