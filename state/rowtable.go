package state

import (
	"math/bits"
	"unsafe"
)

// rowTable is the hash table of a rowCache: it leads from hashes to places, which are numbers, in buckets of a cache line's size. A row lies in the
// bucket where its hash belongs, or, if that is full, in one of those behind it; a bucket counts the rows that went past it, so that a search ends with the
// first that none has passed, or when it has seen all: nothing moves when a row goes, so rows may have passed every bucket of a small table.
//
// A slot has only four bytes: the place, and as many bits of the hash as are left, that few rows are looked at in vain. So hashes can't be had back: a
// larger table is filled anew. It may lie outside the Go heap and has to be released.
type rowTable struct {
	all       []rowBucket
	placeBits uint
}

type rowBucket struct {
	slots  [bucketSlots]uint32 // bits of the hash, place + 1; 0 is free
	passed uint32              // rows that belong here or before, and lie behind
}

const (
	bucketSlots   = 15
	bucketFull    = 12 // rows that a bucket may have on average
	bucketBytes   = 64
	leastBuckets  = 4
	leastPlace    = 18 // bits
	mostPlaceBits = 28 // that leaves four bits of the hash
)

// tableSpot is a slot of a table.
type tableSpot struct{ bucket, slot uint32 }

// newRowTable makes a table for places below a number, or as many of them as it can have.
func newRowTable(buckets, places int) rowTable {
	return rowTable{all: takeBuckets(buckets), placeBits: uint(min(max(bits.Len(uint(places)), leastPlace), mostPlaceBits))}
}

// offHeap is from how many bytes on a table lies outside the Go heap: less isn't worth a mapping.
const offHeap = 16 << 10

func takeBuckets(n int) []rowBucket {
	if n*bucketBytes < offHeap {
		return make([]rowBucket, n)
	}
	return unsafe.Slice((*rowBucket)(unsafe.Pointer(unsafe.SliceData(takeMemory(n*bucketBytes)))), n)
}

func (t *rowTable) release() {
	if n := len(t.all) * bucketBytes; n >= offHeap {
		giveMemory(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t.all))), n))
	}
	t.all = nil
}

func (t *rowTable) buckets() int { return len(t.all) }
func (t *rowTable) size() int64  { return int64(len(t.all)) * bucketBytes }

// room is how many rows there may be.
func (t *rowTable) room() int { return len(t.all) * bucketFull }

// reaches tells whether the table can have places below a number.
func (t *rowTable) reaches(places int) bool { return places < 1<<t.placeBits }

// home is the bucket where a hash belongs.
func (t *rowTable) home(h uint32) uint32 { return uint32(uint64(h) * uint64(len(t.all)) >> 32) }

func (t *rowTable) after(bucket uint32) uint32 {
	if bucket++; bucket == uint32(len(t.all)) {
		return 0
	}
	return bucket
}

// slot is what a place has in the table. The hash's upper bits say where it belongs: the lower ones tell more.
func (t *rowTable) slot(h, place uint32) uint32 { return h<<t.placeBits | (place + 1) }

// first gives the first place that a hash may have.
func (t *rowTable) first(h uint32) (at tableSpot, place uint32, ok bool) {
	return t.search(h, tableSpot{bucket: t.home(h)})
}

// next gives the next one behind a spot.
func (t *rowTable) next(h uint32, at tableSpot) (tableSpot, uint32, bool) {
	at.slot++
	return t.search(h, at)
}

func (t *rowTable) search(h uint32, at tableSpot) (tableSpot, uint32, bool) {
	places := uint32(1)<<t.placeBits - 1
	want := h << t.placeBits
	home := t.home(h)
	for {
		b := &t.all[at.bucket]
		for ; at.slot < bucketSlots; at.slot++ {
			if s := b.slots[at.slot]; s&^places == want && s != 0 {
				return at, s&places - 1, true
			}
		}
		if b.passed == 0 {
			return at, 0, false
		}
		if at = (tableSpot{bucket: t.after(at.bucket)}); at.bucket == home {
			return at, 0, false
		}
	}
}

// spot finds the slot of a place that is there.
func (t *rowTable) spot(h, place uint32) tableSpot {
	at, found, ok := t.first(h)
	for ok && found != place {
		at, found, ok = t.next(h, at)
	}
	return at
}

// insert adds a place. There must be room.
func (t *rowTable) insert(h, place uint32) {
	for at := t.home(h); ; at = t.after(at) {
		b := &t.all[at]
		for i := range b.slots {
			if b.slots[i] == 0 {
				b.slots[i] = t.slot(h, place)
				return
			}
		}
		b.passed++
	}
}

// set changes the place of a row.
func (t *rowTable) set(at tableSpot, h, place uint32) {
	t.all[at.bucket].slots[at.slot] = t.slot(h, place)
}

// remove frees the slot of a row that has such a hash.
func (t *rowTable) remove(h uint32, at tableSpot) {
	t.all[at.bucket].slots[at.slot] = 0
	for b := t.home(h); b != at.bucket; b = t.after(b) {
		t.all[b].passed--
	}
}
