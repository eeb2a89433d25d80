package task

import "slices"

// timeHeap holds the queues whose head is known, the lowest event time first. It is Java's PriorityQueue to the letter: which of several
// queues with the same time goes first depends on the heap's inner order, and Kafka Streams' order is that of its heap.
type timeHeap []*queue

func (h *timeHeap) offer(q *queue) {
	*h = append(*h, q)
	s, k := *h, len(*h)-1
	for k > 0 {
		parent := (k - 1) / 2
		if q.timestamp >= s[parent].timestamp {
			break
		}
		s[k], k = s[parent], parent
	}
	s[k] = q
}

// poll takes the first queue out. The heap must not be empty.
func (h *timeHeap) poll() *queue {
	s := *h
	first, n := s[0], len(s)-1
	last := s[n]
	s[n] = nil
	*h = s[:n]
	if n > 0 {
		h.down(last)
	}
	return first
}

// down puts q where it belongs from the root downwards.
func (h *timeHeap) down(q *queue) {
	s, k := *h, 0
	for 2*k+1 < len(s) {
		child := 2*k + 1
		if right := child + 1; right < len(s) && s[child].timestamp > s[right].timestamp {
			child = right
		}
		if q.timestamp <= s[child].timestamp {
			break
		}
		s[k], k = s[child], child
	}
	s[k] = q
}

// remove takes a queue out, if it is in, and builds the heap anew.
func (h *timeHeap) remove(q *queue) {
	i := slices.Index(*h, q)
	if i < 0 {
		return
	}
	rest := slices.Delete(slices.Clone(*h), i, i+1)
	*h = (*h)[:0]
	for _, q := range rest {
		h.offer(q)
	}
}
