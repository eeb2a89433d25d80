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
func (d *Driver) Crash() error { return d.report(d.failed(d.crash())) }

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
	d.tasks, d.global, d.reader = nil, nil, nil
	return errors.Join(errs...)
}

// restore brings the member's stores to the end of their changelogs, from what they contain.
func (m *member) restore() error {
	if m.db == nil || m.id.Subtopology < 0 {
		return nil // global stores are filled by reading their topics again
	}
	for _, st := range m.stores {
		s := st.plan
		if s.Changelog == "" {
			continue
		}
		tp := task.TopicPartition{Topic: s.Changelog, Partition: m.id.Partition}
		log := &m.d.broker.topics[tp.Topic].partitions[tp.Partition]
		end := int64(log.n)
		if s.SourceAsChangelog {
			end = m.d.committed[tp].offset
		}
		from, _ := m.db.Offset(st.name)
		if err := m.db.Restore(st.name, restoreRecords(log.span(int(min(from, end)), int(end))), end); err != nil {
			return fmt.Errorf("task %s: restoring store %s from %s: %w", m.id, st.name, tp, err)
		}
	}
	return nil
}

func restoreRecords(records []Record) []state.RestoreRecord {
	out := make([]state.RestoreRecord, len(records))
	for i, r := range records {
		out[i] = state.RestoreRecord{Key: r.Key, Value: r.Value, Timestamp: r.Timestamp, Headers: r.Headers}
	}
	return out
}

// catchUp hands the tasks what they have not read: global tables everything, the others what is behind the committed offsets.
func (d *Driver) catchUp() error {
	for _, m := range d.members() {
		for _, tp := range m.task.Inputs() {
			at := position{0, processors.NoTimestamp}
			if d.landedBy[tp] != nil {
				at = d.landed(tp)
			} else if p, ok := d.committed[tp]; ok && m != d.global {
				at = p
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
	log := &d.broker.topics[tp.Topic].partitions[tp.Partition]
	var raw []processors.RawRecord
	for i := int(at.offset); i < log.n; i++ {
		raw = append(raw, log.at(i).raw())
	}
	if len(raw) == 0 {
		return nil
	}
	return m.task.Add(tp, raw, int64(log.n))
}
