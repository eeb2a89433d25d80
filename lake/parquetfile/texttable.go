package parquetfile

import (
	"bytes"
	"hash/maphash"
)

// textTable numbers different values in the order in which they come.
type textTable struct {
	slots []uint64 // upper half: that of the hash; lower half: number + 1, 0 in an empty slot. As many as a power of two, at most half of them full.
	ends  []uint32 // of values in data
	data  []byte
}

func newTextTable() textTable { return textTable{slots: make([]uint64, 64)} }

func (t *textTable) size() int { return len(t.ends) }

// value is never nil.
func (t *textTable) value(n int32) []byte {
	from := uint32(0)
	if n > 0 {
		from = t.ends[n-1]
	}
	return t.data[from:t.ends[n]:t.ends[n]]
}

// number is a value's; isNew says that it came for the first time.
func (t *textTable) number(v []byte) (n int32, isNew bool) {
	h := maphash.Bytes(seed, v)
	mask := uint64(len(t.slots) - 1)
	for at := h & mask; ; at = (at + 1) & mask {
		slot := t.slots[at]
		if slot == 0 {
			t.slots[at] = t.add(h, v)
			if 2*len(t.ends) > len(t.slots) {
				t.grow()
			}
			return int32(len(t.ends) - 1), true
		}
		if slot>>32 == h>>32 {
			if n := int32(uint32(slot) - 1); bytes.Equal(t.value(n), v) {
				return n, false
			}
		}
	}
}

// add appends a value and returns its slot.
func (t *textTable) add(h uint64, v []byte) uint64 {
	if t.data == nil {
		t.data = make([]byte, 0, 1<<10)
	}
	t.data = append(t.data, v...)
	t.ends = append(t.ends, uint32(len(t.data)))
	return h>>32<<32 | uint64(len(t.ends))
}

func (t *textTable) grow() {
	t.slots = make([]uint64, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for n := range t.ends {
		h := maphash.Bytes(seed, t.value(int32(n)))
		at := h & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = h>>32<<32 | uint64(n+1)
	}
}
