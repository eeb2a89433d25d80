package state

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// ErrSealed says that a sealed generation is still waiting to be applied or dropped.
var ErrSealed = errors.New("state: the sealed generation has not been applied or dropped")

// bufferHeaders marks the format of a suppress buffer's changelog values, as Kafka Streams does.
var bufferHeaders = []Header{{Key: "v", Value: []byte{3}}}

// Generation is a sealed generation: the writes between two calls of Seal. It is valid until it is applied or dropped.
type Generation struct {
	db  *DB
	rec ChangelogRecord
	key []byte
}

// Seal closes the open generation and opens the next. There can be one sealed generation at a time (ErrSealed).
func (db *DB) Seal() (*Generation, error) {
	if db.pending.Load() {
		return nil, ErrSealed
	}
	for _, s := range db.stores {
		if s.bulk {
			return nil, fmt.Errorf("store %q is still being restored: EndRestore has not been called", s.spec.Name)
		}
		if err := s.impl.seal(); err != nil {
			return nil, fmt.Errorf("store %q: %w", s.spec.Name, err)
		}
	}
	for _, s := range db.stores {
		if err := s.dropNeedlessTombstones(); err != nil {
			return nil, err
		}
		s.sealedMeta = s.cur
		s.savepoint.set = false
		if s.open.empty() {
			s.rest()
			continue
		}
		s.rested = 0
		s.retire()
		next := s.takeSpare()
		next.need = len(s.open.buf)
		s.sealed.Store(s.open)
		s.open, s.recent = next, s.open
	}
	if err := db.flushAtRest(); err != nil {
		return nil, err
	}
	db.pending.Store(true)
	return &db.gen, nil
}

// dropNeedlessTombstones leaves those out of the changelog of a store that coalesces its updates whose row was neither there at the last
// commit nor is now: nothing has changed since.
func (s *store) dropNeedlessTombstones() error {
	if !s.spec.Caching || s.spec.Unsent {
		return nil
	}
	for i := range s.open.log {
		r := &s.open.log[i]
		if r.valLen >= 0 || r.flags&(logRaw|logSuperseded) != 0 {
			continue
		}
		before := false
		e := &s.open.entries[r.of]
		var err error
		if s.scratch, before, err = s.getBefore(e.hash, s.open.entryKey(r.of), s.scratch[:0]); err != nil {
			return err
		}
		if !before {
			r.flags |= logSuperseded
		}
	}
	return nil
}

// restAfter is after how many generations without writes a store lets go of its buffers.
const restAfter = 8

// rest lets go of the buffers of a store that isn't written any more: a table that is only read keeps what reading its topic took, else.
func (s *store) rest() {
	if s.rested++; s.rested == restAfter {
		s.retire() // what recent tells the base does, too
		s.spare = nil
		if s.open.users == 0 {
			s.open = newOverlay(s.db.overlays)
		}
	}
}

// retire makes the last generation's overlay ready to be used again, once it is applied or dropped.
func (s *store) retire() {
	o := s.recent
	s.recent = nil
	if o != nil && o.users == 0 { // else an iterator keeps it
		o.reset()
		s.spare = o
	}
}

// flushFrom is from how many bytes on a database at rest writes out what it has in memory.
const flushFrom = 512 << 10

// flushAtRest writes out, once none of the stores is written any more, what Pebble still has in memory: it does so itself only when half a memtable has come
// together, and large batches, such as those of a table that was read, lie on the Go heap until then.
func (db *DB) flushAtRest() error {
	if db.unflushed < flushFrom || slices.ContainsFunc(db.stores, func(s *store) bool { return s.rested < restAfter }) {
		return nil
	}
	db.unflushed = 0
	if _, err := db.pebble.db.AsyncFlush(); err != nil {
		return db.pebble.wrap("flush state", err)
	}
	return nil
}

// takeSpare gives an empty overlay.
func (s *store) takeSpare() *overlay {
	o := s.spare
	s.spare = nil
	if o == nil {
		return newOverlay(s.db.overlays)
	}
	return o
}

// Empty tells whether the generation has neither rows nor changelog records.
func (g *Generation) Empty() bool {
	for _, s := range g.db.stores {
		if s.sealed.Load() != nil {
			return false
		}
	}
	return true
}

// Bytes is the memory that the generation takes.
func (g *Generation) Bytes() int64 {
	var n int64
	for _, s := range g.db.stores {
		if o := s.sealed.Load(); o != nil {
			n += o.size()
		}
	}
	return n
}

