package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// versioned is a versioned store (KIP-889, KIP-914):
//
//	plain:  user key -> time, value                                 the latest version, unless it is a tombstone
//	by key: segment | user key | time, descending -> valid to, value  older versions
//
// The segment of an older version is that of the time up to which it is valid.
//
// Times between versions are gaps without a value. A tombstone put where nothing follows or precedes it is kept as a version that is
// valid from its time to its time: it bounds versions that are put before it. This follows Kafka Streams, with a row per version in
// place of a row per key and segment.
type versioned struct {
	access
	noHooks
}

const (
	versionRowSuffix = 8
	versionValueHead = 9 // valid to, and whether there is a value
	versionHasValue  = 1
)

func (s *versioned) latestKey(key []byte) []byte {
	s.row = append(appendPrefix(s.row[:0], s.id, classPlain), key...)
	return s.row
}

func (s *versioned) versionKey(key []byte, from, to int64) []byte {
	s.row = appendOrdered(appendPrefix(s.row[:0], s.id, classByKey), s.segment(to))
	s.row = appendOrderedDesc(appendEscaped(s.row, key), from)
	return s.row
}

// version is an older version as it is stored.
type version struct {
	from, to int64
	value    []byte // nil for a tombstone
}

func decodeVersion(row, val []byte) (version, error) {
	if len(row) < segmentEnd+2+versionRowSuffix || len(val) < versionValueHead || val[8] > versionHasValue {
		return version{}, fmt.Errorf("a version's row has an impossible layout (%x, %d bytes): %w", row, len(val), ErrCorruption)
	}
	v := version{from: orderedDesc(row[len(row)-8:]), to: int64(binary.BigEndian.Uint64(val))}
	if val[8] == versionHasValue {
		v.value = val[versionValueHead:]
	}
	return v, nil
}

func (s *versioned) putVersion(key []byte, v version) error {
	var head [versionValueHead]byte
	binary.BigEndian.PutUint64(head[:], uint64(v.to))
	body := noBytes
	if v.value != nil {
		head[8] = versionHasValue
		body = v.value
	}
	_, err := s.write(s.versionKey(key, v.from, v.to), head[:], body)
	return err
}

func (s *versioned) deleteVersion(key []byte, v version) error {
	_, err := s.write(s.versionKey(key, v.from, v.to), nil, nil)
	return err
}

func (s *versioned) changelogKey(row []byte, _ *[]byte) []byte { return row[prefixLen:] }

// latest gives the latest version, appended to dst.
func (s *versioned) latest(key, dst []byte) (v BytesVersion, ok bool, err error) {
	n := len(dst)
	buf, ok, err := s.getRow(s.latestKey(key), dst)
	if err != nil || !ok {
		return v, false, err
	}
	if len(buf)-n < 8 {
		return v, false, fmt.Errorf("store %q: a latest version of %d bytes has no timestamp: %w", s.spec.Name, len(buf)-n, ErrCorruption)
	}
	ts := getTS(buf[n:])
	return BytesVersion{Value: append(buf[:n], buf[n+8:]...), ValidFrom: ts, ValidTo: LatestVersion}, true, nil
}

func (s *versioned) putLatest(key, value []byte, ts int64) error {
	_, err := s.write(s.latestKey(key), putTS(&s.headBuffer, ts), value)
	return err
}

// tooOld tells whether a put at ts is refused.
func (s *versioned) tooOld(ts int64) bool {
	return ts < subSaturating(s.cur.streamTime, s.spec.HistoryMs)
}

// Put implements VersionedBytes.
func (s *versioned) Put(key, value []byte, ts int64) (validTo int64, err error) {
	if err := s.writableAt(ts); err != nil {
		return 0, err
	}
	validTo = VersionNotPut
	if !s.tooOld(ts) {
		if validTo, err = s.put(key, value, ts); err != nil {
			return 0, err
		}
	}
	return validTo, s.logRaw(key, value, ts)
}

