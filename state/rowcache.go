package state

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

// rowCache keeps rows in memory up to a number of bytes, and forgets the oldest that were not asked for.
//
// Rows lie one behind the other in chunks; a hash table leads to them. When there is no room for another chunk the oldest one is
// cleaned: the rows that were read since they came into it stay, the others go. Table and chunks lie outside the Go heap, so the
// garbage collector keeps no reserve for them. The cache has to be cleared in the end. Not safe for concurrent use.
type rowCache struct {
	slots  []uint64 // open addressing: upper half of the hash, place of the row + 1; 0 is free
	used   int
	chunks []rowChunk // by number
	queue  []uint32   // numbers of the chunks in use, oldest first; rows are added to the last
	free   []uint32   // numbers of chunks that were given up
}

type rowChunk struct {
	bytes []byte
	fill  int
}

const (
	chunkSize  = 32 << 10
	placeUnit  = 4 // rows begin at multiples
	placesEach = chunkSize / placeUnit
	maxRow     = chunkSize / 8 // larger rows are not kept
	minRows    = 2 * chunkSize // a cache of less is none
)

// Four of five slots may be taken: a miss looks at some thirteen then, which lie side by side.
const (
	slotsFull = 4
	slotsOf   = 5
)

// A row in a chunk: length of the key (2), of the value (2), room for the value (2), whether it is in use (1), key, value.
const (
	rowHead     = 7
	rowState    = 6 // where it is
	rowUnread   = 0
	rowRead     = 1
	rowReplaced = 2
)

type rowRef []byte

func (r rowRef) keyLen() int        { return int(binary.LittleEndian.Uint16(r)) }
func (r rowRef) valLen() int        { return int(binary.LittleEndian.Uint16(r[2:])) }
func (r rowRef) setValLen(n int)    { binary.LittleEndian.PutUint16(r[2:], uint16(n)) }
func (r rowRef) room() int          { return int(binary.LittleEndian.Uint16(r[4:])) }
func (r rowRef) key() []byte        { return r[rowHead : rowHead+r.keyLen()] }
func (r rowRef) hash() uint32       { return rowHash(r.key()) }
func (r rowRef) size() int          { return rowSize(r.keyLen(), r.room()) }
func rowSize(key, val int) int      { return (rowHead + key + val + placeUnit - 1) &^ (placeUnit - 1) }
func (r rowRef) value() []byte      { at := rowHead + r.keyLen(); return r[at : at+r.valLen()] }
func slotOf(h, place uint32) uint64 { return uint64(h)<<32 | uint64(place+1) }
func placeOf(slot uint64) uint32    { return uint32(slot) - 1 }
func hashOf(slot uint64) uint32     { return uint32(slot >> 32) }

// rowHash is the hash that the cache knows a key by.
func rowHash(key []byte) uint32 { return uint32(hashRow(key) >> 32) }

// home is the slot where a hash belongs, if it is free.
func (c *rowCache) home(h uint32) uint32 { return uint32(uint64(h) * uint64(len(c.slots)) >> 32) }

// after is the slot behind another one.
func (c *rowCache) after(i uint32) uint32 {
	if i++; i == uint32(len(c.slots)) {
		return 0
	}
	return i
}

func (c *rowCache) at(place uint32) rowRef {
	return c.chunks[place/placesEach].bytes[place%placesEach*placeUnit:]
}

// size is the number of bytes that the cache takes.
func (c *rowCache) size() int64 {
	return int64(len(c.slots))*8 + int64(len(c.queue))*chunkSize
}

// find gives the slot of a key: the one that leads to it, or the free one where it belongs.
func (c *rowCache) find(h uint32, key []byte) (slot uint32, ok bool) {
	for i := c.home(h); ; i = c.after(i) {
		s := c.slots[i]
		if s == 0 {
			return i, false
		}
		if hashOf(s) == h && bytes.Equal(c.at(placeOf(s)).key(), key) {
			return i, true
		}
	}
}

