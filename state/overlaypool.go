package state

import (
	"slices"
	"sync"
)

// overlayPool lends overlays their memory. A store has some while it has writes that aren't committed and applied. Records come task by task, so
// that each of them may fill a large overlay in its turn; all together need much less than each of them at its largest.
//
// Safe for concurrent use. The zero value is empty.
type overlayPool struct {
	mu    sync.Mutex
	free  []lentMemory // in the order in which they were given back
	given uint64       // how often memory was given back
}

type lentMemory struct {
	overlayMemory
	given uint64
}

// poolKeeps is for how many gives, for each piece of free memory, a piece is kept that nobody has taken.
const poolKeeps = 16

// take gives memory to an overlay that is likely to use so many bytes of the buffer: the smallest that has them, else the largest, and of several
// the one given back last. A small overlay in large memory would let go of it, and a large one in small memory would have to grow it anew.
func (p *overlayPool) take(need int) overlayMemory {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return overlayMemory{}
	}
	best := len(p.free) - 1
	for i := best - 1; i >= 0; i-- {
		if n, than := cap(p.free[i].buf), cap(p.free[best].buf); n >= need && (n < than || than < need) || n < need && n > than {
			best = i
		}
	}
	m := p.free[best].overlayMemory
	p.free = slices.Delete(p.free, best, best+1)
	return m
}

// give takes memory back, which nothing may read any more.
func (p *overlayPool) give(m overlayMemory) {
	if cap(m.buf) == 0 && cap(m.log) == 0 {
		return
	}
	m.reset()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given++
	if len(p.free) > 0 && p.given-p.free[0].given > uint64(poolKeeps*(len(p.free)+1)) {
		p.free = slices.Delete(p.free, 0, 1)
	}
	if cap(m.buf) > 0 {
		p.free = append(p.free, lentMemory{m, p.given})
	}
}