// Delete implements VersionedBytes.
func (s *versioned) Delete(key []byte, ts int64, dst []byte) (old BytesVersion, ok bool, err error) {
	if err := s.writableAt(ts); err != nil {
		return old, false, err
	}
	if !s.tooOld(ts) {
		if old, ok, err = s.GetAsOf(key, ts, dst); err != nil {
			return old, false, err
		}
		if _, err := s.put(key, nil, ts); err != nil {
			return old, false, err
		}
	}
	return old, ok, s.logRaw(key, nil, ts)
}

func (s *versioned) put(key, value []byte, ts int64) (validTo int64, err error) {
	s.observe(ts)
	latest, ok, err := s.latest(key, s.val[:0])
	if err != nil {
		return 0, err
	}
	if !ok {
		return s.putOlder(key, value, ts, LatestVersion)
	}
	s.val = latest.Value
	if ts < latest.ValidFrom {
		return s.putOlder(key, value, ts, latest.ValidFrom)
	}
	if ts > latest.ValidFrom {
		if err := s.putVersion(key, version{from: latest.ValidFrom, to: ts, value: notNil(latest.Value)}); err != nil {
			return 0, err
		}
	}
	return LatestVersion, s.putLatest(key, value, ts)
}

// putOlder puts a version that comes before next (LatestVersion if nothing is known to come after it).
func (s *versioned) putOlder(key, value []byte, ts, next int64) (validTo int64, err error) {
	it, err := s.versions(key, ts, s.StreamTime(), Backward)
	if err != nil {
		return 0, err
	}
	defer it.close()
	for it.next() {
		v, err := decodeVersion(it.c.key(), it.c.value())
		if err != nil {
			return 0, err
		}
		if v.to <= ts {
			break
		}
		if v.from <= ts {
			v.value = slices.Clone(v.value) // the iterator's bytes
			return v.to, s.splitVersion(key, value, ts, v)
		}
		next = v.from
	}
	if err := it.close(); err != nil {
		return 0, err
	}
	switch {
	case next != LatestVersion:
		return next, s.putVersion(key, version{from: ts, to: next, value: value})
	case value != nil:
		return LatestVersion, s.putLatest(key, value, ts)
	}
	return LatestVersion, s.putBound(key, ts)
}

// splitVersion puts a version into the time of v: v ends where it begins.
func (s *versioned) splitVersion(key, value []byte, ts int64, v version) error {
	if v.from < ts {
		if s.segment(v.to) != s.segment(ts) {
			if err := s.deleteVersion(key, v); err != nil {
				return err
			}
		}
		if err := s.putVersion(key, version{from: v.from, to: ts, value: v.value}); err != nil {
			return err
		}
	}
	return s.putVersion(key, version{from: ts, to: v.to, value: value})
}

// putBound notes a tombstone that nothing follows, unless a version ends there anyway.
func (s *versioned) putBound(key []byte, ts int64) error {
	it, err := s.versions(key, ts, ts, Backward)
	if err != nil {
		return err
	}
	defer it.close()
	if it.next() {
		v, err := decodeVersion(it.c.key(), it.c.value())
		if err != nil {
			return err
		}
		if v.to == ts {
			return it.close()
		}
	}
	if err := it.close(); err != nil {
		return err
	}
	return s.putVersion(key, version{from: ts, to: ts})
}

// versions scans the older versions of key in the segments of from..to, Backward from the newest to the oldest.
func (s *versioned) versions(key []byte, from, to int64, dir Direction) (*segmentScan, error) {
	streamTime := max(0, s.StreamTime())
	first := max(0, s.segment(from), s.minLiveSegment(streamTime))
	last := min(s.segment(to), s.segment(streamTime))
	sc := &segmentScan{}
	if err := sc.init(s.store, s.readOnly, classByKey, first, last, dir); err != nil {
		return nil, err
	}
	sc.rowsReverse = dir == Forward // rows lie newest first
	sc.keyTails(key, nil, maxVersionSuffix)
	return sc, nil
}