// get appends the value of a key to dst.
func (c *rowCache) get(h uint32, key, dst []byte) ([]byte, bool) {
	if c.used == 0 {
		return dst, false
	}
	i, ok := c.find(h, key)
	if !ok {
		return dst, false
	}
	r := c.at(placeOf(c.slots[i]))
	r[rowState] = rowRead
	return append(dst, r.value()...), true
}

// set keeps a row, if it is not too large, in at most limit bytes.
func (c *rowCache) set(h uint32, key, val []byte, limit int64) {
	if c.size() > limit {
		c.shrink(limit)
	}
	if c.replace(h, key, val) || limit < minRows || rowHead+len(key)+len(val) > maxRow {
		return
	}
	c.reserve(limit)
	place := c.allocate(rowSize(len(key), len(val)), limit)
	r := c.at(place)
	binary.LittleEndian.PutUint16(r, uint16(len(key)))
	r.setValLen(len(val))
	binary.LittleEndian.PutUint16(r[4:], uint16(len(val)))
	r[rowState] = rowUnread
	copy(r[rowHead:], key)
	copy(r[rowHead+len(key):], val)
	i, _ := c.find(h, key)
	c.slots[i] = slotOf(h, place)
	c.used++
}

// replace changes the value of a row that is there. One that has grown out of its place is forgotten, and false is returned.
func (c *rowCache) replace(h uint32, key, val []byte) bool {
	if c.used == 0 {
		return false
	}
	i, ok := c.find(h, key)
	if !ok {
		return false
	}
	r := c.at(placeOf(c.slots[i]))
	if len(val) > r.room() {
		c.vacate(i)
		return false
	}
	r.setValLen(len(val))
	copy(r[rowHead+r.keyLen():], val)
	return true
}

// remove forgets a row.
func (c *rowCache) remove(h uint32, key []byte) {
	if c.used == 0 {
		return
	}
	if i, ok := c.find(h, key); ok {
		c.vacate(i)
	}
}

// removeIf forgets the rows for whose keys f is true.
func (c *rowCache) removeIf(f func(key []byte) bool) {
	for _, number := range c.queue {
		k := &c.chunks[number]
		for from := 0; from < k.fill; {
			r := rowRef(k.bytes[from:])
			if r[rowState] != rowReplaced && f(r.key()) {
				c.vacate(c.slotWith(slotOf(r.hash(), number*placesEach+uint32(from/placeUnit))))
			}
			from += r.size()
		}
	}
}

// each calls f with all rows, which are valid until it returns.
func (c *rowCache) each(f func(key, val []byte)) {
	for _, slot := range c.slots {
		if slot != 0 {
			r := c.at(placeOf(slot))
			f(r.key(), r.value())
		}
	}
}

// vacate frees a slot, and moves those behind it that belong before.
func (c *rowCache) vacate(i uint32) {
	c.at(placeOf(c.slots[i]))[rowState] = rowReplaced
	c.used--
	for j := c.after(i); c.slots[j] != 0; j = c.after(j) {
		if c.distance(c.home(hashOf(c.slots[j])), j) >= c.distance(i, j) {
			c.slots[i] = c.slots[j]
			i = j
		}
	}
	c.slots[i] = 0
}

// distance is how many slots later than i slot j comes, going round.
func (c *rowCache) distance(i, j uint32) uint32 {
	if j < i {
		j += uint32(len(c.slots))
	}
	return j - i
}

// reserve makes sure that a part of the slots stays free, also after another row has come.
func (c *rowCache) reserve(limit int64) {
	for (c.used+1)*slotsOf > len(c.slots)*slotsFull {
		if n := min(2*len(c.slots), c.mostSlots(limit)); len(c.slots) == 0 {
			c.rehash(64)
		} else if n > len(c.slots)+len(c.slots)/8 {
			c.rehash(n)
		} else if len(c.queue) > 1 {
			c.recycle(chunkSize / 4) // rows that were read stay at first, but don't count as read any more
		} else {
			c.clear()
		}
	}
}

// mostSlots is how many slots there are use for if limit bytes are filled with rows as large as those that are there, and slots for them.
func (c *rowCache) mostSlots(limit int64) int {
	bytesEach := int64(len(c.queue)) * chunkSize / int64(max(c.used, 1))
	return int(limit / (8 + bytesEach*slotsFull/slotsOf))
}

