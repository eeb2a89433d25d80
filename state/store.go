package state

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
)

// ErrReadOnly is the error of writing through a View, which shows committed state.
var ErrReadOnly = errors.New("state: this view is read-only")

// store is one store of a DB: its rows in the open and the sealed generation and in the base, and the few numbers it keeps. The
// kinds of stores (keyvalue.go, window.go, ...) are built on it.
type store struct {
	db   *DB
	idx  int
	spec Spec
	id   uint16
	base base
	mem  *memoryBase // base, if it is in memory
	// front is asked before the base by the task, nil if there is none. Views don't look at it.
	front *front

	open   *overlay
	sealed atomic.Pointer[overlay]
	spare  *overlay // a former generation's, to be used again
	rested int      // generations without writes, lately
	// savepoint is of the open generation, see DB.Savepoint.
	savepoint savepoint
	// recent is the last generation sealed. Once it is applied the base says the same, at a higher price, so gets go on looking
	// there first. It is the task's: views don't look at it.
	recent *overlay

	cur        storeMeta // of the open generation
	sealedMeta storeMeta
	baseMeta   storeMeta // committed
	committed  atomic.Int64
	expiredTo  int64 // segments below are removed from the base
	marks      []logMark

	impl      kindOps // the task's
	restoring bool
	bulk      bool // between BeginRestore and EndRestore
	scratch   []byte
}

// kindOps is what the DB needs from a kind of store.
type kindOps interface {
	// restore puts a changelog record, without logging it.
	restore(r *RestoreRecord) error
	// changelogKey turns the key of a row into that of its changelog record. It may use scratch.
	changelogKey(row []byte, scratch *[]byte) []byte
	// seal is called before the open generation is closed: the last chance to log.
	seal() error
	// dropped is called after uncommitted writes were dropped.
	dropped() error
}

// storeMeta is what a store keeps beside its rows. It is written in the same batch as they are.
type storeMeta struct {
	offset     int64 // next changelog offset to restore from, NoOffset if unknown
	streamTime int64 // largest timestamp put, -1 before the first
	seq        uint32
	logSeq     uint32
	records    int64 // of time-ordered buffers
	bytes      int64
}

// NoOffset stands for an offset that is not known.
const NoOffset int64 = -1

func emptyMeta() storeMeta { return storeMeta{offset: NoOffset, streamTime: -1} }

// observe advances stream time.
func (s *store) observe(ts int64) {
	if ts > s.cur.streamTime {
		s.cur.streamTime = ts
	}
}

// write writes a row to the open generation. A nil val deletes.
func (s *store) write(row, head, val []byte) (uint32, error) {
	e, err := s.open.set(row, head, val)
	if err != nil {
		return 0, fmt.Errorf("store %q: %w", s.spec.Name, err)
	}
	return e, nil
}

// logs tells whether writes have to be logged now.
func (s *store) logs() bool { return s.spec.logs() && !s.restoring }

// logRow logs a row just written, leaving out the first skip bytes of its value.
func (s *store) logRow(e uint32, skip int, ts int64) {
	if s.logs() {
		policy := s.db.opt.Policy
		if s.spec.Caching {
			policy = LastPerKeyPerCommit
		}
		s.open.logRow(e, skip, ts, policy)
		s.logHeaders()
	}
}

// logRaw logs a record that is not that of a row.
func (s *store) logRaw(key, val []byte, ts int64) error {
	if !s.logs() {
		return nil
	}
	if err := s.open.logRaw(key, val, ts, false); err != nil {
		return fmt.Errorf("store %q: %w", s.spec.Name, err)
	}
	s.logHeaders()
	return nil
}

func (s *store) logHeaders() {
	if s.spec.LogHeaders {
		s.open.logHeaders(s.db.ctx.Headers)
	}
}

// get appends the value of a row to dst.
func (s *store) get(row, dst []byte, committed bool) ([]byte, bool, error) {
	if committed {
		return s.getBase(row, dst)
	}
	h := hashRow(row)
	if val, found := s.open.get(h, row); found {
		return append(dst, val...), val != nil, nil
	}
	return s.getBefore(h, row, dst)
}

