package topologytest

import (
	"errors"
	"fmt"
	"os"

	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// Restart stops the application gracefully, deletes its state, and starts it again: the stores are restored from their changelogs. Only the
// simulated topics, the committed offsets and the landed tables are kept, as if the application moved to another machine.
func (d *Driver) Restart() error {
	d.here().Helper()
	if d.fatal != nil {
		return d.report(fmt.Errorf("the topology has stopped: %w", d.fatal))
	}
	return d.report(d.failed(d.restart()))
}

func (d *Driver) restart() error {
	if err := d.commit(); err != nil {
		return err
	}
	if err := d.stop(); err != nil {
		return err
	}
	if d.opts.stateDir != "" {
		if err := os.RemoveAll(d.opts.stateDir); err != nil {
			return err
		}
	}
	if err := d.start(); err != nil {
		return err
	}
	return d.settle()
}

// Crash kills the application in the middle of its transaction and starts it again: what was not committed is gone, output, changelog
// records, offsets and table rows alike, and it goes on from the last commit. Stores on disk are found as they were at that commit; those in
// memory are restored. A driver whose topology has failed comes back to life. Without ManualCommit there is nothing that a crash could take.
func (d *Driver) Crash() error {
	d.here().Helper()
	return d.report(d.failed(d.crash()))
}

func (d *Driver) crash() error {
	d.fatal = nil
	if err := d.rewind(); err != nil {
		return err
	}
	if d.opts.manualCommit {
		return nil // what is read again is processed by the next Pipe or Commit
	}
	return d.settle()
}

// rewind drops the open transaction and makes the tasks anew from the last commit.
func (d *Driver) rewind() error {
	d.discard()
	return d.reopen()
}

// reopen makes the tasks anew.
func (d *Driver) reopen() error {
	if err := d.stop(); err != nil {
		return err
	}
	return d.start()
}

// stop closes the tasks.
func (d *Driver) stop() error {
	var errs []error
	for _, m := range d.members() {
		if m.task != nil {
			for _, drop := range m.task.Drops() {
				d.dropped[drop.Reason] += drop.Count
			}
		}
		errs = append(errs, m.close())
	}
	for _, t := range d.broker.order {
		for i := range t.partitions {
			t.partitions[i].reader, t.partitions[i].input = nil, task.Input{}
		}
	}
	d.tasks, d.global = nil, nil
	return errors.Join(errs...)
}

// restore brings the member's stores to the end of their changelogs, from what they contain.
func (m *member) restore() error {
	if m.db == nil || m.id.Subtopology < 0 {
		return nil // global stores are filled by reading their topics again
	}
	for _, st := range m.stores {
		if st.changelog == nil {
			continue
		}
		if err := m.restoreStore(st); err != nil {
			return fmt.Errorf("task %s: restoring store %s from %s: %w", m.id, st.name, st.changelog.id(), err)
		}
	}
	return nil
}

func (m *member) restoreStore(st memberStore) error {
	log, end := st.changelog, int64(st.changelog.n)
	keeps := func(*processors.RawRecord) (bool, error) { return true, nil }
	if st.plan.SourceAsChangelog {
		end = log.committed.offset
		judge, err := task.NewJudge(m.config(nil), log.id())
		if err != nil {
			return err
		}
		keeps = judge.Keeps
	}
	from, _ := m.db.Offset(st.name)
	var records []state.RestoreRecord
	for offset := from; offset < end; offset++ {
		r := log.raw(offset)
		keep, err := keeps(&r)
		if err != nil {
			return err
		}
		if keep {
			records = append(records, state.RestoreRecord{Key: r.Key, Value: r.Value, Timestamp: r.Timestamp, Headers: r.Headers})
		}
	}
	return m.db.Restore(st.name, records, end)
}

// catchUp hands the tasks what they have not read: global tables everything, the others what is behind the committed offsets.
func (d *Driver) catchUp() error {
	for _, m := range d.members() {
		for _, tp := range m.task.Inputs() {
			at, p := position{0, processors.NoTimestamp}, d.broker.partition(tp)
			if p.landedBy != nil {
				at = p.landed()
			} else if m != d.global {
				at = p.committed
			}
			if err := d.seek(m, tp, at); err != nil {
				return err
			}
		}
	}
	if d.global != nil {
		return d.settleGlobal()
	}
	return nil
}

// seek sets where an input goes on, and hands over what is there.
func (d *Driver) seek(m *member, tp task.TopicPartition, at position) error {
	if err := m.task.SetPosition(tp, at.offset, at.partitionTime); err != nil {
		return err
	}
	p := d.broker.partition(tp)
	var raw []processors.RawRecord
	for offset := at.offset; offset < int64(p.n); offset++ {
		raw = append(raw, p.raw(offset))
	}
	if len(raw) == 0 {
		return nil
	}
	return m.task.Add(tp, raw, int64(p.n))
}