func (c *rowCache) rehash(n int) {
	old := c.slots
	c.slots = takeSlots(n)
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := c.home(hashOf(s))
		for c.slots[i] != 0 {
			i = c.after(i)
		}
		c.slots[i] = s
	}
	giveSlots(old)
}

// offHeap is from how many bytes on a table of slots lies outside the Go heap: less isn't worth a mapping.
const offHeap = 16 << 10

func takeSlots(n int) []uint64 {
	if n*8 < offHeap {
		return make([]uint64, n)
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(takeMemory(n*8)))), n)
}

func giveSlots(slots []uint64) {
	if len(slots)*8 >= offHeap {
		giveMemory(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(slots))), len(slots)*8))
	}
}

// allocate finds a place for n bytes.
func (c *rowCache) allocate(n int, limit int64) (place uint32) {
	if len(c.queue) == 0 || c.chunks[c.queue[len(c.queue)-1]].fill+n > chunkSize {
		c.nextChunk(n, limit)
	}
	number := c.queue[len(c.queue)-1]
	k := &c.chunks[number]
	place = number*placesEach + uint32(k.fill/placeUnit)
	k.fill += n
	return place
}

// nextChunk puts a chunk with room for n bytes at the queue's end: a new one if it fits, else the oldest, cleaned.
func (c *rowCache) nextChunk(n int, limit int64) {
	if c.size()+chunkSize <= limit || len(c.queue) == 0 {
		c.addChunk()
		return
	}
	c.recycle(max(n, chunkSize/4))
}

// recycle cleans the oldest chunk and puts it at the queue's end, with room for n bytes.
func (c *rowCache) recycle(n int) {
	number := c.queue[0]
	c.queue = append(c.queue[:0], c.queue[1:]...)
	c.queue = append(c.queue, number)
	c.clean(number, chunkSize-n)
}

func (c *rowCache) addChunk() {
	var number uint32
	if n := len(c.free); n > 0 {
		number = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		number = uint32(len(c.chunks))
		c.chunks = append(c.chunks, rowChunk{})
	}
	c.chunks[number] = rowChunk{bytes: takeMemory(chunkSize)}
	c.queue = append(c.queue, number)
}

// shrink makes do with a limit that was lowered, or with a table that has grown.
func (c *rowCache) shrink(limit int64) {
	for c.size() > limit && len(c.queue) > 1 {
		c.giveUpOldest()
	}
	if c.size() > limit {
		c.clear()
	}
}

func (c *rowCache) giveUpOldest() {
	number := c.queue[0]
	c.clean(number, 0)
	giveMemory(c.chunks[number].bytes)
	c.chunks[number] = rowChunk{}
	c.queue = append(c.queue[:0], c.queue[1:]...)
	c.free = append(c.free, number)
}

// clean moves the rows of a chunk that were read to its front, up to keep bytes of them, and forgets the others.
func (c *rowCache) clean(number uint32, keep int) {
	k := &c.chunks[number]
	to := 0
	for from := 0; from < k.fill; {
		r := rowRef(k.bytes[from:])
		n := r.size()
		if r[rowState] != rowReplaced {
			h := r.hash()
			i := c.slotWith(slotOf(h, number*placesEach+uint32(from/placeUnit)))
			if r[rowState] == rowRead && to+n <= keep {
				r[rowState] = rowUnread
				copy(k.bytes[to:], r[:n])
				c.slots[i] = slotOf(h, number*placesEach+uint32(to/placeUnit))
				to += n
			} else {
				c.vacate(i)
			}
		}
		from += n
	}
	k.fill = to
}

// slotWith finds the slot that has this content.
func (c *rowCache) slotWith(s uint64) uint32 {
	i := c.home(hashOf(s))
	for c.slots[i] != s {
		i = c.after(i)
	}
	return i
}

// clear forgets all rows and gives their memory back.
func (c *rowCache) clear() {
	for _, number := range c.queue {
		giveMemory(c.chunks[number].bytes)
	}
	giveSlots(c.slots)
	*c = rowCache{}
}
