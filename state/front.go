package state

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
)

// rowSeed is that of the hashes by which rows are found in memory.
var rowSeed = maphash.MakeSeed()

func hashRow(row []byte) uint64 { return maphash.Bytes(rowSeed, row) }

// front answers gets in front of a store's Pebble database, out of memory: it keeps rows lately written or read, and a filter of the keys
// that the database has, so that nothing is looked up that isn't there. Both are bounded by the store's share of ResourceOptions.RowBytes,
// of which the filter may take half; a filter that would take more is given up, and keys that the rows don't show are looked up.
//
// It holds what is committed and nothing else: an apply or a restore updates it when the database has been written. A key's newest value is
// found in the write buffer before the front is asked, from its put until the apply is done, so the task never sees the front lag behind.
//
// Safe for concurrent use: an apply may run beside the task's gets.
type front struct {
	limit func() int64
	used  *atomic.Int64 // bytes of all fronts

	mu      sync.Mutex
	rows    rowCache
	filters map[int64]*filter // by segment
	inUse   int64             // bytes of the filters
	last    *filter           // that of lastSeg
	lastSeg int64
	state   filterState
	live    int64       // segments before it have expired
	found   *fillResult // keys that were there when the database was opened
	told    int64       // bytes in used that are this front's
}

// filterState says what the filters are good for.
type filterState int

const (
	filtersFill   filterState = iota // keys from before are being read: they deny nothing yet
	filtersWhole                     // they hold all keys
	filtersTooBig                    // given up
)

// fillResult is what was read of a database when it was opened.
type fillResult struct {
	filters map[int64]*filter
}

// noSegment stands for rows that lie in no segment.
const noSegment = math.MinInt64

func segmentOf(row []byte) int64 {
	if row[2] == classPlain || len(row) < segmentEnd {
		return noSegment
	}
	return ordered(row[prefixLen:])
}

// newFront makes the front of a store whose rows and filters may take limit bytes. A thrifty one has few rows unless those are missed that it hasn't.
func newFront(limit func() int64, used *atomic.Int64, thrifty bool) *front {
	return &front{limit: limit, used: used, rows: rowCache{thrifty: thrifty}, filters: map[int64]*filter{}, lastSeg: noSegment, live: noSegment}
}

// tell counts what the front takes now. mu must be held.
func (f *front) tell() {
	bytes := f.rows.size() + f.inUse
	f.used.Add(bytes - f.told)
	f.told = bytes
}

// get appends the value of a row to dst. known is whether the front can tell; ok whether there is such a row.
func (f *front) get(h uint64, row, dst []byte) (val []byte, ok, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if val, ok := f.rows.get(uint32(h>>32), row, dst); ok {
		return val, true, true
	}
	return dst, false, f.state == filtersWhole && !f.has(h, segmentOf(row))
}

func (f *front) has(h uint64, segment int64) bool {
	if in := f.filter(segment); in != nil && in.has(h) {
		return true
	}
	if f.found != nil {
		if in := f.found.filters[segment]; in != nil {
			return in.has(h)
		}
	}
	return false
}

// filter gives a segment's filter, nil if there is none.
func (f *front) filter(segment int64) *filter {
	if f.last == nil || f.lastSeg != segment {
		f.last, f.lastSeg = f.filters[segment], segment
	}
	return f.last
}

// learn keeps a row that a get found in the database. The task calls it, and no apply can be writing that row: it would be in the write
// buffer.
func (f *front) learn(h uint64, row, val []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.tell()
	f.rows.missed++
	f.rows.set(uint32(h>>32), row, val, f.rowLimit())
}

// fit gives up rows for which there is no room any more: the limit was lowered. Most rows that are written are there already, and need no room.
func (f *front) fit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.tell()
	f.rows.fit(f.rowLimit())
}

func (f *front) rowLimit() int64 { return f.limit() - f.inUse }

// applied takes in what was written to the database. Restored rows are not kept, as there is no telling which of them will be asked for.
func (f *front) applied(o *overlay, restored bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.tell()
	limit := f.rowLimit()
	for e := range uint32(len(o.entries)) {
		h, row, val := o.entries[e].hash, o.entryKey(e), o.value(o.entries[e].last-1)
		if val == nil {
			f.rows.remove(uint32(h>>32), row)
			continue
		}
		if f.rows.replace(uint32(h>>32), row, val) {
			continue // a row that is kept is in its filter
		}
		if f.state != filtersTooBig {
			f.note(h, segmentOf(row))
		}
		if !restored {
			f.rows.set(uint32(h>>32), row, val, limit)
		}
	}
}

// note adds a key to its filter.
func (f *front) note(h uint64, segment int64) {
	in := f.filter(segment)
	if in == nil {
		in = newFilter(f.limit() / int64(len(f.filters)+1))
		f.filters[segment], f.last = in, in
	}
	f.inUse += in.add(h)
	if f.inUse > f.limit()/2 {
		f.giveUp()
	}
}

// close gives the memory back. The front knows nothing from then on.
func (f *front) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.tell()
	f.rows.clear()
	f.limit = func() int64 { return 0 }
	f.giveUp()
}

func (f *front) giveUp() {
	releaseAll(f.filters)
	if f.found != nil {
		releaseAll(f.found.filters)
	}
	f.state, f.filters, f.found, f.last, f.inUse = filtersTooBig, nil, nil, nil, 0
}

func releaseAll(filters map[int64]*filter) {
	for _, in := range filters {
		in.release()
	}
}

// expired forgets the segments before live.
func (f *front) expired(live int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.tell()
	if live <= f.live {
		return
	}
	f.live, f.last = live, nil
	f.rows.removeIf(func(row []byte) bool { return hasExpired(segmentOf(row), live) })
	f.inUse -= dropSegments(f.filters, live)
	if f.found != nil {
		f.inUse -= dropSegments(f.found.filters, live)
	}
}

func hasExpired(segment, live int64) bool { return segment != noSegment && segment < live }

func dropSegments(filters map[int64]*filter, live int64) (bytes int64) {
	for segment, in := range filters {
		if hasExpired(segment, live) {
			bytes += in.size()
			delete(filters, segment)
			in.release()
		}
	}
	return bytes
}

// whole says that nothing was in the database when it was opened.
func (f *front) whole() { f.state = filtersWhole }

// filled takes the keys that were in the database when it was opened: all of them, or nil if they were too many.
func (f *front) filled(found *fillResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.tell()
	if f.state != filtersFill {
		if found != nil {
			releaseAll(found.filters)
		}
		return
	}
	if found == nil {
		f.giveUp()
		return
	}
	f.found, f.state = found, filtersWhole
	for _, in := range found.filters {
		f.inUse += in.size()
	}
	f.rows.fit(f.rowLimit())
}
