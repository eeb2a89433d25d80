package topologytest

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
)

// LakeRow is a row of a table that a topology ends in.
type LakeRow[V any] struct {
	// Key is the record's key, nil for a null.
	Key any
	// Value is nil for a null.
	Value *V
	Meta  sink.Meta
}

// LakeRows returns the rows that were committed to the lake sink of that name, in order. V has to be the stream's value type.
func LakeRows[V any](d *Driver, name string) []LakeRow[V] {
	d.here().Helper()
	t := d.tables[name]
	if t == nil {
		d.report(fmt.Errorf("the topology has no lake sink %q: it has %v", name, d.tableNames()))
		return nil
	}
	rows := make([]LakeRow[V], len(t.rows))
	for i, r := range t.rows {
		rows[i] = LakeRow[V]{Key: r.key, Meta: r.meta}
		if r.value == nil {
			continue
		}
		v, ok := r.value.(V)
		if !ok {
			d.report(fmt.Errorf("lake sink %q: its rows are %T, not %T", name, r.value, *new(V)))
			return nil
		}
		rows[i].Value = &v
	}
	return rows
}

// table is what a lake sink has landed. Like a real one it is the authority on how far its input has been read.
type table struct {
	name     string
	sink     sink.Sink
	rows     []row
	batch    []row
	progress map[task.TopicPartition]position
}

type row struct {
	key, value any
	meta       sink.Meta
}

// appender takes the rows of one task for a table.
type appender struct {
	m     *member
	table *table
}

// Append implements processors.LakeAppender: the row waits in the batch, unless the table has it already.
func (a *appender) Append(key, value any, meta *sink.Meta) error {
	tp, offset := a.m.task.Current()
	if offset < a.table.progress[tp].offset {
		return nil
	}
	if c, ok := a.table.sink.(sink.Checker); ok {
		if err := c.CheckRow(key, value, meta); err != nil {
			return err
		}
	}
	m := *meta
	m.Headers = make([]sink.Header, len(meta.Headers))
	for i, h := range meta.Headers {
		m.Headers[i] = sink.Header{Key: h.Key, Value: cloneBytes(h.Value)}
	}
	a.table.batch = append(a.table.batch, row{pointedTo(key), pointedTo(value), m})
	return nil
}

// makeTables makes the tables that the plan ends in, and notes which inputs they account for.
func (d *Driver) makeTables() {
	for _, t := range d.broker.order {
		for i := range t.partitions {
			t.partitions[i].landedBy = nil
		}
	}
	for _, sub := range d.plan.Subtopologies {
		var fed []*table
		for _, n := range sub.Nodes {
			if n.Kind != plan.LakeNode {
				continue
			}
			if d.tables[n.Lake.Name] == nil {
				d.tables[n.Lake.Name] = &table{name: n.Lake.Name, sink: n.Lake.Sink, progress: map[task.TopicPartition]position{}}
			}
			fed = append(fed, d.tables[n.Lake.Name])
		}
		if !sub.Lake {
			continue
		}
		for _, tp := range d.partitionsOf([]*plan.Subtopology{sub}) {
			d.broker.partition(tp).landedBy = fed
		}
	}
}

func (d *Driver) dropBatches() {
	for _, t := range d.tables {
		t.batch = nil
	}
}

// landTables commits the tables' batches, each with the progress of its inputs. A table that fails drops its batch, and what it was
// fed is read again.
func (d *Driver) landTables() error {
	if len(d.tables) == 0 {
		return nil
	}
	for _, name := range sortedNames(d.tables) {
		t := d.tables[name]
		inputs := d.inputsOf(t)
		if len(t.batch) > 0 && d.failure(LakeOp) != nil {
			t.batch = nil
			if err := d.readAgain(inputs); err != nil {
				return err
			}
			continue
		}
		t.rows = append(t.rows, t.batch...)
		t.batch = nil
		for _, p := range inputs {
			if offset, partitionTime := p.input.Progress(); offset > t.progress[p.id()].offset {
				t.progress[p.id()] = position{offset, partitionTime}
			}
		}
	}
	return nil
}

// inputsOf lists the inputs that a table accounts for.
func (d *Driver) inputsOf(t *table) (inputs []*partition) {
	for _, m := range d.tasks {
		for _, p := range m.inputs {
			if slices.Contains(p.landedBy, t) {
				inputs = append(inputs, p)
			}
		}
	}
	return inputs
}

// landed is the lowest progress of an input over the tables that it feeds.
func (p *partition) landed() position {
	var low position
	for i, t := range p.landedBy {
		at, ok := t.progress[p.id()]
		if !ok {
			at = position{0, processors.NoTimestamp}
		}
		if i == 0 || at.offset < low.offset {
			low = at
		}
	}
	return low
}

// readAgain takes inputs back to what their tables have landed.
func (d *Driver) readAgain(inputs []*partition) error {
	for _, p := range inputs {
		if err := d.seek(p.reader, p.id(), p.landed()); err != nil {
			return err
		}
	}
	return nil
}

// pointedTo is what a pointer in an interface points to; nil for nil.
func pointedTo(p any) any {
	if p == nil {
		return nil
	}
	v := reflect.ValueOf(p)
	if v.IsNil() {
		return nil
	}
	return v.Elem().Interface()
}
