package delta

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Defaults of the reference implementation.
const (
	foreignInterval      = 10 // commits between checkpoints
	defaultFileRetention = 7 * 24 * time.Hour
	defaultLogRetention  = 30 * 24 * time.Hour
)

// maintenance is what Maintain must know of the commits made since it ran last.
type maintenance struct {
	running sync.Mutex // one Maintain at a time

	mu         sync.Mutex
	version    int64 // newest version that this Table committed; 0 for none
	txnID      string
	checkpoint bool      // this Table committed a version at which a checkpoint is due
	checksum   int64     // newest version whose checksum is written
	cleaned    time.Time // cut-off of the last log clean-up
}

// committed notes a commit of this Table.
func (m *maintenance) committed(h *Head, txnID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version, m.txnID = h.Version, txnID
	if h.Version%h.Metadata.checkpointInterval() == 0 {
		m.checkpoint = true
	}
}

// checkpointInterval is how many commits there are between checkpoints.
func (m *Metadata) checkpointInterval() int64 {
	return max(1, m.Number(propCheckpointInterval, foreignInterval))
}

// Maintain does what keeps a table fast to open, none of which readers depend on: the checksum of the newest version, if this
// Table committed it; a checkpoint and then log clean-up when they are due. Call it after commits from a goroutine of its own:
// commits don't wait for it. Calls that come while it runs wait for it. A failure leaves the table as good as before, and the
// next call tries again.
//
// A checkpoint is due when this Table committed a version divisible by delta.checkpointInterval (so that one of many writers
// makes it), or when the newest one is two intervals old (whoever should have made it didn't). It is not made for tables that
// want statistics as structs in them, which this package doesn't write.
func (t *Table) Maintain(ctx context.Context) error {
	t.maintain.running.Lock()
	defer t.maintain.running.Unlock()
	errSum := t.maintainChecksum(ctx)
	due, err := t.checkpointDue(ctx)
	if err != nil || !due {
		return errors.Join(errSum, err)
	}
	head, sums, err := t.checkpoint(ctx)
	if err != nil {
		return errors.Join(errSum, err)
	}
	t.maintain.mu.Lock()
	t.maintain.checkpoint = false
	t.maintain.mu.Unlock()
	t.mu.Lock()
	t.state.checkpoint = max(t.state.checkpoint, head.Version)
	err = t.repairCounts(ctx, head, sums)
	t.mu.Unlock()
	return errors.Join(errSum, err, t.cleanLog(ctx, head))
}

// maintainChecksum writes the checksum of the newest version, if it is ours and its counts are known.
func (t *Table) maintainChecksum(ctx context.Context) error {
	head := t.Head()
	m := &t.maintain
	m.mu.Lock()
	due := head.Version == m.version && m.version > m.checksum && head.NumFiles >= 0
	txnID := m.txnID
	m.mu.Unlock()
	if !due {
		return nil
	}
	if err := t.writeChecksum(ctx, head, txnID); err != nil {
		return t.wrap(err)
	}
	m.mu.Lock()
	m.checksum = head.Version
	m.mu.Unlock()
	return nil
}

func (t *Table) checkpointDue(ctx context.Context) (bool, error) {
	head := t.Head()
	if head.CheckWrite() != nil || head.Metadata.Flag(propStatsAsStruct, false) {
		return false, nil
	}
	t.maintain.mu.Lock()
	ours, writer := t.maintain.checkpoint, t.maintain.version > 0
	t.maintain.mu.Unlock()
	if ours || !writer {
		return ours, nil
	}
	interval := head.Metadata.checkpointInterval()
	t.mu.Lock()
	last := t.state.checkpoint
	t.mu.Unlock()
	if head.Version-max(last, 0) < 2*interval {
		return false, nil
	}
	// Another process may have made one since.
	last = t.readLastCheckpoint(ctx)
	t.mu.Lock()
	t.state.checkpoint = max(t.state.checkpoint, last)
	t.mu.Unlock()
	return head.Version-max(last, 0) >= 2*interval, ctx.Err()
}

// repairCounts gives the head its counts, where it had none, from a checkpoint's sums and the commits after it.
func (t *Table) repairCounts(ctx context.Context, at *Head, sums *checkpointSums) error {
	if t.head.NumFiles >= 0 || t.head.Version < at.Version {
		return nil
	}
	b := at.next()
	b.h.NumFiles, b.h.SizeBytes = sums.adds, sums.addBytes
	for v := at.Version + 1; v <= t.head.Version; v++ {
		data, err := t.store.Get(ctx, commitName(v))
		if err != nil {
			return t.wrap(err)
		}
		if _, err := b.commit(v, data, nil); err != nil {
			return t.wrap(err)
		}
	}
	head := *t.head
	head.NumFiles, head.SizeBytes = b.h.NumFiles, b.h.SizeBytes
	t.setHead(&head)
	return nil
}

// IdleMoves returns moves that refresh those of the application ids whose progress is older than half of
// delta.setTransactionRetentionDuration: other writers drop progress older than that. It returns none where the property isn't
// set.
func (h *Head) IdleMoves(appIDs []string, now time.Time) []Move {
	retention := h.Metadata.Interval(propTxnRetention, 0)
	if retention <= 0 {
		return nil
	}
	before := now.Add(-retention / 2).UnixMilli()
	var moves []Move
	for _, id := range appIDs {
		if txn, ok := h.Txns[id]; ok && txn.LastUpdated < before {
			moves = append(moves, Move{AppID: id, From: txn.Version, To: txn.Version})
		}
	}
	return moves
}
