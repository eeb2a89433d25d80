package state

import (
	"bytes"
	"hash/maphash"
)

// memoryTable is a hash table of rows. A row is one piece of memory with its key in front of its value, and the table's slots lie side by side, so that
// finding a row touches two places in memory: with many keys that is what a lookup costs. It is not safe for concurrent use.
type memoryTable struct {
	seed  maphash.Seed
	slots []memorySlot // a power of two, at most three quarters full; a row lies at the first free slot from its hash on
	n     int
}

// memorySlot holds one row. A nil row is a free slot.
type memorySlot struct {
	hash   uint32
	keyLen uint32
	row    []byte // key, then value
}

func (s *memorySlot) key() []byte   { return s.row[:s.keyLen:s.keyLen] }
func (s *memorySlot) value() []byte { return s.row[s.keyLen:len(s.row):len(s.row)] }

const minSlots = 16

func newMemoryTable() memoryTable {
	return memoryTable{seed: maphash.MakeSeed(), slots: make([]memorySlot, minSlots)}
}

func (t *memoryTable) hash(key []byte) uint32 { return uint32(maphash.Bytes(t.seed, key)) }

// slot finds the slot of key: the one that holds it, or the free one where it belongs.
func (t *memoryTable) slot(h uint32, key []byte) int {
	mask := len(t.slots) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.row == nil || s.hash == h && bytes.Equal(s.key(), key) {
			return i
		}
	}
}

// find gives the slot that holds key, nil if none does. It is valid until the next insertion or deletion.
func (t *memoryTable) find(key []byte) *memorySlot {
	if s := &t.slots[t.slot(t.hash(key), key)]; s.row != nil {
		return s
	}
	return nil
}

// insert adds a key, which must not be there yet, and copies both.
func (t *memoryTable) insert(key, val []byte) *memorySlot {
	if (t.n+1)*4 > len(t.slots)*3 {
		t.resize(2 * len(t.slots))
	}
	h := t.hash(key)
	s := &t.slots[t.slot(h, key)]
	s.hash, s.keyLen, s.row = h, uint32(len(key)), joinRow(key, val)
	t.n++
	return s
}

// joinRow makes a row, which isn't nil even if it is empty.
func joinRow(key, val []byte) []byte {
	return append(append(make([]byte, 0, len(key)+len(val)), key...), val...)
}

// delete removes a key. The rows behind it that have been pushed off their place move up, so that no gap is left.
func (t *memoryTable) delete(key []byte) {
	mask := len(t.slots) - 1
	hole := t.slot(t.hash(key), key)
	if t.slots[hole].row == nil {
		return
	}
	t.n--
	for i := (hole + 1) & mask; t.slots[i].row != nil; i = (i + 1) & mask {
		home := int(t.slots[i].hash) & mask
		if (i-home)&mask >= (i-hole)&mask { // its place isn't behind the hole
			t.slots[hole], hole = t.slots[i], i
		}
	}
	t.slots[hole] = memorySlot{}
	if len(t.slots) > minSlots && t.n*8 < len(t.slots) {
		t.resize(len(t.slots) / 2)
	}
}

func (t *memoryTable) resize(size int) {
	old := t.slots
	t.slots = make([]memorySlot, size)
	mask := size - 1
	for k := range old {
		if old[k].row == nil {
			continue
		}
		i := int(old[k].hash) & mask
		for t.slots[i].row != nil {
			i = (i + 1) & mask
		}
		t.slots[i] = old[k]
	}
}