// getBefore is get as of the last seal, for the task. h is the row's hash.
func (s *store) getBefore(h uint64, row, dst []byte) ([]byte, bool, error) {
	if s.recent != nil {
		if val, found := s.recent.get(h, row); found {
			return append(dst, val...), val != nil, nil
		}
	}
	if s.mem != nil {
		val, ok := s.mem.getHashed(h, row, dst)
		return val, ok, nil
	}
	if s.front == nil {
		return s.getBase(row, dst)
	}
	if val, ok, known := s.front.get(h, row, dst); known {
		return val, ok, nil
	}
	val, ok, err := s.getBase(row, dst)
	if ok && err == nil {
		s.front.learn(h, row, val[len(dst):])
	}
	return val, ok, err
}

func (s *store) getBase(row, dst []byte) ([]byte, bool, error) {
	val, ok, err := s.base.get(row, dst)
	if err != nil {
		return dst, false, fmt.Errorf("store %q: %w", s.spec.Name, err)
	}
	return val, ok, nil
}

// access is how a store's rows are reached: with what is not committed yet, or without (for views). It owns scratch buffers, so it
// serves one goroutine at a time.
type access struct {
	*store
	readOnly   bool
	row        []byte // scratch: row keys
	row2       []byte
	val        []byte
	low        []byte
	headBuffer [8]byte
}

func (a *access) getRow(row, dst []byte) ([]byte, bool, error) { return a.get(row, dst, a.readOnly) }

// StreamTime is the largest time ever put, -1 before the first.
func (a *access) StreamTime() int64 {
	if a.readOnly {
		return a.committed.Load()
	}
	return a.cur.streamTime
}

func (a *access) writable() error {
	if a.readOnly {
		return fmt.Errorf("store %q: %w", a.spec.Name, ErrReadOnly)
	}
	return nil
}

// writableAt is writable for a time, which must not be negative.
func (a *access) writableAt(ts int64) error {
	if ts < 0 {
		return fmt.Errorf("store %q: put at the negative time %d", a.spec.Name, ts)
	}
	return a.writable()
}

// now is the timestamp of the current record.
func (a *access) now() int64 { return a.db.ctx.Timestamp }

// head gives what goes in front of a value: its timestamp, in timestamped stores.
func (a *access) head(ts int64) []byte {
	if !a.spec.timestamped() {
		return nil
	}
	return putTS(&a.headBuffer, ts)
}

func (a *access) headLen() int {
	if a.spec.timestamped() {
		return 8
	}
	return 0
}

// cutHead splits a stored value that was appended to dst at n.
func (a *access) cutHead(buf []byte, n int) (val []byte, ts int64, err error) {
	if !a.spec.timestamped() {
		return buf, 0, nil
	}
	if len(buf)-n < 8 {
		return nil, 0, fmt.Errorf("store %q: a stored value of %d bytes has no timestamp: %w", a.spec.Name, len(buf)-n, ErrCorruption)
	}
	ts = getTS(buf[n:])
	return append(buf[:n], buf[n+8:]...), ts, nil
}

// logTime is the timestamp of a changelog record: the value's own, or that of the current record for tombstones and plain stores.
func (a *access) logTime(val []byte, ts int64) int64 {
	if val == nil || !a.spec.timestamped() && !a.spec.CachesRecords() {
		return a.now()
	}
	return ts
}

// segment gives the number of the segment that a time falls into.
func (s *store) segment(ts int64) int64 { return ts / s.spec.SegmentMs() }

// retention is how long rows are kept.
func (s *store) retention() int64 {
	if s.spec.Kind == Versioned {
		return s.spec.HistoryMs
	}
	return s.spec.RetentionMs
}

// minLiveSegment is the first segment that has not expired at a stream time.
func (s *store) minLiveSegment(streamTime int64) int64 {
	return s.segment(subSaturating(streamTime, s.retention()))
}

// segmented tells whether rows lie in segments that expire.
func (s *store) segmented() bool { return s.spec.windowed() || s.spec.Kind == Versioned }

func subSaturating(a, b int64) int64 {
	if b > 0 && a < math.MinInt64+b {
		return math.MinInt64
	}
	return a - b
}

// noHooks is embedded by kinds that need no hooks.
type noHooks struct{}

func (noHooks) seal() error    { return nil }
func (noHooks) dropped() error { return nil }
