package task

import "slices"

// timeHeap holds what is waiting for its time, the lowest time first. It is Java's PriorityQueue to the letter: which of several elements
// with the same time goes first depends on the heap's inner order, and Kafka Streams' order is that of its heaps.
type timeHeap[T comparable] []timed[T]

type timed[T comparable] struct {
	at int64
	of T
}

func (h *timeHeap[T]) offer(at int64, of T) {
	*h = append(*h, timed[T]{})
	s, k := *h, len(*h)-1
	for k > 0 {
		parent := (k - 1) / 2
		if at >= s[parent].at {
			break
		}
		s[k], k = s[parent], parent
	}
	s[k] = timed[T]{at, of}
}

// poll takes the first element out. The heap must not be empty.
func (h *timeHeap[T]) poll() T {
	s := *h
	first, n := s[0].of, len(s)-1
	last := s[n]
	s[n] = timed[T]{}
	*h = s[:n]
	if n > 0 {
		h.down(last)
	}
	return first
}

// down puts an element where it belongs from the root downwards.
func (h *timeHeap[T]) down(e timed[T]) {
	s, k := *h, 0
	for 2*k+1 < len(s) {
		child := 2*k + 1
		if right := child + 1; right < len(s) && s[child].at > s[right].at {
			child = right
		}
		if e.at <= s[child].at {
			break
		}
		s[k], k = s[child], child
	}
	s[k] = e
}

// remove takes an element out, if it is in, and builds the heap anew.
func (h *timeHeap[T]) remove(of T) {
	i := slices.IndexFunc(*h, func(e timed[T]) bool { return e.of == of })
	if i < 0 {
		return
	}
	rest := slices.Delete(slices.Clone(*h), i, i+1)
	*h = (*h)[:0]
	for _, e := range rest {
		h.offer(e.at, e.of)
	}
}
