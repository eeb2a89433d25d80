package delta

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Snapshot is a version of a table with its files. It holds in memory only what the commits after its checkpoint changed, and
// streams the rest. It stays readable until log clean-up deletes what it stands on.
type Snapshot struct {
	Head *Head

	table *Table
	base  *checkpoint // nil: the log from version 0 on
	// tail holds the newest action on each logical file since the base, in the order of the log.
	tail []action
	keys map[string]int // file key -> index in tail
}

// Snapshot reads the newest version with its files.
func (t *Table) Snapshot(ctx context.Context) (*Snapshot, error) {
	return t.snapshot(ctx, -1)
}

// SnapshotAt is Snapshot for an older version, as far back as the log still reaches.
func (t *Table) SnapshotAt(ctx context.Context, version int64) (*Snapshot, error) {
	if version < 0 {
		return nil, fmt.Errorf("table %s: there is no version %d", t.store, version)
	}
	return t.snapshot(ctx, version)
}

// snapshot builds a version, -1 for the newest. It tries the checkpoints before it from the newest on.
func (t *Table) snapshot(ctx context.Context, version int64) (s *Snapshot, err error) {
	for range loadAttempts {
		if s, err = t.snapshotOnce(ctx, version); err == nil || !errors.Is(err, errGap) {
			return s, err
		}
	}
	return nil, err
}

func (t *Table) snapshotOnce(ctx context.Context, version int64) (*Snapshot, error) {
	from := max(t.readLastCheckpoint(ctx), 0)
	if version >= 0 {
		from = 0
	}
	s, err := t.snapshotFrom(ctx, from, version)
	if err != nil && from > 0 && ctx.Err() == nil {
		s, err = t.snapshotFrom(ctx, 0, version)
	}
	return s, err
}

func (t *Table) snapshotFrom(ctx context.Context, from, version int64) (*Snapshot, error) {
	l, err := listLog(ctx, t.store, from)
	if err != nil {
		return nil, t.wrap(err)
	}
	newest := l.newest()
	switch {
	case newest < 0:
		return nil, fmt.Errorf("%s: %w", t.store, ErrNoTable)
	case version > newest:
		return nil, fmt.Errorf("table %s: there is no version %d, the newest is %d", t.store, version, newest)
	case version < 0:
		version = newest
	}
	var errs []error
	for _, b := range l.bases(version) {
		if b.checksum != nil || b.checkpoint != nil && t.isDamaged(b.checkpoint) {
			continue
		}
		s, err := t.snapshotOn(ctx, l, b, version)
		if err == nil {
			return s, s.Head.checkRead()
		}
		if ctx.Err() != nil {
			return nil, t.wrap(err)
		}
		errs = append(errs, err)
	}
	return nil, t.wrap(errors.Join(errs...))
}

