package task

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-io/tributary/processors"
)

// Add puts records of one input partition, in order, behind those that it has. position is the next offset that the host will
// fetch: beyond the last record where markers or aborted records follow it. The slice is the task's afterwards, and the records' bytes must
// never change.
func (t *Task) Add(tp TopicPartition, records []processors.RawRecord, position int64) error {
	q := t.byTP[tp]
	if q == nil {
		return fmt.Errorf("task %s: internal: %s is not an input", t.cfg.ID, tp)
	}
	if q.n == 0 && len(records) > 0 {
		t.waiting = append(t.waiting, q)
	}
	q.push(records)
	if position > q.position {
		q.position = position
		t.dirty = t.dirty || len(records) == 0
	}
	return nil
}

// SetPosition sets where an input starts: the offset to fetch first, and the partition time committed with it (or
// processors.NoTimestamp). Records that the input still holds are dropped.
func (t *Task) SetPosition(tp TopicPartition, offset, partitionTime int64) error {
	q := t.byTP[tp]
	if q == nil {
		return fmt.Errorf("task %s: internal: %s is not an input", t.cfg.ID, tp)
	}
	for q.n > 0 {
		q.pop()
	}
	t.ready.remove(q)
	t.waiting = slices.DeleteFunc(t.waiting, func(w *queue) bool { return w == q })
	q.position, q.partitionTime = offset, partitionTime
	t.streamTime = max(t.streamTime, partitionTime)
	return nil
}

// Buffered returns how many records, and about how many bytes, of an input wait to be processed.
func (t *Task) Buffered(tp TopicPartition) (records, bytes int) {
	if q := t.byTP[tp]; q != nil {
		return q.n, q.bytes
	}
	return 0, 0
}

// HasRecords reports whether any input has records.
func (t *Task) HasRecords() bool {
	for _, q := range t.queues {
		if q.n > 0 {
			return true
		}
	}
	return false
}

// Position is how far one input is processed.
type Position struct {
	TopicPartition
	Offset        int64 // the next offset to read; -1: nothing read yet
	PartitionTime int64 // the largest event time seen, or processors.NoTimestamp
}

// Positions appends the progress of each input to dst. With the task between two records it is what may be committed.
func (t *Task) Positions(dst []Position) []Position {
	for _, q := range t.queues {
		dst = append(dst, Position{q.tp, q.next(), q.partitionTime})
	}
	return dst
}

// Process processes one record, if one is ready, and reports whether it did. Errors are fatal for the task: the record at the head
// is still there, and Positions do not include it.
func (t *Task) Process() (bool, error) {
	q, err := t.choose()
	if q == nil || err != nil {
		return false, err
	}
	if t.ahead = q.timestamp > t.limit; t.ahead {
		return false, nil
	}
	raw := q.front()
	t.ready.poll()
	t.streamTime = max(t.streamTime, q.timestamp)
	t.setContext(raw, q.timestamp)
	err = q.process()
	if t.ledgerErr != nil {
		err = errors.Join(err, t.takeLedgerErr())
	}
	if err == nil {
		q.partitionTime = max(q.partitionTime, q.timestamp)
		if q.pop(); q.n == 0 {
			t.becameIdle()
		}
	}
	if q.n > 0 { // behind others with the same time
		t.waiting = append(t.waiting, q)
	}
	if err != nil {
		return false, t.located(q.node.spec.Name, err)
	}
	t.dirty = true
	t.processed.Add(1)
	return true, nil
}

func (q *queue) process() (err error) {
	defer recoverTo(&err)
	return q.head.Process()
}

func (t *Task) setContext(raw *processors.RawRecord, timestamp int64) {
	c := &t.context
	c.Topic, c.Partition, c.Offset = raw.Topic, raw.Partition, raw.Offset
	c.Timestamp, c.Headers = timestamp, raw.Headers
	c.RawKey, c.RawValue, c.BrokerTimestamp = raw.Key, raw.Value, raw.Timestamp
}

