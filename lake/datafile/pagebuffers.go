package datafile

import (
	"math/bits"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// pageBuffers gives the Parquet reader the memory for pages as they are read and decompressed, and takes it back when a column is closed: a
// small file has dozens of pages of which each takes at least 16 kB. The values of a batch are never in it: the reader overwrites a page with the next one
// while the batch is filled.
//
// It may be used by several goroutines. Its memory isn't cleared.
type pageBuffers struct{}

// Buffers are kept by their size, which is a power of two from 4 kB to 4 MB.
const (
	smallestShift = 12
	largestShift  = 22
)

var keptBuffers [largestShift + 1]sync.Pool

// Allocate returns size bytes.
func (pageBuffers) Allocate(size int) []byte {
	shift := max(smallestShift, bits.Len(uint(max(size, 1)-1)))
	if shift > largestShift {
		return memory.DefaultAllocator.Allocate(size)
	}
	if b, ok := keptBuffers[shift].Get().(*[]byte); ok {
		return (*b)[:size]
	}
	return make([]byte, 1<<shift)[:size]
}

// Reallocate returns size bytes that begin with those of b.
func (p pageBuffers) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	more := p.Allocate(size)
	copy(more, b)
	p.Free(b)
	return more
}

// Free keeps b for another page.
func (pageBuffers) Free(b []byte) {
	if n := cap(b); n >= 1<<smallestShift && n <= 1<<largestShift && n&(n-1) == 0 {
		keptBuffers[bits.Len(uint(n))-1].Put(&b)
	}
}
