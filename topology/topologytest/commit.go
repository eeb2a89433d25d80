package topologytest

import (
	"errors"

	"github.com/tributary-io/tributary/state"
)

// Commit commits the open transaction: what was written is appended to its topics, offsets are stored, the stores apply their writes, and
// tables land their batches. Then what was written is processed further, with the next transaction open. It is needed with ManualCommit only.
func (d *Driver) Commit() error {
	d.here().Helper()
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
	if err := d.commitGathered(); err != nil {
		return err
	}
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
		for i := range written {
			written[i].to.produce(written[i].entry, written[i].headers)
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
		w := &written[i]
		if err := d.deliver(w.to, w.to.produce(w.entry, w.headers)); err != nil {
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
		to := m.stores[r.Store].changelog
		m.d.open = append(m.d.open, pending{to, to.kept.keep(r.Timestamp, r.Key, r.Value), keepHeaders(r.Headers)})
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
			end = st.changelog.committed.offset
		default:
			end = int64(st.changelog.n) + m.logged[i]
		}
		d.ends = append(d.ends, end)
	}
	return d.ends
}

// storeOffsets stores how far the tasks have come. Where rows are landed the tables say that.
func (d *Driver) storeOffsets() {
	for _, m := range d.tasks {
		for _, p := range m.inputs {
			if p.landedBy != nil {
				continue
			}
			if offset, partitionTime := p.input.Progress(); offset >= 0 {
				p.committed = position{offset, partitionTime}
			}
		}
		*m.progress = m.task.CopyProgress(*m.progress)
	}
}

// discard drops the open transaction.
func (d *Driver) discard() {
	d.dropOpen()
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
