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
	alone   bool // there is nobody to lock out: see Options.Alone
	rows    memoryRows
	bytes   int64       // of keys and values
	ordered *orderedMap // of the rows' bytes; nil before the first scan
	cursors atomic.Int64
}

func newMemoryBase() *memoryBase { return &memoryBase{rows: newMemoryRows()} }

// memoryHash is that part of a row's hash by which the row is found here.
func memoryHash(h uint64) uint32 { return uint32(h >> 32) }

func (b *memoryBase) get(key, dst []byte) ([]byte, bool, error) {
	val, ok := b.getHashed(hashRow(key), key, dst)
	return val, ok, nil
}

// getHashed is get for one who knows the key's hash.
func (b *memoryBase) getHashed(h uint64, key, dst []byte) ([]byte, bool) {
	if !b.alone {
		b.mu.RLock()
		defer b.mu.RUnlock()
	}
	row, ok := b.rows.find(memoryHash(h), key)
	if !ok {
		return dst, false
	}
	return append(dst, row.value()...), true
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
	for _, slot := range b.rows.slots {
		if slot != 0 {
			row := b.rows.at(slot)
			items = append(items, item{row.key(), row.value()})
		}
	}
	slices.SortFunc(items, func(a, b item) int { return bytes.Compare(a.key, b.key) })
	b.ordered = newOrderedMap()
	for _, it := range items {
		b.ordered.set(it.key, it.val)
	}
}

// update runs fn, which may call set, delete and deleteRanges, while no one reads. Open cursors keep what they see.
func (b *memoryBase) update(fn func()) {
	if !b.alone {
		b.mu.Lock()
		defer b.mu.Unlock()
	}
	if b.ordered != nil && b.cursors.Load() > 0 {
		b.ordered.snapshot()
	}
	fn()
	if b.rows.wasteful() {
		b.compact()
	}
}

// compact frees the bytes of rows that are gone, but for those that open cursors still see.
func (b *memoryBase) compact() {
	b.rows.compact()
	if b.ordered == nil {
		return
	}
	for i := range b.ordered.chunks {
		items := b.ordered.own(i).items
		for k := range items {
			row, _ := b.rows.find(memoryHash(hashRow(items[k].key)), items[k].key)
			items[k] = item{row.key(), row.value()}
		}
	}
}

func (b *memoryBase) set(h uint64, key, val []byte) {
	// Without an ordered map nobody holds on to the bytes.
	row, grown, added := b.rows.set(memoryHash(h), key, val, b.ordered == nil)
	b.bytes += int64(grown)
	if added {
		b.bytes += int64(len(key))
	}
	if b.ordered != nil {
		b.ordered.set(row.key(), row.value())
	}
}

func (b *memoryBase) delete(h uint64, key []byte) {
	row, ok := b.rows.delete(memoryHash(h), key)
	if !ok {
		return
	}
	b.bytes -= int64(len(key) + row.valLen())
	if b.ordered != nil {
		b.ordered.delete(key)
	}
}

// deleteRanges removes the keys in any [lower, upper). Without an ordered map it looks at all rows, once: what expires does so by whole segments, which
// costs less than to keep the order.
func (b *memoryBase) deleteRanges(lowers, uppers [2][]byte) {
	if b.ordered != nil {
		for i := range lowers {
			for _, it := range b.ordered.deleteRange(lowers[i], uppers[i]) {
				b.remove(it.key)
			}
		}
		return
	}
	var expired [][]byte
	for _, slot := range b.rows.slots {
		if slot == 0 {
			continue
		}
		key := b.rows.at(slot).key()
		for i := range lowers {
			if bytes.Compare(key, lowers[i]) >= 0 && bytes.Compare(key, uppers[i]) < 0 {
				expired = append(expired, key)
			}
		}
	}
	for _, key := range expired {
		b.remove(key)
	}
}

// remove removes a row from the table, whose key may be the row's own.
func (b *memoryBase) remove(key []byte) {
	if row, ok := b.rows.delete(memoryHash(hashRow(key)), key); ok {
		b.bytes -= int64(len(key) + row.valLen())
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
