package task

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/processors"
)

// queue holds the records of one input partition that are fetched but not processed. The head is deserialized, since its event time
// decides when the queue's turn comes.
type queue struct {
	tp   TopicPartition
	node *node
	head processors.Head

	batches [][]processors.RawRecord // as they were added; none is empty
	first   int                      // in the first batch
	open    bool                     // the last batch takes more: it is made of small ones
	spare   []processors.RawRecord   // an empty one of that kind
	n       int
	bytes   int

	loaded    bool
	timestamp int64 // event time of the head, if loaded

	partitionTime int64
	position      int64 // the next offset to fetch, as the host last said; -1: unknown

	holdsSince atomic.Int64 // wall clock in ms since when others wait for this queue, which is empty; 0: they don't
}

func newQueue(tp TopicPartition, n *node, head processors.Head) *queue {
	return &queue{tp: tp, node: n, head: head, partitionTime: processors.NoTimestamp, position: -1}
}

// maxIdle is how long others wait for the queue while it is empty: what its source says, else the task's setting.
func (q *queue) maxIdle(otherwise time.Duration) time.Duration {
	wait := q.node.spec.Idle.Wait
	switch {
	case !wait.Set:
		return otherwise
	case wait.Ms > math.MaxInt64/int64(time.Millisecond):
		return math.MaxInt64
	}
	return time.Duration(wait.Ms) * time.Millisecond
}

// small is up to how many records are copied together: the harness adds them one by one.
const small = 16

// push adds records. The slice is the queue's from now on: large ones aren't copied.
func (q *queue) push(records []processors.RawRecord) {
	for i := range records {
		q.bytes += rawSize(&records[i])
	}
	q.n += len(records)
	switch last := len(q.batches) - 1; {
	case len(records) == 0:
	case len(records) > small:
		q.batches, q.open = append(q.batches, records), false
	case q.open && len(q.batches[last])+len(records) <= cap(q.batches[last]):
		q.batches[last] = append(q.batches[last], records...)
	default:
		q.batches, q.open = append(q.batches, append(q.smallBatch(), records...)), true
	}
}

// slot gives the place behind the last record, which is empty. It counts once it is filled.
func (q *queue) slot() *processors.RawRecord {
	last := len(q.batches) - 1
	if !q.open || len(q.batches[last]) == cap(q.batches[last]) {
		q.batches, q.open = append(q.batches, q.smallBatch()), true
		last++
	}
	n := len(q.batches[last])
	return &q.batches[last][:n+1][n]
}

// filled adds the record that slot's place was filled with.
func (q *queue) filled(r *processors.RawRecord) {
	q.bytes += rawSize(r)
	q.n++
	last := len(q.batches) - 1
	q.batches[last] = q.batches[last][:len(q.batches[last])+1]
}

// smallBatch gives an empty batch that takes records one by one.
func (q *queue) smallBatch() []processors.RawRecord {
	batch := q.spare
	if q.spare = nil; batch == nil {
		batch = make([]processors.RawRecord, 0, 2*small)
	}
	return batch
}

func (q *queue) front() *processors.RawRecord { return &q.batches[0][q.first] }

func (q *queue) pop() {
	r := q.front()
	q.bytes -= rawSize(r)
	*r = processors.RawRecord{} // let go of the bytes
	q.n--
	q.loaded = false
	if q.first++; q.first == len(q.batches[0]) {
		q.drop()
	}
}

// drop takes the first batch away, which is used up.
func (q *queue) drop() {
	batch := q.batches[0]
	q.batches[0], q.first = nil, 0
	if len(q.batches) == 1 {
		q.batches, q.open = q.batches[:0], false
	} else {
		q.batches = q.batches[1:]
	}
	if cap(batch) == 2*small {
		q.spare = batch[:0]
	}
}

// next is the offset up to which everything is processed: what may be committed. -1: unknown.
func (q *queue) next() int64 {
	if q.n > 0 {
		return q.front().Offset
	}
	return q.position
}

const rawOverhead = 128 // of the structs around a record's bytes

func rawSize(r *processors.RawRecord) int {
	size := rawOverhead + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		size += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return size
}
