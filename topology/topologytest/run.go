package topologytest

import (
	"fmt"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
)

// deliver hands a record that is in its topic to the task that reads it. A global table takes it at once.
func (d *Driver) deliver(r *Record) error {
	if m := d.reader[task.TopicPartition{Topic: r.Topic, Partition: r.Partition}]; m != nil {
		if err := d.hand(m, r); err != nil {
			return err
		}
	}
	return d.deliverToPatterns(r)
}

// deliverToPatterns copies a record to the inputs that stand for patterns in the driver mode. Offsets are counted by pattern there.
func (d *Driver) deliverToPatterns(r *Record) error {
	if d.partitioned() {
		return nil
	}
	for _, n := range d.patternSources() {
		re, err := plan.CompilePattern(n.Pattern)
		if err != nil || !re.MatchString(r.Topic) {
			continue
		}
		copied, err := d.broker.topics[n.Pattern].append(*r)
		if err != nil {
			return err
		}
		tp := task.TopicPartition{Topic: n.Pattern, Partition: 0}
		if err := d.reader[tp].task.Add(tp, []processors.RawRecord{copied.raw()}, copied.Offset+1); err != nil {
			return err
		}
	}
	return nil
}

// hand gives a record to its reader.
func (d *Driver) hand(m *member, r *Record) error {
	tp := task.TopicPartition{Topic: r.Topic, Partition: r.Partition}
	if err := m.task.Add(tp, []processors.RawRecord{r.raw()}, r.Offset+1); err != nil {
		return err
	}
	if m != d.global {
		return nil
	}
	return d.settleGlobal()
}

// settleGlobal lets the global tables take what they were given. They are not part of the transaction.
func (d *Driver) settleGlobal() error {
	for {
		more, err := d.global.task.Process()
		if err != nil {
			return err
		}
		if !more {
			return d.global.apply(nil)
		}
	}
}

// settle runs the tasks until none has anything to do. In the driver mode, and in general without ManualCommit, it commits after each
// record.
func (d *Driver) settle() error {
	for {
		worked := false
		for _, m := range d.tasks {
			did, err := d.step(m)
			if err != nil {
				d.discard()
				return err
			}
			worked = worked || did
			if d.opts.manualCommit || !did && !m.task.Dirty() {
				continue
			}
			worked = true
			if err := d.commit(); err != nil {
				return err
			}
		}
		if !worked {
			return nil
		}
	}
}

// step processes one record of a task.
func (d *Driver) step(m *member) (bool, error) {
	did, err := m.task.Process()
	if err != nil || !did {
		return false, err
	}
	_, err = m.task.PunctuateStreamTime()
	return true, err
}

// readNewTopic lets the tasks read a topic that has come to match a pattern.
func (d *Driver) readNewTopic(name string) error {
	if !d.partitioned() {
		return nil // the pattern itself is the input
	}
	counts, err := d.plan.Partitions(func(topic string) (int32, bool) { return d.userPartitions(topic), true }, d.matched())
	if err != nil {
		return err
	}
	d.counts = counts
	if err := d.commit(); err != nil {
		return err
	}
	if err := d.reopen(); err != nil {
		return fmt.Errorf("reading the new topic %s: %w", name, err)
	}
	return nil
}
