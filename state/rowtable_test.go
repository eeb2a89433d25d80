package state

import (
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

// TestFewRowsThatComeAndGo has about as many rows as a small table has room for, and new ones for old ones, until rows have gone past all its
// buckets: who looks for another one has to come to an end all the same.
func TestFewRowsThatComeAndGo(t *testing.T) {
	var c rowCache
	defer c.clear()
	rnd := rand.New(rand.NewPCG(1, 1))
	key := func(n uint64) ([]byte, uint32) {
		k := binary.BigEndian.AppendUint64(nil, n)
		return k, rowHash(k)
	}
	live := make([]uint64, 47)
	passedAll := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 50_000 {
			i := rnd.IntN(len(live))
			k, h := key(live[i])
			c.remove(h, k)
			live[i] = rnd.Uint64()
			k, h = key(live[i])
			if c.table.buckets() > 0 && c.table.allPassed() {
				passedAll++
			}
			c.set(h, k, []byte("v"), 1<<20)
		}
		for _, n := range live {
			k, h := key(n)
			if _, ok := c.get(h, k, nil); !ok {
				t.Errorf("row %d isn't there", n)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("a row is looked for without end")
	}
	if passedAll == 0 || c.table.buckets() != leastBuckets {
		t.Errorf("in a table of %d buckets it was %d times that rows had passed them all: nothing was tried", c.table.buckets(), passedAll)
	}
}

func (t *rowTable) allPassed() bool {
	for i := range t.all {
		if t.all[i].passed == 0 {
			return false
		}
	}
	return true
}

// TestLoweredLimit has a large cache make do with little: most of that is for rows then, as it is in a cache that was small from the beginning.
func TestLoweredLimit(t *testing.T) {
	const rows, limit = 150_000, 3 << 19
	used := func(limits ...int64) int {
		var c rowCache
		defer c.clear()
		for _, limit := range limits {
			for n := range uint64(rows) {
				k := binary.BigEndian.AppendUint64(nil, n)
				c.set(rowHash(k), k, []byte("v"), limit)
			}
			c.fit(limit)
		}
		if c.size() > limit {
			t.Errorf("%d bytes are in use, the limit is %d", c.size(), limit)
		}
		return c.used
	}
	if small, lowered := used(limit), used(16<<20, limit); lowered < small*9/10 {
		t.Errorf("%d rows are kept where the limit was lowered, %d where it was low at once", lowered, small)
	}
}

// TestFilledFrontKeepsItsLimit has rows make room for the filters that were read beside the task.
func TestFilledFrontKeepsItsLimit(t *testing.T) {
	var used atomic.Int64
	const limit = 1 << 20
	f := newFront(func() int64 { return limit }, &used, false)
	found := &fillResult{filters: map[int64]*filter{noSegment: newFilter(limit)}}
	for n := range uint64(100_000) {
		k := binary.BigEndian.AppendUint64(appendPrefix(nil, 1, classPlain), n)
		h := hashRow(k)
		f.learn(h, k, []byte("v"))
		found.filters[noSegment].add(h)
	}
	rows := used.Load()
	f.filled(found)
	if n := used.Load(); rows < limit*9/10 || n > limit || n < limit/2 {
		t.Errorf("rows took %d bytes; with filters it is %d, the limit is %d", rows, n, limit)
	}
	f.close()
	if n := used.Load(); n != 0 {
		t.Errorf("a closed front takes %d bytes", n)
	}
}
