package state

import (
	"errors"
	"fmt"
	"slices"
)

// savepoint says how far a store's open generation had come.
type savepoint struct {
	set                                  bool
	buf, entries, versions, log, headers int
	meta                                 storeMeta
}

// errNoSavepoint is a mistake of the host.
var errNoSavepoint = errors.New("state: internal: nothing to roll back to: the generation has no savepoint")

// Savepoint marks what has been written to the open generation so far, for a host that gathers several records in a generation: RollBack drops what one
// of them has written since. It takes the place of the last savepoint; Seal and Drop end it. It must not be used where updates are coalesced
// (LastPerKeyPerCommit), nor with suppress buffers.
func (db *DB) Savepoint() {
	for _, s := range db.stores {
		o := s.open
		s.savepoint = savepoint{true, len(o.buf), len(o.entries), len(o.versions), len(o.log), len(o.headers), s.cur}
	}
}

// RollBack takes the open generation back to the last Savepoint.
func (db *DB) RollBack() error {
	for _, s := range db.stores {
		if !s.savepoint.set {
			return fmt.Errorf("store %q: %w", s.spec.Name, errNoSavepoint)
		}
	}
	for _, s := range db.stores {
		s.open, s.cur = s.open.upTo(&s.savepoint), s.savepoint.meta
	}
	for _, s := range db.stores {
		if err := s.impl.dropped(); err != nil {
			return fmt.Errorf("store %q: %w", s.spec.Name, err)
		}
	}
	return nil
}

// upTo gives a copy of the overlay as it was at a savepoint. Iterators keep the overlay itself.
func (o *overlay) upTo(p *savepoint) *overlay {
	was := newOverlay(o.pool)
	was.overlayMemory = overlayMemory{
		buf: slices.Clone(o.buf[:p.buf]), entries: slices.Clone(o.entries[:p.entries]), versions: slices.Clone(o.versions[:p.versions]),
		log: slices.Clone(o.log[:p.log]), headers: slices.Clone(o.headers[:p.headers]),
	}
	for i := range was.entries {
		e := &was.entries[i]
		for int(e.last) > p.versions {
			e.last = o.versions[e.last-1].prev
		}
		if int(e.lastLog) > p.log {
			e.lastLog = 0 // it serves coalescing only
		}
	}
	for len(was.table)*3 < len(was.entries)*4 {
		was.growTable()
	}
	return was
}
