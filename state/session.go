package state

import (
	"bytes"
)

// session is a session store, in one of three layouts:
//
//	key-ordered   by key:  segment | user key | end | start -> value
//	time-ordered  by time: segment | end | start | user key -> value
//	              by key:  segment | user key | end | start -> nothing (the index)
//	in memory     by time: segment | end | user key | start, descending -> value
//	              by key:  segment | user key | end | start, descending -> nothing (the index)
//
// The segment is that of the session's end. The orders are those of Kafka Streams' three kinds of session stores.
type session struct {
	access
	noHooks
}

func (s *session) timeOrdered() bool { return s.spec.InMemory || s.spec.TimeOrdered }

func (s *store) appendStart(dst []byte, start int64) []byte {
	if s.spec.InMemory {
		return appendOrderedDesc(dst, start)
	}
	return appendOrdered(dst, start)
}

func (s *store) cutStart(b []byte) int64 {
	if s.spec.InMemory {
		return orderedDesc(b)
	}
	return ordered(b)
}

func (s *store) appendSessionByKey(dst, key []byte, start, end int64) []byte {
	dst = appendOrdered(appendPrefix(dst, s.id, classByKey), s.segment(end))
	dst = appendOrdered(appendEscaped(dst, key), end)
	return s.appendStart(dst, start)
}

func (s *store) appendSessionByTime(dst, key []byte, start, end int64) []byte {
	dst = appendOrdered(appendPrefix(dst, s.id, classByTime), s.segment(end))
	dst = appendOrdered(dst, end)
	if s.spec.InMemory {
		return s.appendStart(appendEscaped(dst, key), start)
	}
	return append(s.appendStart(dst, start), key...)
}

func (s *session) rowKey(key []byte, start, end int64) []byte {
	if s.timeOrdered() {
		s.row = s.appendSessionByTime(s.row[:0], key, start, end)
	} else {
		s.row = s.appendSessionByKey(s.row[:0], key, start, end)
	}
	return s.row
}

// cutSessionRow takes a row's key apart. The user key may lie in scratch.
func (s *store) cutSessionRow(row []byte, scratch *[]byte) (key []byte, start, end int64, ok bool) {
	if len(row) < segmentEnd+sessionKeySuffix {
		return nil, 0, 0, false
	}
	rest := row[segmentEnd:]
	switch {
	case row[2] == classByKey:
		key, rest, ok = cutEscaped(rest, scratch)
		if !ok || len(rest) != sessionKeySuffix {
			return nil, 0, 0, false
		}
		return key, s.cutStart(rest[8:]), ordered(rest), true
	case s.spec.InMemory:
		end = ordered(rest)
		key, rest, ok = cutEscaped(rest[8:], scratch)
		if !ok || len(rest) != 8 {
			return nil, 0, 0, false
		}
		return key, s.cutStart(rest), end, true
	}
	return rest[16:], s.cutStart(rest[8:]), ordered(rest), true
}

func (s *session) changelogKey(row []byte, scratch *[]byte) []byte {
	var unesc []byte
	key, start, end, _ := s.cutSessionRow(row, &unesc)
	*scratch = AppendSessionKey((*scratch)[:0], key, start, end)
	return *scratch
}

// visibleFrom is the earliest end that is not hidden by retention. A store that coalesces its updates hides nothing that it still has: see
// window.visibleFrom.
func (s *session) visibleFrom() int64 {
	if s.spec.Caching {
		return 0
	}
	return subSaturating(s.StreamTime(), s.spec.RetentionMs) + 1
}

// expired is as for windows, by the session's end. A store in memory that coalesces its updates keeps what it will send, as Kafka Streams'
// record cache does.
func (s *session) expired(end int64) bool {
	if s.spec.InMemory && !s.spec.Caching {
		return end <= subSaturating(s.cur.streamTime, s.spec.RetentionMs)
	}
	return s.segment(end) < s.minLiveSegment(s.cur.streamTime)
}

// refuses tells whether a put comes too late to change anything. One that deletes changes what retention only hides, since FindEnded finds that.
func (s *session) refuses(value []byte, end int64) bool {
	if value == nil {
		return s.segment(end) < s.minLiveSegment(s.cur.streamTime)
	}
	return s.expired(end)
}

// Put implements SessionBytes.
func (s *session) Put(key, value []byte, start, end int64) (expired bool, err error) {
	if err := s.writableAt(end); err != nil {
		return false, err
	}
	s.observe(end)
	if s.refuses(value, end) {
		return true, s.logRefused(key, value, start, end)
	}
	return s.expired(end), s.putLogged(key, value, start, end)
}

// logRefused logs what was refused, as Kafka Streams does, unless a restore could take it: where the changelog doesn't keep the order of writes, the one
// that had moved the time may come behind it, and in memory FindEnded would find the session then.
func (s *session) logRefused(key, value []byte, start, end int64) error {
	if s.spec.InMemory && s.db.opt.Policy == LastPerKeyPerCommit {
		return nil
	}
	s.row = AppendSessionKey(s.row[:0], key, start, end)
	return s.logRaw(s.row, value, s.now())
}

// Remove implements SessionBytes.
func (s *session) Remove(key []byte, start, end int64) error {
	if err := s.writable(); err != nil {
		return err
	}
	if !s.spec.InMemory {
		s.observe(end) // as Kafka Streams' RocksDB stores do
	}
	return s.putLogged(key, nil, start, end)
}

func (s *session) putLogged(key, value []byte, start, end int64) error {
	e, err := s.putRow(key, value, start, end)
	if err != nil {
		return err
	}
	s.logRow(e, 0, s.now())
	return nil
}