func (t *Table) snapshotOn(ctx context.Context, l *logListing, b base, version int64) (*Snapshot, error) {
	tail, err := l.tail(b.version+1, version)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{table: t, base: b.checkpoint, keys: map[string]int{}}
	builder := newHeadBuilder(t.store.String())
	builder.h.Version = b.version
	if b.checkpoint != nil {
		builder.h.NumFiles, builder.h.SizeBytes = -1, -1
		if err := readCheckpoint(ctx, t.store, b.checkpoint, headActions, func(a *action) error { builder.apply(a); return nil }); err != nil {
			return nil, err
		}
		if _, err := builder.head(); err != nil {
			return nil, err
		}
	}
	err = fetch(ctx, t.store, tail, func(f logFile, data []byte) error {
		_, err := builder.commit(f.version, data, s.note)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(tail) == 0 {
		t.findTimestamp(ctx, builder)
	}
	s.Head, err = builder.head()
	return s, err
}

// note keeps the newest action on a logical file.
func (s *Snapshot) note(a action) {
	var key string
	switch {
	case a.add != nil:
		key = fileKey(a.add.Path, a.add.DeletionVector)
	case a.remove != nil:
		key = fileKey(a.remove.Path, a.remove.DeletionVector)
	default:
		return
	}
	if i, ok := s.keys[key]; ok {
		s.tail[i] = action{add: a.add, remove: a.remove}
		return
	}
	s.keys[key] = len(s.tail)
	s.tail = append(s.tail, action{add: a.add, remove: a.remove})
}

// errStopReplay ends a replay early.
var errStopReplay = errors.New("stop")

// replay calls fn with every live file and every tombstone.
func (s *Snapshot) replay(ctx context.Context, fn func(*action) error) error {
	for i := range s.tail {
		if err := fn(&s.tail[i]); err != nil {
			return err
		}
	}
	if s.base == nil {
		return nil
	}
	err := readCheckpoint(ctx, s.table.store, s.base, fileActions, func(a *action) error {
		switch {
		case a.add != nil:
			if _, newer := s.keys[fileKey(a.add.Path, a.add.DeletionVector)]; newer {
				return nil
			}
		case a.remove != nil:
			if _, newer := s.keys[fileKey(a.remove.Path, a.remove.DeletionVector)]; newer {
				return nil
			}
		default:
			return nil
		}
		return fn(a)
	})
	if errors.Is(err, errCheckpoint) {
		s.table.markDamaged(s.base)
		return fmt.Errorf("%w; take a new snapshot, which goes round it", err)
	}
	return err
}

// Files streams the live files. A checkpoint that turns out to be damaged in the middle ends the stream with an error; a new
// Snapshot of the same Table then starts from an older one.
func (s *Snapshot) Files(ctx context.Context) iter.Seq2[Add, error] {
	return func(yield func(Add, error) bool) {
		err := s.replay(ctx, func(a *action) error {
			if a.add != nil && !yield(*a.add, nil) {
				return errStopReplay
			}
			return nil
		})
		if err != nil && err != errStopReplay {
			yield(Add{}, s.table.wrap(err))
		}
	}
}

func (t *Table) isDamaged(c *checkpoint) bool {
	t.headMu.RLock()
	defer t.headMu.RUnlock()
	return slices.Contains(t.damaged, c.String())
}

func (t *Table) markDamaged(c *checkpoint) {
	t.headMu.Lock()
	defer t.headMu.Unlock()
	t.damaged = append(t.damaged, c.String())
	t.opts.Logger.Warn("a checkpoint is damaged; starting from older ones", "table", t.store.String(), "checkpoint", c.String())
}

// HistoryEntry is one commit of the log.
type HistoryEntry struct {
	Version  int64
	Modified time.Time   // of the log entry, by the store's clock; Info has the writer's time
	Info     *CommitInfo // nil if the commit has none
	Txns     []Txn       // by application id
	Adds     int
	AddBytes int64
	Stats    []string // of the added files, JSON; "" for a file without
	Removes  int
	Metadata bool // the commit set metadata
	Protocol bool // the commit set the protocol
}

// History streams the commits that the log still holds, newest first.
func (t *Table) History(ctx context.Context) iter.Seq2[HistoryEntry, error] {
	return func(yield func(HistoryEntry, error) bool) {
		l, err := listLog(ctx, t.store, 0)
		if err != nil {
			yield(HistoryEntry{}, t.wrap(err))
			return
		}
		for _, f := range slices.Backward(l.commits) {
			data, err := t.store.Get(ctx, f.name)
			var facts *commitFacts
			var stats []string
			if err == nil {
				facts, err = readFacts(data, func(a action) {
					if a.add != nil {
						stats = append(stats, a.add.Stats)
					}
				})
			}
			if err != nil {
				yield(HistoryEntry{}, t.wrap(fmt.Errorf("log entry %s: %w", f.name, err)))
				return
			}
			e := HistoryEntry{Version: f.version, Modified: f.modified, Info: facts.info, Adds: facts.adds, AddBytes: facts.addBytes, Stats: stats,
				Removes: facts.removes, Metadata: facts.metadata, Protocol: facts.protocol}
			for _, id := range sortedKeys(facts.txns) {
				e.Txns = append(e.Txns, facts.txns[id])
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}