// Changelog walks over the generation's changelog records: store by store, each in the order of its writes. The record is reused by
// the next step. It may run beside reads and writes of the stores.
func (g *Generation) Changelog() iter.Seq[*ChangelogRecord] {
	return func(yield func(*ChangelogRecord) bool) {
		for _, s := range g.db.stores {
			o := s.sealed.Load()
			if o == nil {
				continue
			}
			headers := o.headers
			for i := range o.log {
				r := &o.log[i]
				g.rec.Headers = nil
				if r.flags&logOwnHeaders != 0 {
					g.rec.Headers, headers = headers[0], headers[1:]
				}
				if r.flags&logSuperseded == 0 {
					g.fill(s, o, r)
					if !yield(&g.rec) {
						return
					}
				}
			}
		}
	}
}

// fill fills in the record, but for headers of its own.
func (g *Generation) fill(s *store, o *overlay, r *logRecord) {
	g.rec.Store = s.idx
	g.rec.Timestamp = r.ts
	if r.flags&logFormat != 0 {
		g.rec.Headers = bufferHeaders
	}
	if r.flags&logRaw == 0 {
		g.rec.Key = s.impl.changelogKey(o.entryKey(r.of), &g.key)
	} else {
		g.rec.Key = o.rawKey(r)
	}
	g.rec.Value = o.logValue(r)
}

// Apply writes the generation to the base. offsets holds, by store, the next changelog offset after the generation's records; nil, or
// NoOffset for a store, leaves what is there. meta replaces the task's bytes unless it is nil.
//
// On disk everything is one atomic batch, not synced. Apply may run on another goroutine than the task's. After an error the generation
// is still sealed, and the state is to be closed and restored.
func (g *Generation) Apply(offsets []int64, meta []byte) error {
	db := g.db
	if !db.pending.Load() {
		return errors.New("state: no sealed generation to apply")
	}
	if offsets != nil && len(offsets) != len(db.stores) {
		return fmt.Errorf("state: %d offsets for %d stores", len(offsets), len(db.stores))
	}
	for i, s := range db.stores {
		if offsets != nil && offsets[i] != NoOffset {
			s.sealedMeta.offset = offsets[i]
		} else {
			s.sealedMeta.offset = s.baseMeta.offset
		}
	}
	if err := db.apply(db.stores, sealedOf, meta); err != nil {
		return err
	}
	for _, s := range db.stores {
		if s.sealed.Load() != nil {
			s.sealed.Store(nil)
			if s.mem != nil && db.opt.Alone { // the base says the same at the same price
				s.retire()
			}
		}
	}
	db.pending.Store(false)
	return nil
}

// Release gives the memory of a generation that is applied to the other tasks' stores, which wait for the next Seal for it else. Unlike Apply it
// must not run beside reads and writes of the stores.
func (g *Generation) Release() {
	if g.db.pending.Load() {
		return
	}
	for _, s := range g.db.stores {
		if s.front != nil { // it tells what the overlay does; the base alone takes longer
			s.retire()
		}
	}
}

func sealedOf(s *store) (*overlay, *storeMeta) { return s.sealed.Load(), &s.sealedMeta }

// apply writes overlays of some stores, and what is kept of these stores, to their bases.
func (db *DB) apply(stores []*store, of func(*store) (*overlay, *storeMeta), meta []byte) error {
	var batch *pebble.Batch
	if db.pebble != nil {
		batch = db.pebble.db.NewBatch(pebble.WithInitialSizeBytes(batchSize(stores, of)))
		defer batch.Close()
	}
	for _, s := range stores {
		o, m := of(s)
		if o == nil && *m == s.baseMeta {
			continue
		}
		if s.mem != nil {
			s.applyMemory(o, m)
		} else if err := s.applyBatch(batch, o, m); err != nil {
			return db.pebble.wrap("apply store "+s.spec.Name, err)
		}
	}
	if db.pebble != nil {
		if err := db.commitBatch(batch, meta); err != nil {
			return err
		}
	}
	for _, s := range stores {
		o, m := of(s)
		if o == nil && *m == s.baseMeta {
			continue
		}
		s.tellFront(o)
		s.baseMeta = *m
		if s.committed.Load() != m.streamTime {
			s.committed.Store(m.streamTime)
		}
	}
	if meta != nil {
		db.metaMu.Lock()
		db.taskMeta = append(db.taskMeta[:0], meta...)
		db.metaMu.Unlock()
	}
	return nil
}

