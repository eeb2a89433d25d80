package topologytest

import "github.com/tributary-io/tributary/state"

// Without ManualCommit each record is a transaction of its own. What it wrote to topics is there at once, and so are its offsets; but nobody sees whether its
// writes to the stores, which are read through their write buffers, are sealed and applied with each record or for some records together. So they are
// gathered, until enough have come together or until someone could tell: who reads a changelog, holds a store in his hand, or injects failures.
// See docs/decisions/gathered-commits.md.

// What is gathered at most: few enough that the write buffers stay in the processor's cache.
const (
	gatheredRecords = 64
	gatheredBytes   = 256 << 10
)

// mayGather tells whether the stores' part of commits may wait, as far as that is a matter of the plan and of the options.
func (d *Driver) mayGather() bool {
	if d.opts.manualCommit || d.prompt || len(d.tables) > 0 {
		return false
	}
	for _, m := range d.tasks {
		if m.task.HoldsBack() {
			return false
		}
		for _, st := range m.stores {
			// What is coalesced, and what a suppression logs, depends on where the commits are. Nobody else reads a changelog, but for patterns.
			if spec := &st.plan.Spec; spec.Caching || spec.Kind == state.SuppressBuffer || st.changelog != nil && d.patternOf(st.changelog.topic) != nil {
				return false
			}
		}
	}
	return true
}

// accept ends the transaction of a record whose writes to the stores are gathered.
func (d *Driver) accept() error {
	d.storeOffsets()
	d.gathered++
	for _, m := range d.tasks {
		m.task.TakeDirty()
		if m.db != nil {
			m.db.Savepoint()
		}
	}
	written := d.open
	d.open, d.spare = d.spare[:0], written
	for i := range written {
		w := &written[i]
		if err := d.deliver(w.to, w.to.produce(w.entry, w.headers)); err != nil {
			return err
		}
	}
	if d.gathered%8 == 0 && (d.gathered >= gatheredRecords || d.buffered() >= gatheredBytes) {
		return d.commitGathered()
	}
	return nil
}

// buffered is how many bytes the stores' write buffers hold.
func (d *Driver) buffered() (sum int64) {
	for _, m := range d.tasks {
		if m.db != nil {
			sum += m.db.BufferedBytes()
		}
	}
	return sum
}

// commitGathered brings what was gathered into the changelogs and the stores. Within a record it does nothing.
func (d *Driver) commitGathered() error {
	if d.gathered == 0 || d.running {
		return nil
	}
	d.gathered = 0
	for _, m := range d.tasks {
		if m.db == nil {
			continue
		}
		gen, err := m.db.Seal()
		if err != nil {
			return err
		}
		clear(m.logged)
		for r := range gen.Changelog() {
			to := m.stores[r.Store].changelog
			to.produce(to.kept.keep(r.Timestamp, r.Key, r.Value), keepHeaders(r.Headers))
		}
		if err := gen.Apply(d.changelogEnds(m), nil); err != nil {
			return err
		}
	}
	return nil
}

// commitPromptly ends gathering, for the rest of the driver's life.
func (d *Driver) commitPromptly() error {
	err := d.commitGathered()
	d.prompt, d.gathers = true, false
	return err
}

// dropOpen drops what a record that has failed wrote to the stores. What was gathered before it stays.
func (d *Driver) dropOpen() {
	d.running = false
	if d.gathered == 0 {
		return
	}
	for _, m := range d.tasks {
		if m.db != nil {
			d.noteError(m.db.RollBack())
		}
	}
	d.noteError(d.commitGathered())
}
