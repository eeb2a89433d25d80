package topologytest

import "fmt"

// deliver hands a record that is in its topic to the task that reads it. A global table takes it at once.
func (d *Driver) deliver(p *partition, offset int64) error {
	if p.reader != nil {
		raw := p.input.Slot()
		p.fillRaw(raw, offset)
		p.input.Filled(raw, offset+1)
		if p.reader == d.global {
			if err := d.settleGlobal(); err != nil {
				return err
			}
		}
	}
	d.deliverToPattern(p, offset)
	return nil
}

// settleGlobal lets the global tables take what they were given. They are not part of the transaction: the dead letters of a record that they
// leave out are written at once, and, as by the engine, only the first time that they meet it.
func (d *Driver) settleGlobal() error {
	for {
		more, err := d.global.task.Process()
		if err != nil {
			d.letters.waiting = nil
			return err
		}
		if err := d.writeLetters(); err != nil {
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
			if err := d.endRecord(); err != nil {
				return err
			}
		}
		if !worked || !d.hasRecords() {
			return nil
		}
	}
}

// hasRecords tells whether any task has something to process.
func (d *Driver) hasRecords() bool {
	for _, m := range d.tasks {
		if m.task.HasRecords() {
			return true
		}
	}
	return false
}

// endRecord ends the transaction of a record.
func (d *Driver) endRecord() error {
	if d.gathers {
		return d.accept()
	}
	return d.commit()
}

// step processes one record of a task.
func (d *Driver) step(m *member) (did bool, err error) {
	d.running = true
	if did, err = m.task.Process(); did && err == nil {
		_, err = m.task.PunctuateStreamTime()
	}
	d.running = false
	return did && err == nil, err
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
