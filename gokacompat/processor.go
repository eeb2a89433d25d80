package gokacompat

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lovoo/goka"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// processor calls a group's callbacks in one task.
type processor struct {
	app       *Application
	ctx       processors.ProcessorContext[[]byte, []byte]
	partition int32

	table   table
	joins   map[string]*table
	lookups map[string]*table
	outputs map[goka.Stream]output
	loop    output
	inputs  map[string]*input
	last    *input // that of the record before: mostly the same

	life     context.Context
	end      context.CancelFunc
	call     callbackContext // reused: a context is valid within its callback only
	deferred deferrals
	visits   visits
	warned   bool // that headers of table records are left out
}

// table is a store with the codec of its values.
type table struct {
	rows   state.KeyValueBytes // nil: the group has no such table
	codec  goka.Codec
	copies bool // decoded values don't point into buf
	buf    []byte
}

// output is where Emit or Loopback send to.
type output struct {
	child string
	codec goka.Codec
}

// input is a topic whose records are given to a callback.
type input struct {
	topic      string
	codec      goka.Codec
	call       goka.ProcessCallback
	partitions int32 // of the topic; 0 while it isn't known
	loop       bool
}

func (a *Application) newProcessor() processors.Processor[[]byte, any, []byte, []byte] {
	return &processor{app: a}
}

func (p *processor) Init(ctx processors.ProcessorContext[[]byte, []byte]) (err error) {
	p.ctx = ctx
	if p.partition, err = partitionOf(ctx.TaskID()); err != nil {
		return err
	}
	if err := p.openTables(); err != nil {
		return err
	}
	p.wire()
	p.life, p.end = context.WithCancel(p.app.opts.ctx)
	p.call.p = p
	p.deferred.limit = p.app.opts.deferLimit
	ctx.BeforeCommit(p.beforeCommit)
	if len(p.app.calls.visitors) > 0 {
		ctx.Schedule(visitLook, processors.WallClockTime, p.lookForVisits)
	}
	p.app.started(p)
	return nil
}

// partitionOf is the partition in a task's id, such as 0_3.
func partitionOf(taskID string) (int32, error) {
	_, partition, _ := strings.Cut(taskID, "_")
	n, err := strconv.ParseInt(partition, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("task id %q has no partition: %w", taskID, err)
	}
	return int32(n), nil
}

func (p *processor) openTables() error {
	graph := p.app.graph
	open := func(store string, codec goka.Codec) (table, error) {
		rows, err := p.ctx.Stores().KeyValueBytes(store)
		return table{rows: rows, codec: codec, copies: copies(codec)}, err
	}
	var err error
	if e := graph.GroupTable(); e != nil {
		if p.table, err = open(tableStore, e.Codec()); err != nil {
			return err
		}
	}
	all := func(edges goka.Edges, store func(string) string) (map[string]*table, error) {
		opened := make(map[string]*table, len(edges))
		for _, e := range edges {
			t, err := open(store(e.Topic()), e.Codec())
			if err != nil {
				return nil, err
			}
			opened[e.Topic()] = &t
		}
		return opened, nil
	}
	if p.joins, err = all(graph.JointTables(), joinStore); err != nil {
		return err
	}
	p.lookups, err = all(graph.LookupTables(), lookupStore)
	return err
}

func (p *processor) wire() {
	graph := p.app.graph
	p.outputs = map[goka.Stream]output{}
	for _, e := range graph.OutputStreams() {
		p.outputs[goka.Stream(e.Topic())] = output{child: emitName(e.Topic()), codec: e.Codec()}
	}
	p.inputs = map[string]*input{}
	for _, e := range p.app.inputs() {
		p.inputs[e.Topic()] = &input{topic: e.Topic(), codec: e.Codec(), call: p.app.calls.inputs[e.Topic()]}
	}
	if loop := graph.LoopStream(); loop != nil {
		p.loop = output{child: loopChild, codec: loop.Codec()}
		p.inputs[loop.Topic()].loop = true
	}
}

// Process gives a record to the callback of its topic.
func (p *processor) Process(r *processors.Record[[]byte, any]) error {
	at, _ := p.ctx.Metadata()
	in := p.last
	if in == nil || in.topic != at.Topic {
		if in = p.inputs[at.Topic]; in == nil {
			return fmt.Errorf("topic %s is no input of group %s", at.Topic, p.app.graph.Group())
		}
		p.last = in
	}
	if !p.app.opts.anywhere {
		if err := p.checkPlace(in, at.Offset, r.Key); err != nil {
			return err
		}
	}
	message, wanted, err := p.message(in, r)
	if err != nil || !wanted {
		return err
	}
	c := &p.call
	c.begin(goka.Stream(in.topic), filled(r.Key), r.Timestamp, at.Offset)
	return c.run(in.call, message)
}

// message is what the callback gets; wanted is false for a record that is to be left out.
func (p *processor) message(in *input, r *processors.Record[[]byte, any]) (message any, wanted bool, err error) {
	if _, is := r.Value.(decodedNil); is {
		return nil, true, nil
	}
	if !r.ValueNull {
		return r.Value, true, nil
	}
	switch p.app.opts.nils {
	case goka.NilProcess:
		return nil, true, nil
	case goka.NilDecode:
		message, err = in.codec.Decode(nil)
		if err != nil {
			return nil, false, fmt.Errorf("topic %s: decode a record without a value: %w", in.topic, err)
		}
		return message, true, nil
	}
	p.ctx.Dropped(processors.DroppedNullValue)
	return nil, false, nil
}

// partitionCounts is the part of a node's runtime that tells how wide a topic is.
type partitionCounts interface {
	Partitions(topic string) (int32, error)
}

// checkPlace checks that a record is in the partition where the group's hash puts its key.
func (p *processor) checkPlace(in *input, offset int64, key []byte) error {
	if in.partitions == 0 {
		counts, ok := p.ctx.(partitionCounts)
		if !ok {
			return nil
		}
		n, err := counts.Partitions(in.topic)
		if err != nil {
			return &storeError{fmt.Errorf("ask for the partitions of %s: %w", in.topic, err)}
		}
		in.partitions = n
	}
	return misplaced(p.app.opts.partition, in.topic, p.partition, offset, key, in.partitions)
}

// get reads a row; nil without one. The bytes are valid until the next call if the codec copies, else for good.
func (t *table) get(key []byte) ([]byte, error) {
	var dst []byte
	if t.copies {
		dst = t.buf[:0]
	}
	value, _, ok, err := t.rows.Get(key, dst)
	if err != nil || !ok {
		return nil, err
	}
	if t.copies {
		t.buf = value
	}
	return filled(value), nil
}

// value reads and decodes a row.
func (t *table) value(key []byte) (any, error) {
	data, err := t.get(key)
	if err != nil {
		return nil, &storeError{err}
	}
	if data == nil {
		return nil, nil
	}
	v, err := t.codec.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode the value of key %q: %w", key, err)
	}
	return v, nil
}

// beforeCommit is called while nothing of the task is processed.
func (p *processor) beforeCommit() error {
	if err := p.deferred.wait(p.life); err != nil {
		return err
	}
	p.visits.seal()
	return nil
}

// Close ends what callbacks may have started with the task's context. What is uncommitted is done again by another task.
func (p *processor) Close() error {
	p.app.stopped(p)
	if p.end != nil {
		p.end()
	}
	p.visits.close()
	return nil
}
