package state

import (
	"sync"
	"sync/atomic"
)

// base holds the committed rows of stores: a task's Pebble database, or an ordered map per in-memory store. Reads may run beside an
// apply, from any goroutine.
type base interface {
	// get appends the value of key to dst.
	get(key, dst []byte) (val []byte, ok bool, err error)
	// cursor makes a cursor that sees the base as it is now.
	cursor() (baseCursor, error)
}

// baseCursor walks over rows. Key and value are valid until the next call.
type baseCursor interface {
	// seek goes to the first row of [lower, upper), or the last one if reverse, and stays within these bounds. prefix promises
	// that all the rows asked for have the Split prefix of lower, so that bloom filters can be used.
	seek(lower, upper []byte, reverse, prefix bool) bool
	next() bool
	key() []byte
	value() []byte
	err() error
	close() error
}

// memoryBase keeps the rows of one store in an ordered map.
type memoryBase struct {
	mu      sync.RWMutex
	m       *orderedMap
	cursors atomic.Int64
}

func newMemoryBase() *memoryBase { return &memoryBase{m: newOrderedMap()} }

func (b *memoryBase) get(key, dst []byte) ([]byte, bool, error) {
	b.mu.RLock()
	val, ok := b.m.get(key)
	b.mu.RUnlock()
	if !ok {
		return dst, false, nil
	}
	return append(dst, val...), true, nil // values are replaced, never changed
}

func (b *memoryBase) cursor() (baseCursor, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	b.cursors.Add(1)
	return &memoryCursor{base: b, c: mapCursor{chunks: b.m.chunks}}, nil
}

// update runs fn on the map. Open cursors keep what they see.
func (b *memoryBase) update(fn func(*orderedMap)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cursors.Load() > 0 {
		b.m.snapshot()
	}
	fn(b.m)
}

func (b *memoryBase) size() (entries int, bytes int64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.m.size, b.m.bytes
}

type memoryCursor struct {
	base         *memoryBase
	c            mapCursor
	lower, upper []byte
	reverse      bool
	closed       bool
}

func (c *memoryCursor) seek(lower, upper []byte, reverse, _ bool) bool {
	c.lower, c.upper, c.reverse = lower, upper, reverse
	if reverse {
		return c.c.seekLT(upper) && string(c.key()) >= string(lower)
	}
	return c.c.seekGE(lower) && string(c.key()) < string(upper)
}

func (c *memoryCursor) next() bool {
	if c.reverse {
		return c.c.back() && string(c.key()) >= string(c.lower)
	}
	return c.c.forward() && string(c.key()) < string(c.upper)
}

func (c *memoryCursor) key() []byte   { return c.c.at().key }
func (c *memoryCursor) value() []byte { return c.c.at().val }
func (c *memoryCursor) err() error    { return nil }

func (c *memoryCursor) close() error {
	if !c.closed {
		c.closed = true
		c.base.cursors.Add(-1)
	}
	return nil
}