// maxVersionSuffix comes after any time.
var maxVersionSuffix = bytes.Repeat([]byte{0xff}, versionRowSuffix+1)

// Get implements VersionedBytes.
func (s *versioned) Get(key, dst []byte) (v BytesVersion, ok bool, err error) {
	return s.latest(key, dst)
}

// GetAsOf implements VersionedBytes.
func (s *versioned) GetAsOf(key []byte, asOf int64, dst []byte) (v BytesVersion, ok bool, err error) {
	latest, ok, err := s.latest(key, dst)
	if err != nil {
		return v, false, err
	}
	if ok && latest.ValidFrom <= asOf {
		return latest, true, nil
	}
	if asOf < subSaturating(s.StreamTime(), s.spec.HistoryMs) {
		return v, false, nil
	}
	it, err := s.versions(key, asOf, maxTime, Backward)
	if err != nil {
		return v, false, err
	}
	defer it.close()
	for it.next() {
		old, err := decodeVersion(it.c.key(), it.c.value())
		if err != nil {
			return v, false, err
		}
		if old.to <= asOf {
			break
		}
		if old.from <= asOf {
			if old.value == nil {
				break
			}
			return BytesVersion{Value: append(dst, old.value...), ValidFrom: old.from, ValidTo: old.to}, true, it.close()
		}
	}
	return v, false, it.close()
}

// History implements VersionedBytes.
func (s *versioned) History(key []byte, from, to int64, dir Direction) (VersionIterator, error) {
	it := &versionIterator{from: from, to: to, dir: dir}
	latest, ok, err := s.latest(key, nil)
	if err != nil {
		return nil, err
	}
	if ok && latest.ValidFrom <= to {
		it.latest = &latest
	}
	if to < subSaturating(s.StreamTime(), s.spec.HistoryMs) {
		return it, nil
	}
	// Versions that are valid at a time may lie in the segment of any later time.
	if it.older, err = s.versions(key, 0, maxTime, dir); err != nil {
		return nil, err
	}
	return it, nil
}

// versionIterator implements VersionIterator.
type versionIterator struct {
	older    *segmentScan // nil if out of history
	latest   *BytesVersion
	from, to int64
	dir      Direction
	cur      BytesVersion
	failed   error
}

func (it *versionIterator) Next() bool {
	if it.failed != nil {
		return false
	}
	if it.dir == Backward && it.takeLatest() {
		return true
	}
	for it.older != nil && it.older.next() {
		v, err := decodeVersion(it.older.c.key(), it.older.c.value())
		if err != nil {
			it.failed = err
			return false
		}
		if v.value != nil && v.from <= it.to && v.to > it.from {
			it.cur = BytesVersion{Value: v.value, ValidFrom: v.from, ValidTo: v.to}
			return true
		}
	}
	if it.older != nil && it.older.c.err() != nil {
		it.failed = it.older.c.err()
		return false
	}
	return it.dir == Forward && it.takeLatest()
}

func (it *versionIterator) takeLatest() bool {
	if it.latest == nil {
		return false
	}
	it.cur, it.latest = *it.latest, nil
	return true
}

func (it *versionIterator) Version() BytesVersion { return it.cur }
func (it *versionIterator) Err() error            { return it.failed }

func (it *versionIterator) Close() error {
	if it.older == nil {
		return it.failed
	}
	if err := it.older.close(); it.failed == nil {
		it.failed = err
	}
	return it.failed
}

// restore puts a version as Put does; one that is too old by now is left out.
func (s *versioned) restore(r *RestoreRecord) error {
	if s.tooOld(r.Timestamp) {
		return nil
	}
	_, err := s.put(r.Key, r.Value, r.Timestamp)
	return err
}
