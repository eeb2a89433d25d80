package topologytest

import "github.com/tributary-io/tributary/processors"

// letters are the dead letters and ledger entries of the global tables, which are in no transaction.
type letters struct {
	waiting []letter
	written map[origin]bool
}

type letter struct {
	pending
	about origin
}

// origin is the record that a letter is about.
type origin struct {
	topic     string
	partition int32
	offset    int64
}

// setAside keeps a letter until the records that it is about are processed.
func (d *Driver) setAside(record pending, about *processors.ErrorContext) {
	l := letter{pending: record}
	if about != nil {
		l.about = origin{about.Topic, about.Partition, about.Offset}
	}
	d.letters.waiting = append(d.letters.waiting, l)
}

// writeLetters writes those about records that the global tables meet for the first time: they read their topics again at each start.
func (d *Driver) writeLetters() error {
	waiting := d.letters.waiting
	d.letters.waiting = nil
	var fresh []letter // before any of them counts as written: a record may have several
	for _, l := range waiting {
		if l.about.topic == "" || !d.letters.written[l.about] {
			fresh = append(fresh, l)
		}
	}
	for _, l := range fresh {
		if d.letters.written == nil {
			d.letters.written = map[origin]bool{}
		}
		d.letters.written[l.about] = true
		if err := d.deliver(l.to, l.to.produce(l.entry, l.headers)); err != nil {
			return err
		}
	}
	return nil
}
