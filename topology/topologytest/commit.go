package topologytest

import (
	"errors"
	"maps"

	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/state"
)

// Commit commits the open transaction: what was written is appended to its topics, offsets are stored, the stores apply their writes, and
// tables land their batches. Then what was written is processed further, with the next transaction open. It is needed with ManualCommit only.
func (d *Driver) Commit() error {
	if d.fatal != nil {
		return d.report(d.fatal)
	}
	for _, do := range []func() error{d.settle, d.commit, d.settle} { // the first for what a crash left to be read again
		if err := do(); err != nil {
			return d.report(d.failed(err))
		}
	}
	return nil
}

// commit ends the transaction: the changelogs' records join it, then everything in it becomes visible at once.
func (d *Driver) commit() error {
	for _, m := range d.tasks {
		if err := m.task.PrepareCommit(); err != nil {
			d.discard()
			return err
		}
		if err := m.seal(); err != nil {
			return err
		}
	}
	if d.failure(CommitOp) != nil {
		d.aborted++
		return d.rewind()
	}
	lost := d.failure(CommitReplyOp) != nil
	d.storeOffsets()
	written := d.open
	d.open, d.spare = d.spare[:0], written
	if lost {
		// The engine asks for the committed offsets and finds that the commit has landed: it goes on from there with its stores restored.
		d.aborted++
		for _, r := range written {
			if _, err := d.broker.topics[r.Topic].produce(r); err != nil {
				return err
			}
		}
		return d.rewind()
	}
	for _, m := range d.tasks {
		if err := m.apply(d.changelogEnds(m)); err != nil {
			return err
		}
		m.task.TakeDirty()
	}
	for i := range written {
		r, err := d.broker.topics[written[i].Topic].produce(written[i])
		if err != nil {
			return err
		}
		if err := d.deliver(r); err != nil {
			return err
		}
	}
	return d.landTables()
}

// seal closes the stores' open generation and puts its changelog records into the transaction.
func (m *member) seal() error {
	if m.db == nil {
		return nil
	}
	gen, err := m.db.Seal()
	if err != nil {
		return err
	}
	m.sealed = gen
	clear(m.logged)
	for r := range gen.Changelog() {
		m.logged[r.Store]++
		m.d.open = append(m.d.open, m.d.kept.record(Record{
			Topic: m.stores[r.Store].plan.Changelog, Partition: m.id.Partition, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value, Headers: r.Headers,
		}))
	}
	return nil
}

// apply writes the sealed generation to the stores.
func (m *member) apply(offsets []int64) error {
	if m.db == nil {
		return nil
	}
	gen := m.sealed
	if gen == nil { // global stores have no changelog
		var err error
		if gen, err = m.db.Seal(); err != nil {
			return err
		}
	}
	m.sealed = nil
	return gen.Apply(offsets, nil)
}

// changelogEnds gives the next changelog offset of each store of a member, once what was sealed is appended. It is valid until the next
// call.
func (d *Driver) changelogEnds(m *member) []int64 {
	if m.db == nil {
		return nil
	}
	d.ends = d.ends[:0]
	for i, st := range m.stores {
		end := state.NoOffset
		switch s := st.plan; {
		case s.Changelog == "":
		case s.SourceAsChangelog:
			end = d.committed[task.TopicPartition{Topic: s.Changelog, Partition: m.id.Partition}].offset
		default:
			end = int64(d.broker.topics[s.Changelog].partitions[m.id.Partition].n) + m.logged[i]
		}
		d.ends = append(d.ends, end)
	}
	return d.ends
}

// storeOffsets stores how far the tasks have come. Where rows are landed the tables say that.
func (d *Driver) storeOffsets() {
	for _, m := range d.tasks {
		d.positions = m.task.Positions(d.positions[:0])
		for _, p := range d.positions {
			if p.Offset >= 0 && d.landedBy[p.TopicPartition] == nil {
				d.committed[p.TopicPartition] = position{p.Offset, p.PartitionTime}
			}
		}
		if now := m.task.Progress(); !maps.Equal(now, d.progress[m.id]) {
			d.progress[m.id] = maps.Clone(now)
		}
	}
}

// discard drops the open transaction.
func (d *Driver) discard() {
	d.open = nil
	d.dropBatches()
	for _, m := range d.tasks {
		m.sealed = nil
		if m.db != nil {
			d.noteError(m.db.Drop())
		}
	}
}

func (d *Driver) noteError(err error) {
	if err != nil {
		d.fatal = errors.Join(d.fatal, err)
	}
}
