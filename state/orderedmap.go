package state

import (
	"bytes"
	"slices"
	"sort"
)

// orderedMap is a sorted map of bytes in two levels: a list of chunks of items. It is copied on write where a snapshot was taken:
// snapshots are cheap and stay as they are.
//
// It is not safe for concurrent use; snapshots are.
type orderedMap struct {
	chunks []*chunk
	owner  *int // chunks with another owner are shared with a snapshot
	shared bool // the list of chunks is shared with a snapshot
}

type item struct{ key, val []byte }

type chunk struct {
	items []item
	owner *int
}

const maxChunk = 256

func newOrderedMap() *orderedMap { return &orderedMap{owner: new(int)} }

// snapshot gives the chunks as they are. Later writes copy what they change.
func (m *orderedMap) snapshot() []*chunk {
	m.owner = new(int)
	m.shared = true
	return m.chunks
}

// searchChunks gives the chunk that holds key if any does.
func searchChunks(chunks []*chunk, key []byte) int {
	i := sort.Search(len(chunks), func(i int) bool { return bytes.Compare(chunks[i].items[0].key, key) > 0 })
	return max(0, i-1)
}

// searchItems gives the position of key in a chunk, or where it would go.
func searchItems(items []item, key []byte) (int, bool) {
	return slices.BinarySearchFunc(items, key, func(it item, k []byte) int { return bytes.Compare(it.key, k) })
}

// own gives chunk ci for writing.
func (m *orderedMap) own(ci int) *chunk {
	m.ownList()
	c := m.chunks[ci]
	if c.owner != m.owner {
		c = &chunk{items: append(make([]item, 0, maxChunk), c.items...), owner: m.owner}
		m.chunks[ci] = c
	}
	return c
}

func (m *orderedMap) ownList() {
	if m.shared {
		m.chunks = slices.Clone(m.chunks)
		m.shared = false
	}
}

// set keeps key and val: the caller gives them away.
func (m *orderedMap) set(key, val []byte) {
	if len(m.chunks) == 0 {
		m.ownList()
		m.chunks = append(m.chunks, &chunk{items: append(make([]item, 0, maxChunk), item{key, val}), owner: m.owner})
		return
	}
	ci := searchChunks(m.chunks, key)
	c := m.own(ci)
	i, found := searchItems(c.items, key)
	if found {
		c.items[i] = item{key, val}
		return
	}
	if len(c.items) == maxChunk {
		c, i = m.split(ci, i)
	}
	c.items = slices.Insert(c.items, i, item{key, val})
}

// split makes room for an item at position i of the full chunk ci, and gives the place where it goes now.
func (m *orderedMap) split(ci, i int) (*chunk, int) {
	c := m.chunks[ci]
	at := maxChunk / 2
	if ci == len(m.chunks)-1 && i == maxChunk {
		at = maxChunk // keys that arrive in order fill their chunks
	}
	right := &chunk{items: append(make([]item, 0, maxChunk), c.items[at:]...), owner: m.owner}
	clear(c.items[at:])
	c.items = c.items[:at]
	m.chunks = slices.Insert(m.chunks, ci+1, right)
	if i >= at {
		return right, i - at
	}
	return c, i
}

func (m *orderedMap) delete(key []byte) {
	if len(m.chunks) == 0 {
		return
	}
	ci := searchChunks(m.chunks, key)
	i, found := searchItems(m.chunks[ci].items, key)
	if !found {
		return
	}
	c := m.own(ci)
	c.items = slices.Delete(c.items, i, i+1)
	m.shrink(ci)
}

// shrink removes chunk ci if it is empty, or merges it with its right neighbour if both are small.
func (m *orderedMap) shrink(ci int) {
	c := m.chunks[ci]
	if len(c.items) == 0 {
		m.chunks = slices.Delete(m.chunks, ci, ci+1)
		return
	}
	if len(c.items) < maxChunk/4 && ci+1 < len(m.chunks) && len(c.items)+len(m.chunks[ci+1].items) <= maxChunk/2 {
		c.items = append(c.items, m.chunks[ci+1].items...)
		m.chunks = slices.Delete(m.chunks, ci+1, ci+2)
	}
}

// deleteRange removes the keys in [lower, upper) and gives what it removed.
func (m *orderedMap) deleteRange(lower, upper []byte) (removed []item) {
	for len(m.chunks) > 0 && bytes.Compare(lower, upper) < 0 {
		ci := searchChunks(m.chunks, lower)
		from, _ := searchItems(m.chunks[ci].items, lower)
		if from == len(m.chunks[ci].items) {
			if ci++; ci == len(m.chunks) {
				return removed
			}
			from = 0
		}
		to, _ := searchItems(m.chunks[ci].items, upper)
		if from >= to {
			return removed
		}
		c := m.own(ci)
		removed = append(removed, c.items[from:to]...)
		c.items = slices.Delete(c.items, from, to)
		m.shrink(ci)
	}
	return removed
}

// mapCursor walks over a snapshot. The zero position is before the first key in either direction.
type mapCursor struct {
	chunks []*chunk
	ci, i  int
}

// seekGE goes to the first key at or after key.
func (c *mapCursor) seekGE(key []byte) bool {
	if len(c.chunks) == 0 {
		return false
	}
	c.ci = searchChunks(c.chunks, key)
	c.i, _ = searchItems(c.chunks[c.ci].items, key)
	c.i--
	return c.forward()
}

// seekLT goes to the last key before key.
func (c *mapCursor) seekLT(key []byte) bool {
	if len(c.chunks) == 0 {
		return false
	}
	c.ci = searchChunks(c.chunks, key)
	c.i, _ = searchItems(c.chunks[c.ci].items, key)
	return c.back()
}

func (c *mapCursor) forward() bool {
	if c.i++; c.i < len(c.chunks[c.ci].items) {
		return true
	}
	if c.ci+1 == len(c.chunks) {
		return false
	}
	c.ci, c.i = c.ci+1, 0
	return true
}

func (c *mapCursor) back() bool {
	if c.i--; c.i >= 0 {
		return true
	}
	if c.ci == 0 {
		return false
	}
	c.ci--
	c.i = len(c.chunks[c.ci].items) - 1
	return true
}

func (c *mapCursor) at() item { return c.chunks[c.ci].items[c.i] }
