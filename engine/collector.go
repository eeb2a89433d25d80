package engine

import (
	"context"
	"math"

	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// collector takes what a task sends into the instance's transaction. It belongs to its runner's worker.
type collector struct {
	e      *Engine
	r      *runner
	hand   *txn.Hand
	ctx    context.Context // of what is sent: a send that waits for room ends with it, see Engine.sending
	asking context.Context // of questions to brokers: ends earlier, see Engine.asking
	arena  []byte
	turn   uint32 // for records without a key
	ends   map[string][]*txn.End
	views  []*state.View

	limitOf string // the topic sent to last, and its limit
	limit   int

	widthOf string // the topic last asked for, by which catalogue, and its partitions
	widthBy *catalog
	width   int32
}

var _ task.Collector = (*collector)(nil)

const arenaSize = 64 << 10

// Send implements task.Collector.
func (c *collector) Send(out *task.Out) error {
	if c.r.spec.lake { // all that it sends are dead letters: its output is rows
		if tp, offset := about(out); offset < c.r.deadFloor[tp] {
			return nil
		}
	}
	if out.About != nil && c.e.cfg.parks { // a dead letter
		if err := c.e.lettersClosed(c.asking, out.Topic); err != nil {
			return c.unanswered(err)
		}
	}
	partition := out.Partition
	if partition < 0 {
		n, err := c.Partitions(out.Topic)
		if err != nil {
			return err
		}
		partition = c.choose(out.Key, n)
	}
	if c.r.spec.lake {
		c.r.deadSent.Store(true)
	}
	record := txn.Record{
		Topic: out.Topic, Partition: partition, Key: c.copy(out.Key), Value: c.copy(out.Value),
		Timestamp: out.Timestamp, Headers: c.headers(out.Headers),
	}
	if c.r.spec.id.Subtopology < 0 {
		return c.setAside(out, record)
	}
	record.End = c.end(out.Topic, partition)
	return c.produce(record)
}

// about is the record that a dead letter is about. One that is about none, from a punctuation, is beyond all that was written before.
func about(out *task.Out) (task.TopicPartition, int64) {
	if out.About == nil || out.About.Topic == "" {
		return task.TopicPartition{}, math.MaxInt64
	}
	return task.TopicPartition{Topic: out.About.Topic, Partition: out.About.Partition}, out.About.Offset
}

// setAside keeps what the global tables send, which is in no task's transaction: dead letters, and entries of the ledger.
func (c *collector) setAside(out *task.Out, record txn.Record) error {
	if err := c.fits(&record); err != nil {
		return err
	}
	tp, offset := about(out)
	c.e.letters.add(letter{from: tp, offset: offset, record: record})
	return nil
}

// end follows how far a repartition topic is written, for pacing; nil where that is not wanted.
func (c *collector) end(topic string, partition int32) *txn.End {
	if !c.e.pacer.on() {
		return nil
	}
	ends, ok := c.ends[topic]
	if !ok {
		if t := c.e.plan.InternalTopics[topic]; t != nil && t.Kind == plan.RepartitionTopic {
			if n, err := c.Partitions(topic); err == nil {
				for p := range n {
					ends = append(ends, c.e.pacer.end(topic, p))
				}
			}
		}
		if c.ends == nil {
			c.ends = map[string][]*txn.End{}
		}
		c.ends[topic] = ends
	}
	if int(partition) < len(ends) {
		return ends[partition]
	}
	return nil
}

// produce puts a record into the transaction. A *processors.RefusedError says that the brokers don't take it.
func (c *collector) produce(r txn.Record) error {
	if err := c.fits(&r); err != nil {
		return err
	}
	if c.e.refusals.any.Load() {
		return c.produceCarefully(r)
	}
	return c.send(r)
}

func (c *collector) send(r txn.Record) error {
	if err := c.hand.Produce(c.ctx, r); err != nil {
		return &producerError{err}
	}
	return nil
}

// producerError says that the producer, and not the record, is to blame.
type producerError struct{ err error }

func (e *producerError) Error() string { return e.err.Error() }
func (e *producerError) Unwrap() error { return e.err }

// choose is Kafka's default partitioner: by the key's hash; records without a key take turns.
func (c *collector) choose(key []byte, partitions int32) int32 {
	if key != nil {
		return processors.PartitionOf(key, partitions)
	}
	c.turn++
	return int32(c.turn/stick) % partitions
}

// stick is how many records without a key go to one partition before the next has its turn, for the sake of batches.
const stick = 100

// Partitions implements task.Collector. What it finds is kept beside the catalogue that said so, which never changes its mind: all workers share the
// catalogue's lock, and ask for each record.
func (c *collector) Partitions(topic string) (int32, error) {
	known := c.e.catalog()
	if topic == c.widthOf && known == c.widthBy {
		return c.width, nil
	}
	t, err := known.topic(c.asking, c.e.control, topic)
	if err != nil {
		return 0, c.unanswered(err)
	}
	c.widthOf, c.widthBy, c.width = topic, known, t.Partitions
	return c.width, nil
}

// unanswered tells an error of a question to brokers from the end of asking: that is nothing the record is to blame for, and what it has done is
// taken back as after any other request that brokers which are away don't answer.
func (c *collector) unanswered(err error) error {
	if err != nil && c.asking.Err() != nil {
		return &producerError{err}
	}
	return err
}

// copy copies bytes into memory that stays as it is until the transaction has ended.
func (c *collector) copy(b []byte) []byte {
	if b == nil {
		return nil
	}
	if c.arena == nil || len(b) > cap(c.arena)-len(c.arena) { // a part of nil would be nil: an empty key is not a null one
		if len(b) > arenaSize/4 {
			return append(make([]byte, 0, len(b)), b...)
		}
		c.arena = make([]byte, 0, arenaSize)
	}
	from := len(c.arena)
	c.arena = append(c.arena, b...)
	return c.arena[from:len(c.arena):len(c.arena)]
}

func (c *collector) headers(in []processors.Header) []txn.Header {
	if len(in) == 0 {
		return nil
	}
	out := make([]txn.Header, len(in))
	for i, h := range in {
		out[i] = txn.Header{Key: h.Key, Value: c.copy(h.Value)}
	}
	return out
}

// close releases the views of global tables.
func (c *collector) close() error {
	for _, v := range c.views {
		v.Close()
	}
	c.views = nil
	return nil
}
