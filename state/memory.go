package state

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// memoryBase keeps the rows of one store in a hash map, and from the first scan on in an ordered map as well: a store that is only got
// from and put into never pays for order.
type memoryBase struct {
	mu      sync.RWMutex
	rows    map[string]*memoryRow
	bytes   int64
	ordered *orderedMap // nil before the first scan
	cursors atomic.Int64
}

type memoryRow struct{ val []byte }

func newMemoryBase() *memoryBase { return &memoryBase{rows: map[string]*memoryRow{}} }

func (b *memoryBase) get(key, dst []byte) ([]byte, bool, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	row := b.rows[string(key)]
	if row == nil {
		return dst, false, nil
	}
	return append(dst, row.val...), true, nil
}

func (b *memoryBase) open(c *cursor) error {
	b.mu.RLock()
	if b.ordered == nil {
		b.mu.RUnlock()
		b.order()
		b.mu.RLock()
	}
	defer b.mu.RUnlock()
	b.cursors.Add(1)
	c.inMemory = memoryCursor{base: b, c: mapCursor{chunks: b.ordered.chunks}}
	c.base = &c.inMemory
	return nil
}

// order brings the rows into order.
func (b *memoryBase) order() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ordered == nil {
		b.buildOrdered()
	}
}

func (b *memoryBase) buildOrdered() {
	keys := make([]string, 0, len(b.rows))
	for k := range b.rows {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b.ordered = newOrderedMap()
	for _, k := range keys {
		b.ordered.set(bytesOf(k), b.rows[k].val)
	}
}

// bytesOf gives the bytes of a string, which must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// update runs fn, which may call set, delete and deleteRange, while no one reads. Open cursors keep what they see.
func (b *memoryBase) update(fn func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ordered != nil && b.cursors.Load() > 0 {
		b.ordered.snapshot()
	}
	fn()
}

func (b *memoryBase) set(key, val []byte) {
	if row := b.rows[string(key)]; row != nil {
		b.bytes += int64(len(val) - len(row.val))
		if b.ordered == nil && cap(row.val) >= len(val) {
			row.val = append(row.val[:0], val...) // nobody holds on to the bytes: cursors read those of the ordered map
			return
		}
		row.val = slices.Clone(val)
		if b.ordered != nil {
			b.ordered.set(key, row.val)
		}
		return
	}
	k := string(key)
	row := &memoryRow{append(make([]byte, 0, len(val)), val...)}
	b.rows[k] = row
	b.bytes += int64(len(k) + len(val))
	if b.ordered != nil {
		b.ordered.set(bytesOf(k), row.val)
	}
}

func (b *memoryBase) delete(key []byte) {
	row := b.rows[string(key)]
	if row == nil {
		return
	}
	b.bytes -= int64(len(key) + len(row.val))
	delete(b.rows, string(key))
	if b.ordered != nil {
		b.ordered.delete(key)
	}
}

// deleteRange removes the keys in [lower, upper).
func (b *memoryBase) deleteRange(lower, upper []byte) {
	if b.ordered == nil {
		if len(b.rows) == 0 {
			return
		}
		b.buildOrdered()
	}
	for _, it := range b.ordered.deleteRange(lower, upper) {
		b.bytes -= int64(len(it.key) + len(it.val))
		delete(b.rows, string(it.key))
	}
}

func (b *memoryBase) size() (entries int, bytes int64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.rows), b.bytes
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
