package state

import "unsafe"

// filter is a set of keys' hashes that never denies one it holds, and affirms about one in three hundred that it doesn't: a split block
// bloom filter (as in Parquet's specification), in layers, since how many keys there will be is not known. Keys can't be taken out.
// It lies outside the Go heap and has to be released.
type filter struct {
	layers []filterLayer
	keys   int // in the last layer
	first  int // keys in the first layer, filterFirst at least
}

type filterLayer struct {
	blocks   [][8]uint32 // a key has one bit in each word of one block, which is half a cache line
	capacity int
}

const (
	filterFirst   = 2048    // keys in the first layer, at least
	filterMost    = 1 << 16 // and at most
	filterShare   = 64      // of what rows and filters may take, the first layer takes one part in so many
	filterGrowth  = 4       // how much larger each further layer is
	filterKeyBits = 16
	blockBytes    = 32
)

// filterSalts spread a hash over the words of a block. They are any odd numbers.
var filterSalts = [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}

// newFilter makes a filter that is to take a part of so many bytes at first, a store's share divided by its segments: a layer costs time, a large
// one memory.
func newFilter(bytes int64) *filter {
	return &filter{first: min(max(int(bytes*8/filterShare/filterKeyBits), filterFirst), filterMost)}
}

// block is the one that belongs to a hash.
func (l *filterLayer) block(h uint64) *[8]uint32 {
	return &l.blocks[(h>>32)*uint64(len(l.blocks))>>32]
}

func (l *filterLayer) has(h uint64) bool {
	b := l.block(h)
	missing := uint32(0)
	for i, salt := range filterSalts {
		missing |= ^b[i] & (1 << (uint32(h) * salt >> 27))
	}
	return missing == 0
}

func (l *filterLayer) add(h uint64) {
	b := l.block(h)
	for i, salt := range filterSalts {
		b[i] |= 1 << (uint32(h) * salt >> 27)
	}
}

// has is false only for a hash that was never added.
func (f *filter) has(h uint64) bool {
	for i := len(f.layers) - 1; i >= 0; i-- { // the last is the largest
		if f.layers[i].has(h) {
			return true
		}
	}
	return false
}

// add adds a hash, and gives by how many bytes the filter grew for it.
func (f *filter) add(h uint64) (grown int64) {
	if f.has(h) {
		return 0
	}
	n := len(f.layers)
	if n == 0 || f.keys == f.layers[n-1].capacity {
		grown = f.grow()
		n++
	}
	f.keys++
	f.layers[n-1].add(h)
	return grown
}

func (f *filter) grow() int64 {
	capacity := max(f.first, filterFirst)
	if n := len(f.layers); n > 0 {
		capacity = f.layers[n-1].capacity * filterGrowth
	}
	blocks := capacity * filterKeyBits / (8 * blockBytes)
	memory := (*[8]uint32)(unsafe.Pointer(unsafe.SliceData(takeMemory(blocks * blockBytes))))
	f.layers = append(f.layers, filterLayer{blocks: unsafe.Slice(memory, blocks), capacity: capacity})
	f.keys = 0
	return int64(blocks) * blockBytes
}

// release gives the filter's memory back. It is empty then.
func (f *filter) release() {
	for i := range f.layers {
		giveMemory(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f.layers[i].blocks))), len(f.layers[i].blocks)*blockBytes))
	}
	*f = filter{first: f.first}
}

// size is the number of bytes that the filter takes.
func (f *filter) size() (n int64) {
	for i := range f.layers {
		n += int64(len(f.layers[i].blocks)) * blockBytes
	}
	return n
}