// batchSize is about how many bytes the batch will have: growing costs more than asking.
func batchSize(stores []*store, of func(*store) (*overlay, *storeMeta)) int {
	const head, perRow, perStore = 64, 8, 128
	n := head
	for _, s := range stores {
		if o, _ := of(s); o != nil && s.mem == nil {
			n += perStore + perRow*len(o.entries) + o.newest()
		}
	}
	return n
}

func (db *DB) commitBatch(batch *pebble.Batch, meta []byte) error {
	if meta != nil {
		if err := batch.Set(metaKey(metaTagTask, ""), meta, nil); err != nil {
			return db.pebble.wrap("apply state", err)
		}
	}
	if batch.Empty() {
		return nil
	}
	db.unflushed += batch.Len()
	if err := batch.Commit(pebble.NoSync); err != nil {
		return db.pebble.wrap("apply state", err)
	}
	return nil
}

// applyBatch adds a store's rows to the batch, in key order.
func (s *store) applyBatch(batch *pebble.Batch, o *overlay, m *storeMeta) error {
	if o != nil {
		for _, row := range o.sorted() {
			e := row.entry
			var err error
			if val := o.value(o.entries[e].last - 1); val != nil {
				err = batch.Set(o.entryKey(e), val, nil)
			} else {
				err = batch.Delete(o.entryKey(e), nil)
			}
			if err != nil {
				return err
			}
		}
	}
	if lowers, uppers, ok := s.expired(m); ok {
		for i := range lowers {
			if err := batch.DeleteRange(lowers[i], uppers[i], nil); err != nil {
				return err
			}
		}
	}
	if *m == s.baseMeta {
		return nil
	}
	if s.mark(m) {
		if err := batch.Set(storeMarksKey(nil, s.id), encodeMarks(nil, s.marks), nil); err != nil {
			return err
		}
	}
	return batch.Set(storeMetaKey(nil, s.id), m.encode(nil), nil)
}

// tellFront takes into the front what has come into the base; o may be nil.
func (s *store) tellFront(o *overlay) {
	if s.front == nil {
		return
	}
	if o != nil {
		s.front.applied(o, o == s.open)
	}
	if s.segmented() { // last, as in the batch: what was written may have expired since
		s.front.expired(s.expiredTo)
	}
}

func (s *store) applyMemory(o *overlay, m *storeMeta) {
	s.mark(m)
	lowers, uppers, expired := s.expired(m)
	if o == nil && !expired {
		return
	}
	s.mem.update(func() {
		if o != nil {
			for e := range uint32(len(o.entries)) {
				if val := o.value(o.entries[e].last - 1); val != nil {
					s.mem.set(o.entries[e].hash, o.entryKey(e), val)
				} else {
					s.mem.delete(o.entries[e].hash, o.entryKey(e))
				}
			}
		}
		if expired {
			s.mem.deleteRanges(lowers, uppers)
		}
	})
}

const minExpired = math.MinInt64

// expired gives the key ranges of the segments that have expired since the last time.
func (s *store) expired(m *storeMeta) (lowers, uppers [2][]byte, ok bool) {
	if !s.segmented() || m.streamTime < 0 {
		return lowers, uppers, false
	}
	live := s.minLiveSegment(m.streamTime)
	if live <= s.expiredTo {
		return lowers, uppers, false
	}
	s.expiredTo = live
	for i, class := range [2]byte{classByKey, classByTime} {
		lowers[i] = appendPrefix(nil, s.id, class)
		uppers[i] = appendOrdered(appendPrefix(nil, s.id, class), live)
	}
	return lowers, uppers, true
}

// Drop discards the sealed generation, if there is one, and the open one: the stores are back at what is committed. Apply must not be
// running.
func (db *DB) Drop() error {
	for _, s := range db.stores {
		s.sealed.Store(nil)
		s.retire()
		if !s.open.empty() {
			s.discardOpen()
		}
		s.cur, s.bulk, s.savepoint.set = s.baseMeta, false, false
	}
	db.pending.Store(false)
	for _, s := range db.stores {
		if err := s.impl.dropped(); err != nil {
			return fmt.Errorf("store %q: %w", s.spec.Name, err)
		}
	}
	return nil
}

// discardOpen empties the open generation. An iterator that still reads it keeps it.
func (s *store) discardOpen() {
	if s.open.users > 0 {
		s.open = newOverlay(s.db.overlays)
		return
	}
	s.open.reset()
}
