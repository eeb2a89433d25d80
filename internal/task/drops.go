package task

import (
	"sync"
	"sync/atomic"
)

// Drop says how many records a node left out for one reason.
type Drop struct {
	Node   string
	Reason string
	Count  int64
}

// drops counts the records that one node left out. It is written by the task's worker and read by any goroutine.
type drops struct {
	mu      sync.RWMutex
	reasons []string
	counts  []*atomic.Int64
}

func (d *drops) add(reason string) {
	for i, r := range d.reasons { // only the writer changes the slices, so it may read them without the lock
		if r == reason {
			d.counts[i].Add(1)
			return
		}
	}
	c := new(atomic.Int64)
	c.Add(1)
	d.mu.Lock()
	d.reasons, d.counts = append(d.reasons, reason), append(d.counts, c)
	d.mu.Unlock()
}

func (d *drops) appendTo(all []Drop, node string) []Drop {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for i, r := range d.reasons {
		all = append(all, Drop{Node: node, Reason: r, Count: d.counts[i].Load()})
	}
	return all
}
