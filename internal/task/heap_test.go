package task

import (
	"testing"

	"pgregory.net/rapid"
)

// What Java's PriorityQueue does with three equal elements: the last one offered comes second.
func TestHeapBreaksTiesAsJavaDoes(t *testing.T) {
	a, b, c := &queue{}, &queue{}, &queue{}
	var h timeHeap[*queue]
	for _, q := range []*queue{a, b, c} {
		h.offer(q.timestamp, q)
	}
	for i, want := range []*queue{a, c, a, c} {
		got := h.poll()
		if got != want {
			t.Fatalf("poll %d gave another queue", i)
		}
		h.offer(0, got)
	}
	h.remove(a)
	if first := h.poll(); first != b && first != c || len(h) != 1 {
		t.Errorf("after removing one of three, %d are left behind the first", len(h))
	}
}

func TestHeapIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h timeHeap[*queue]
		in := map[*queue]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch {
			case len(in) > 0 && rapid.IntRange(0, 3).Draw(t, "op") == 0:
				first := h.poll()
				for q := range in {
					if q.timestamp < first.timestamp {
						t.Fatalf("%d came before %d", first.timestamp, q.timestamp)
					}
				}
				delete(in, first)
			case len(in) > 0 && rapid.IntRange(0, 6).Draw(t, "op") == 0:
				for q := range in {
					h.remove(q)
					delete(in, q)
					break
				}
			default:
				q := &queue{timestamp: rapid.Int64Range(0, 5).Draw(t, "time")}
				h.offer(q.timestamp, q)
				in[q] = true
			}
			if len(h) != len(in) {
				t.Fatalf("%d in the heap, want %d", len(h), len(in))
			}
		}
	})
}
