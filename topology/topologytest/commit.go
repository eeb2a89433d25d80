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
	d.open = nil
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
		if err := m.apply(d.changelogEnds(m, written)); err != nil {
			return err
		}
		m.task.TakeDirty()
	}
	for _, r := range written {
		r, err := d.broker.topics[r.Topic].produce(r)
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
	specs := m.db.Stores()
	for r := range gen.Changelog() {
		topic := m.d.plan.Stores[specs[r.Store].Name].Changelog
		m.d.open = append(m.d.open, copyRecord(Record{
			Topic: topic, Partition: m.id.Partition, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value, Headers: r.Headers,
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

// changelogEnds gives the next changelog offset of each store of a member, once what was written is appended.
func (d *Driver) changelogEnds(m *member, written []Record) []int64 {
	if m.db == nil {
		return nil
	}
	more := map[task.TopicPartition]int64{}
	for _, r := range written {
		more[task.TopicPartition{Topic: r.Topic, Partition: r.Partition}]++
	}
	specs := m.db.Stores()
	ends := make([]int64, len(specs))
	for i, spec := range specs {
		ends[i] = state.NoOffset
		s := d.plan.Stores[spec.Name]
		if s.Changelog == "" {
			continue
		}
		tp := task.TopicPartition{Topic: s.Changelog, Partition: m.id.Partition}
		if s.SourceAsChangelog {
			ends[i] = d.committed[tp].offset
			continue
		}
		ends[i] = int64(len(d.broker.topics[s.Changelog].partitions[m.id.Partition])) + more[tp]
	}
	return ends
}

// storeOffsets stores how far the tasks have come. Where rows are landed the tables say that.
func (d *Driver) storeOffsets() {
	for _, m := range d.tasks {
		for _, p := range m.task.Positions(nil) {
			if p.Offset >= 0 && d.landedBy[p.TopicPartition] == nil {
				d.committed[p.TopicPartition] = position{p.Offset, p.PartitionTime}
			}
		}
		d.progress[m.id] = maps.Clone(m.task.Progress())
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
