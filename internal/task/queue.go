package task

import (
	"sync/atomic"

	"github.com/tributary-io/tributary/processors"
)

// queue holds the records of one input partition that are fetched but not processed. The head is deserialized, since its event time
// decides when the queue's turn comes.
type queue struct {
	tp   TopicPartition
	node *node
	head processors.Head

	ring  []processors.RawRecord // a ring buffer: its length is a power of two
	first int
	n     int
	bytes int

	loaded    bool
	timestamp int64 // event time of the head, if loaded

	partitionTime int64
	position      int64 // the next offset to fetch, as the host last said; -1: unknown

	holdsSince atomic.Int64 // wall clock in ms since when others wait for this queue, which is empty; 0: they don't
}

func newQueue(tp TopicPartition, n *node, head processors.Head) *queue {
	return &queue{tp: tp, node: n, head: head, ring: make([]processors.RawRecord, 8), partitionTime: processors.NoTimestamp, position: -1}
}

func (q *queue) push(r processors.RawRecord) {
	if q.n == len(q.ring) {
		bigger := make([]processors.RawRecord, 2*len(q.ring))
		k := copy(bigger, q.ring[q.first:])
		copy(bigger[k:], q.ring[:q.first])
		q.ring, q.first = bigger, 0
	}
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = r
	q.n++
	q.bytes += rawSize(&r)
}

func (q *queue) front() *processors.RawRecord { return &q.ring[q.first] }

func (q *queue) pop() {
	r := q.front()
	q.bytes -= rawSize(r)
	*r = processors.RawRecord{} // let go of the bytes
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.n--
	q.loaded = false
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
