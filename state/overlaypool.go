package state

import "sync"

// overlayPool lends overlays their memory. A store has some while it has writes that aren't committed and applied. Records come task by task, so
// that each of them may fill a large overlay in its turn; all together need much less than each of them at its largest.
//
// Safe for concurrent use. The zero value is empty.
type overlayPool struct {
	mu    sync.Mutex
	free  []lentMemory // the one given back last is taken first
	given uint64       // how often memory was given back
}

type lentMemory struct {
	overlayMemory
	given uint64
}

// poolKeeps is for how many gives, for each piece of free memory, a piece is kept that nobody has taken.
const poolKeeps = 16

func (p *overlayPool) take() overlayMemory {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		return overlayMemory{}
	}
	m := p.free[n-1].overlayMemory
	p.free[n-1] = lentMemory{}
	p.free = p.free[:n-1]
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
		p.free = append(p.free[:0], p.free[1:]...)
	}
	if cap(m.buf) > 0 {
		p.free = append(p.free, lentMemory{m, p.given})
	}
}
