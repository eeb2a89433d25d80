package state

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
)

// memoryBase keeps the rows of one store in a hash table, and from the first scan on in an ordered map as well: a store that is only got
// from and put into never pays for order.
type memoryBase struct {
	mu      sync.RWMutex
	rows    memoryTable
	bytes   int64
	ordered *orderedMap // of the table's bytes; nil before the first scan
	cursors atomic.Int64
}

func newMemoryBase() *memoryBase { return &memoryBase{rows: newMemoryTable()} }

func (b *memoryBase) get(key, dst []byte) ([]byte, bool, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	row := b.rows.find(key)
	if row == nil {
		return dst, false, nil
	}
	return append(dst, row.value()...), true, nil
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
	items := make([]item, 0, b.rows.n)
	for i := range b.rows.slots {
		if row := &b.rows.slots[i]; row.row != nil {
			items = append(items, item{row.key(), row.value()})
		}
	}
	slices.SortFunc(items, func(a, b item) int { return bytes.Compare(a.key, b.key) })
	b.ordered = newOrderedMap()
	for _, it := range items {
		b.ordered.set(it.key, it.val)
	}
}

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
	row := b.rows.find(key)
	if row == nil {
		row = b.rows.insert(key, val)
		b.bytes += int64(len(row.row))
	} else {
		b.bytes += int64(len(val) - len(row.value()))
		if b.ordered == nil && cap(row.row) >= len(key)+len(val) {
			row.row = append(row.row[:len(key)], val...) // nobody holds on to the bytes: cursors read those of the ordered map
			return
		}
		row.row = joinRow(key, val)
	}
	if b.ordered != nil {
		b.ordered.set(row.key(), row.value())
	}
}

func (b *memoryBase) delete(key []byte) {
	row := b.rows.find(key)
	if row == nil {
		return
	}
	b.bytes -= int64(len(row.row))
	b.rows.delete(key)
	if b.ordered != nil {
		b.ordered.delete(key)
	}
}

// deleteRange removes the keys in [lower, upper).
func (b *memoryBase) deleteRange(lower, upper []byte) {
	if b.ordered == nil {
		if b.rows.n == 0 {
			return
		}
		b.buildOrdered()
	}
	for _, it := range b.ordered.deleteRange(lower, upper) {
		b.bytes -= int64(len(it.key) + len(it.val))
		b.rows.delete(it.key)
	}
}

func (b *memoryBase) size() (entries int, bytes int64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.rows.n, b.bytes
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
