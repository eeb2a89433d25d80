package state

import (
	"bytes"
	"encoding/binary"
)

// memoryRows is a hash table of rows. A row is one piece of memory with its key in front of its value, rows lie one behind the other in chunks, and a slot
// of the table is eight bytes, so that finding a row touches two places in memory, of which the first is often in the processor's
// cache. There are no pointers in it: the garbage collector passes over millions of rows. It is not safe for concurrent use.
//
// Chunks only ever grow, unless a value is replaced by one that fits: the bytes of a row stay as they are for those who hold on to them. What is
// in no slot any more is waste, until compact moves the rest to new chunks.
type memoryRows struct {
	slots  []uint64 // a power of two, at most three quarters full: slotOf a row, at the first free slot from its hash on
	n      int
	chunks [][]byte
	open   int // the chunk that takes rows
	bytes  int // of all rows
	waste  int // of those that are in no slot
}

// A row: length of the key (4 bytes), of the value (4), room for the value (4), key, value.
type memoryRow []byte

const (
	memoryHead       = 12
	memoryUnit       = 8 // rows begin at multiples
	memoryChunk      = 256 << 10
	memoryUnits      = memoryChunk / memoryUnit
	memoryFirstChunk = 1 << 10
	memoryMaxChunks  = 1 << 32 / memoryUnits
	minSlots         = 16
)

func (r memoryRow) keyLen() int { return int(binary.LittleEndian.Uint32(r)) }
func (r memoryRow) valLen() int { return int(binary.LittleEndian.Uint32(r[4:])) }
func (r memoryRow) room() int   { return int(binary.LittleEndian.Uint32(r[8:])) }
func (r memoryRow) size() int   { return memorySize(r.keyLen(), r.room()) }

func (r memoryRow) key() []byte {
	end := memoryHead + r.keyLen()
	return r[memoryHead:end:end]
}

func (r memoryRow) value() []byte {
	at := memoryHead + r.keyLen()
	end := at + r.valLen()
	return r[at:end:end]
}

func memorySize(key, room int) int {
	return (memoryHead + key + room + memoryUnit - 1) &^ (memoryUnit - 1)
}

// A slot is the upper half of a row's hash, and its place + 1; 0 is free.
func slotOf(h, place uint32) uint64 { return uint64(h)<<32 | uint64(place+1) }
func placeOf(slot uint64) uint32    { return uint32(slot) - 1 }
func hashOf(slot uint64) uint32     { return uint32(slot >> 32) }

func newMemoryRows() memoryRows { return memoryRows{slots: make([]uint64, minSlots)} }

func (t *memoryRows) at(slot uint64) memoryRow {
	place := placeOf(slot)
	return t.chunks[place/memoryUnits][place%memoryUnits*memoryUnit:]
}

// slot finds the slot of key: the one that leads to it, or the free one where it belongs.
func (t *memoryRows) slot(h uint32, key []byte) (i int, ok bool) {
	mask := len(t.slots) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			return i, false
		}
		if hashOf(s) == h && bytes.Equal(t.at(s).key(), key) {
			return i, true
		}
	}
}

// find gives the row of a key.
func (t *memoryRows) find(h uint32, key []byte) (memoryRow, bool) {
	i, ok := t.slot(h, key)
	if !ok {
		return nil, false
	}
	return t.at(t.slots[i]), true
}

// set copies a row in, and gives it and by how much the value of its key has grown; added is whether the key is new. Where inPlace is false the bytes
// of a former row of the key stay as they are.
func (t *memoryRows) set(h uint32, key, val []byte, inPlace bool) (row memoryRow, grown int, added bool) {
	i, ok := t.slot(h, key)
	if ok {
		row = t.at(t.slots[i])
		grown = len(val) - row.valLen()
		if inPlace && row.room() >= len(val) {
			binary.LittleEndian.PutUint32(row[4:], uint32(len(val)))
			copy(row[memoryHead+len(key):], val)
			return row, grown, false
		}
		t.waste += row.size()
		place, row := t.add(key, val)
		t.slots[i] = slotOf(h, place)
		return row, grown, false
	}
	if (t.n+1)*4 > len(t.slots)*3 {
		t.resize(2 * len(t.slots))
		i, _ = t.slot(h, key)
	}
	place, row := t.add(key, val)
	t.slots[i] = slotOf(h, place)
	t.n++
	return row, len(val), true
}

// add copies a row into a chunk.
func (t *memoryRows) add(key, val []byte) (place uint32, row memoryRow) {
	size := memorySize(len(key), len(val))
	number := t.chunkFor(size)
	chunk := t.chunks[number]
	at := len(chunk)
	chunk = binary.LittleEndian.AppendUint32(chunk, uint32(len(key)))
	chunk = binary.LittleEndian.AppendUint32(chunk, uint32(len(val)))
	chunk = binary.LittleEndian.AppendUint32(chunk, uint32(len(val)))
	chunk = append(append(chunk, key...), val...)
	t.chunks[number] = chunk[:at+size]
	t.bytes += size
	return uint32(number*memoryUnits + at/memoryUnit), memoryRow(chunk[at:])
}

// chunkFor gives the number of a chunk with room for size bytes. A row that is large beside a chunk gets one of its own.
func (t *memoryRows) chunkFor(size int) int {
	n := len(t.chunks)
	if n > 0 && cap(t.chunks[t.open])-len(t.chunks[t.open]) >= size {
		return t.open
	}
	if n == memoryMaxChunks {
		panic("state: a store in memory holds more than 32 GB in one task")
	}
	if size > memoryChunk/8 {
		t.chunks = append(t.chunks, make([]byte, 0, size))
		return n
	}
	t.chunks, t.open = append(t.chunks, make([]byte, 0, t.nextChunk(size))), n
	return n
}

// nextChunk is the size of a new chunk, which grows with what there is: most stores are small.
func (t *memoryRows) nextChunk(size int) int {
	return max(size, min(memoryChunk, max(memoryFirstChunk, t.bytes&^(memoryUnit-1))))
}

// delete removes a key and gives its row, whose bytes stay. The rows behind it that have been pushed off their place move up, so that no gap is left.
func (t *memoryRows) delete(h uint32, key []byte) (memoryRow, bool) {
	hole, ok := t.slot(h, key)
	if !ok {
		return nil, false
	}
	row := t.at(t.slots[hole])
	t.n--
	t.waste += row.size()
	mask := len(t.slots) - 1
	for i := (hole + 1) & mask; t.slots[i] != 0; i = (i + 1) & mask {
		home := int(hashOf(t.slots[i])) & mask
		if (i-home)&mask >= (i-hole)&mask { // its place isn't behind the hole
			t.slots[hole], hole = t.slots[i], i
		}
	}
	t.slots[hole] = 0
	if len(t.slots) > minSlots && t.n*8 < len(t.slots) {
		t.resize(len(t.slots) / 2)
	}
	return row, true
}

func (t *memoryRows) resize(size int) {
	old := t.slots
	t.slots = make([]uint64, size)
	mask := size - 1
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := int(hashOf(s)) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

// wasteful tells that compact would free half of the memory or more.
func (t *memoryRows) wasteful() bool { return t.waste > memoryChunk && t.waste > t.bytes/2 }

// compact moves the rows to new chunks.
func (t *memoryRows) compact() {
	old := *t
	t.chunks, t.open, t.bytes, t.waste = nil, 0, 0, 0
	for i, s := range t.slots {
		if s != 0 {
			row := old.at(s)
			place, _ := t.add(row.key(), row.value())
			t.slots[i] = slotOf(hashOf(s), place)
		}
	}
}