// choose returns the queue whose head comes next, nil if none is ready.
func (t *Task) choose() (*queue, error) {
	for len(t.waiting) > 0 {
		q := t.waiting[0]
		if err := t.load(q); err != nil {
			return nil, err
		}
		if len(t.waiting) == 1 {
			t.waiting = t.waiting[:0]
		} else {
			t.waiting = slices.Delete(t.waiting, 0, 1)
		}
		if q.loaded {
			t.ready.offer(q.timestamp, q)
		}
	}
	if len(t.ready) == 0 {
		if len(t.idleSince) > 0 {
			clear(t.idleSince)
		}
		t.waitFor(nil)
		return nil, nil
	}
	best, empty := t.ready[0].of, len(t.ready) < len(t.queues)
	if !empty {
		if len(t.idleSince) > 0 {
			clear(t.idleSince)
		}
		t.waitFor(nil)
		return best, nil
	}
	if !t.mayGoOn() {
		return nil, nil
	}
	t.waitFor(nil)
	return best, nil
}

// waitFor notes which empty queue the others wait for, if any.
func (t *Task) waitFor(q *queue) {
	if t.waitsFor == q {
		return
	}
	if t.waitsFor != nil {
		t.waitsFor.holdsSince.Store(0)
	}
	if t.waitsFor = q; q != nil {
		q.holdsSince.Store(t.nowMs())
	}
}

// mayGoOn decides whether to process although some inputs are empty (KIP-695): an input that may have records to be fetched is
// waited for; one that has none is waited for up to MaxIdle, or what its source says.
func (t *Task) mayGoOn() bool {
	if t.cfg.MaxIdle < 0 || t.cfg.Lag == nil {
		return true
	}
	var now time.Time
	enforced := false
	for _, q := range t.queues {
		if q.loaded {
			delete(t.idleSince, q)
			continue
		}
		lag, known := t.cfg.Lag(q.tp)
		if !known || lag > 0 {
			delete(t.idleSince, q)
			t.waitFor(q)
			return false
		}
		maxIdle := q.maxIdle(t.cfg.MaxIdle)
		if maxIdle == 0 {
			enforced = true
			continue
		}
		if now.IsZero() {
			now = t.cfg.Clock()
		}
		since, ok := t.idleSince[q]
		if !ok {
			t.idleSince[q] = now
			t.waitFor(q)
			return false
		}
		if now.Sub(since) < maxIdle {
			t.waitFor(q)
			return false
		}
		enforced = true
	}
	if enforced {
		t.enforced.Add(1)
	}
	return true
}

// load deserializes the head of q; records that are left out are skipped until one can be processed.
func (t *Task) load(q *queue) error {
	for !q.loaded && q.n > 0 {
		raw := q.front()
		timestamp, err := q.load(raw)
		if err != nil {
			if err = t.failedToLoad(q, raw, err); err != nil {
				return err
			}
		} else if timestamp >= 0 {
			q.timestamp, q.loaded = timestamp, true
			return nil
		} else {
			q.node.drops.add(processors.DroppedTimestamp)
			err := fmt.Errorf("event time %d is negative", timestamp)
			if err = t.enter(processors.DroppedTimestamp, t.loadContext(q, raw, err)); err != nil {
				return err
			}
			t.logger.Warn("record left out: its event time is negative", "topic", raw.Topic, "partition", raw.Partition,
				"offset", raw.Offset, "event_time", timestamp)
		}
		q.pop()
		t.dirty = true
	}
	return nil
}

func (q *queue) load(raw *processors.RawRecord) (timestamp int64, err error) {
	defer recoverTo(&err)
	return q.head.Load(raw, q.partitionTime)
}

// failedToLoad asks the deserialization-error handler about raw; nil means that the record is left out.
func (t *Task) failedToLoad(q *queue, raw *processors.RawRecord, err error) error {
	var failed *processors.DeserializationError
	if !errors.As(err, &failed) {
		return t.located(q.node.spec.Name, err)
	}
	c := t.loadContext(q, raw, err)
	return t.judge(t.cfg.Handlers.Deserialization, c, q.node, processors.DroppedDeserialization, func() error {
		return &fatalError{fmt.Errorf("task %s: node %s: %w", c.TaskID, c.Node, err)}
	})
}

// loadContext describes a record that can't be decoded.
func (t *Task) loadContext(q *queue, raw *processors.RawRecord, err error) *processors.ErrorContext {
	return &processors.ErrorContext{
		TaskID: t.cfg.ID.String(), Node: q.node.spec.Name, Topic: raw.Topic, Partition: raw.Partition, Offset: raw.Offset,
		Timestamp: raw.Timestamp, Headers: raw.Headers, RawKey: raw.Key, RawValue: raw.Value, Err: err,
	}
}
