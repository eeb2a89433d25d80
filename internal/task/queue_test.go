package task

import (
	"slices"
	"testing"

	"github.com/tributary-io/tributary/processors"
)

// Records come out in the order in which they were added, in small batches and in large ones.
func TestQueueKeepsTheOrder(t *testing.T) {
	q := newQueue(TopicPartition{Topic: "a"}, nil, nil)
	var want, got []int64
	take := func(n int) {
		for range min(n, q.n) {
			got = append(got, q.front().Offset)
			q.pop()
		}
	}
	next := int64(0)
	for round := range 200 {
		batch := make([]processors.RawRecord, (round*7)%(2*small+3))
		for i := range batch {
			batch[i] = processors.RawRecord{Offset: next, Value: make([]byte, 10)}
			want = append(want, next)
			next++
		}
		q.push(batch)
		take(round * 5 % 31)
	}
	take(q.n)
	if !slices.Equal(want, got) || q.bytes != 0 {
		t.Errorf("want %v\ngot %v, %d bytes left", want, got, q.bytes)
	}
}

func TestQueueOfSingleRecordsAllocatesNothing(t *testing.T) {
	q := newQueue(TopicPartition{Topic: "a"}, nil, nil)
	one := make([]processors.RawRecord, 1)
	step := func() {
		q.push(one)
		q.pop()
	}
	step()
	if n := testing.AllocsPerRun(100, step); n > 0 {
		t.Errorf("%v allocations a record", n)
	}
}
