package state

import (
	"encoding/binary"
	"fmt"
)

// This file finds out how much of a windowed store's changelog is of expired windows only. Brokers could only tell by the clock on the
// wall, which says nothing of events of long ago.

// logMark says that all that the changelog has before an offset is of windows or sessions no later than a time.
type logMark struct{ before, time int64 }

// marksPerRetention is how many marks are made while windows live: the changelog is kept for up to this part longer than it has to be.
const marksPerRetention = 8

// mark notes where the changelog is, if stream time has gone on enough since the last mark; added tells that. What a mark says stays true
// whatever becomes of the batch that m is written with.
func (s *store) mark(m *storeMeta) (added bool) {
	if !s.spec.windowed() || m.offset == NoOffset || m.streamTime < 0 {
		return false
	}
	if n := len(s.marks); n > 0 {
		spacing := addSaturating(s.spec.RetentionMs, expiredLogKeptMs) / marksPerRetention
		if last := s.marks[n-1]; m.offset <= last.before || m.streamTime < addSaturating(last.time, spacing) {
			return false
		}
	}
	if n := s.expiredMarks(m.streamTime); n > 1 { // the newest one says it all
		s.marks = append(s.marks[:0], s.marks[n-1:]...)
	}
	s.marks = append(s.marks, logMark{m.offset, m.streamTime})
	return true
}

// expiredMarks counts the marks before which all has expired for long enough.
func (s *store) expiredMarks(streamTime int64) (n int) {
	live := s.minLiveSegment(subSaturating(streamTime, expiredLogKeptMs))
	for n < len(s.marks) && s.segment(s.marks[n].time) < live {
		n++
	}
	return n
}

// ExpiredBefore is the changelog offset before which everything is of windows or sessions that expired from the store a day of stream time
// ago, or more; ok is false if nothing is known to be. Records before it may be deleted: no store that is restored from the rest lacks
// anything. It must not be called beside Generation.Apply or Restore.
func (db *DB) ExpiredBefore(name string) (next int64, ok bool) {
	s := db.byName[name]
	if s == nil {
		return 0, false
	}
	n := s.expiredMarks(s.baseMeta.streamTime)
	if n == 0 {
		return 0, false
	}
	return s.marks[n-1].before, true
}

func storeMarksKey(dst []byte, id uint16) []byte {
	return append(appendPrefix(dst, id, classMeta), storeMarksTag)
}

const (
	storeMarksVersion = 1
	logMarkLen        = 8 + 8
)

func encodeMarks(dst []byte, marks []logMark) []byte {
	dst = append(dst, storeMarksVersion)
	for _, m := range marks {
		dst = binary.BigEndian.AppendUint64(dst, uint64(m.before))
		dst = binary.BigEndian.AppendUint64(dst, uint64(m.time))
	}
	return dst
}

func decodeMarks(b []byte) ([]logMark, error) {
	if len(b) < 1 || b[0] != storeMarksVersion {
		return nil, fmt.Errorf("changelog marks of unknown version: %w", ErrIncompatible)
	}
	b = b[1:]
	if len(b)%logMarkLen != 0 {
		return nil, fmt.Errorf("changelog marks of %d bytes: %w", len(b), ErrCorruption)
	}
	marks := make([]logMark, len(b)/logMarkLen)
	for i := range marks {
		marks[i] = logMark{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}
		b = b[logMarkLen:]
	}
	return marks, nil
}

// loadMarks reads the marks of a store on disk.
func (s *store) loadMarks() error {
	val, ok, err := s.db.pebble.get(storeMarksKey(nil, s.id), nil)
	if err == nil && ok {
		s.marks, err = decodeMarks(val)
	}
	if err != nil {
		return fmt.Errorf("store %q in %s: %w", s.spec.Name, s.db.pebble.dir, err)
	}
	return nil
}