func (s *session) putRow(key, value []byte, start, end int64) (uint32, error) {
	if s.timeOrdered() {
		s.row2 = s.appendSessionByKey(s.row2[:0], key, start, end)
		if _, err := s.write(s.row2, nil, indexValue(value)); err != nil {
			return 0, err
		}
	}
	return s.write(s.rowKey(key, start, end), nil, value)
}

// Get implements SessionBytes.
func (s *session) Get(key []byte, start, end int64, dst []byte) (value []byte, ok bool, err error) {
	if end < s.visibleFrom() {
		return dst, false, nil
	}
	return s.getRow(s.rowKey(key, start, end), dst)
}

// Fetch implements SessionBytes.
func (s *session) Fetch(key []byte, dir Direction) (SessionIterator, error) {
	return s.Find(key, 0, maxTime, dir)
}

// FetchRange implements SessionBytes.
func (s *session) FetchRange(from, to []byte, dir Direction) (SessionIterator, error) {
	return s.FindRange(from, to, 0, maxTime, dir)
}

// Find implements SessionBytes.
func (s *session) Find(key []byte, earliestEnd, latestStart int64, dir Direction) (SessionIterator, error) {
	it, ok, err := s.scan(classByKey, max(earliestEnd, s.visibleFrom()), maxTime, dir)
	if !ok {
		return it, err
	}
	it.latestStart = latestStart
	var low [8]byte
	it.sc.keyTails(key, appendOrdered(low[:0], it.endFrom), maxSessionSuffix)
	return it, nil
}

// maxSessionSuffix comes after any end and start.
var maxSessionSuffix = bytes.Repeat([]byte{0xff}, sessionKeySuffix+1)

// FindRange implements SessionBytes.
func (s *session) FindRange(from, to []byte, earliestEnd, latestStart int64, dir Direction) (SessionIterator, error) {
	if from != nil && to != nil && bytes.Compare(from, to) > 0 {
		return &sessionIterator{}, nil
	}
	class := classByKey
	if s.spec.InMemory {
		class = classByTime
	}
	it, ok, err := s.scan(class, max(earliestEnd, s.visibleFrom()), maxTime, dir)
	if !ok {
		return it, err
	}
	it.latestStart = latestStart
	it.keyFrom, it.keyTo = bytes.Clone(from), bytes.Clone(to)
	if class == classByKey {
		it.sc.rangeTails(from, to)
	}
	return it, nil
}

// FindEnded implements SessionBytes. Retention hides nothing from it, as in Kafka Streams: sessions are sent on close one millisecond after
// the least retention hides them.
func (s *session) FindEnded(from, to int64) (SessionIterator, error) {
	class := classByKey
	if s.timeOrdered() {
		class = classByTime
	}
	it, ok, err := s.scan(class, from, to, Forward)
	if !ok {
		return it, err
	}
	it.latestStart = maxTime
	return it, nil
}

// scan opens an iterator over the segments that can have sessions ending within from..to. ok is false if there are none, or on error.
func (s *session) scan(class byte, from, to int64, dir Direction) (it *sessionIterator, ok bool, err error) {
	it = &sessionIterator{s: s, endFrom: from, endTo: to}
	streamTime := s.StreamTime()
	if to < it.endFrom || streamTime < 0 {
		return &sessionIterator{}, false, nil
	}
	first := max(0, s.segment(it.endFrom), s.minLiveSegment(streamTime))
	last := min(s.segment(to), s.segment(streamTime))
	if err := it.sc.init(s.store, s.readOnly, class, first, last, dir); err != nil {
		return &sessionIterator{}, false, err
	}
	if class == classByKey && s.timeOrdered() {
		if err := it.sc.useIndex(); err != nil {
			it.sc.close()
			return &sessionIterator{}, false, err
		}
	}
	return it, true, nil
}

func (s *session) restore(r *RestoreRecord) error {
	key, start, end, ok := CutSessionKey(r.Key)
	if !ok {
		return errChangelogKey(r.Key, "session")
	}
	s.observe(end)
	if s.refuses(r.Value, end) {
		return nil
	}
	_, err := s.putRow(key, r.Value, start, end)
	return err
}

// sessionIterator implements SessionIterator. The zero value is empty.
type sessionIterator struct {
	sc             segmentScan
	s              *session
	keyFrom, keyTo []byte
	endFrom, endTo int64
	latestStart    int64

	key        []byte
	start, end int64
	val        []byte
	unesc      []byte
	row        []byte
}

func (it *sessionIterator) Next() bool {
	if it.s == nil {
		return false
	}
	for it.sc.next() {
		row := it.sc.c.key()
		key, start, end, ok := it.s.cutSessionRow(row, &it.unesc)
		if !ok {
			return it.sc.c.fail(it.s.errRow(row))
		}
		if end < it.endFrom || end > it.endTo || start > it.latestStart || !inRange(key, it.keyFrom, it.keyTo) {
			continue
		}
		if it.sc.index {
			it.row = it.s.appendSessionByTime(it.row[:0], key, start, end)
		}
		val, found, err := it.sc.value(it.row)
		if err != nil {
			return it.sc.c.fail(err)
		}
		if !found {
			continue
		}
		it.key, it.start, it.end, it.val = key, start, end, val
		return true
	}
	return false
}

func (it *sessionIterator) Key() []byte   { return it.key }
func (it *sessionIterator) Start() int64  { return it.start }
func (it *sessionIterator) End() int64    { return it.end }
func (it *sessionIterator) Value() []byte { return it.val }
func (it *sessionIterator) Err() error    { return it.sc.c.err() }
func (it *sessionIterator) Close() error  { return it.sc.close() }
