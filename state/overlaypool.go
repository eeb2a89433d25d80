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
	bytes int64        // of what is free
}

type lentMemory struct {
	overlayMemory
	given  uint64
	rested bool // nobody has taken it since a trim
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
	return p.remove(best)
}

// remove takes a piece out. mu must be held.
func (p *overlayPool) remove(i int) overlayMemory {
	m := p.free[i].overlayMemory
	p.free = slices.Delete(p.free, i, i+1)
	p.bytes -= m.bytes()
	return m
}

// trim gives up what nobody has taken since the last trim.
func (p *overlayPool) trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.free) - 1; i >= 0; i-- {
		if p.free[i].rested {
			p.remove(i)
		} else {
			p.free[i].rested = true
		}
	}
}

// size is what the free memory takes, in bytes.
func (p *overlayPool) size() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
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
		p.remove(0)
	}
	if cap(m.buf) > 0 {
		p.free = append(p.free, lentMemory{overlayMemory: m, given: p.given})
		p.bytes += m.bytes()
	}
}
