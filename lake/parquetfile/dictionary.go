package parquetfile

import (
	"hash/maphash"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// sampleSize is how many values of a column are looked at for its number of different ones.
const sampleSize = 2048

// Dictionaries pay where a value comes many times: a page of indices is then smaller than the values even after compression, and
// the values are hashed but not compressed. Below this number of repeats the hashing is wasted.
const worthwhileRepeats = 8

// maxDictionaryBytes is the writer's limit for a dictionary: beyond it the writer would fall back to plain pages in the middle of
// the column.
const maxDictionaryBytes = 1 << 20

var seed = maphash.MakeSeed()

// sample estimates the number of different values and decides on a dictionary, which is to serve so many times as many values.
func (l *Leaf) sample(a arrow.Array, times float64) {
	n := a.Len()
	value, width := hasher(a)
	if n == 0 || value == nil {
		return
	}
	k := min(n, sampleSize)
	var table [2 * sampleSize]uint64
	distinct := 0
	for i := range k {
		h := value(i*n/k) | 1 // 0 is an empty place
		for at := h >> 52; ; at++ {
			slot := &table[at%uint64(len(table))]
			if *slot == h {
				break
			}
			if *slot == 0 {
				*slot = h
				distinct++
				break
			}
		}
	}
	l.Distinct = extrapolate(distinct, k, n)
	all := int(float64(n) * times)
	entries := extrapolate(distinct, k, all)
	l.dictionary = entries*worthwhileRepeats <= int64(all) && float64(entries)*width <= maxDictionaryBytes
}

// extrapolate estimates how many different values n values have, of which k taken evenly have d: the size of the urn from which
// k draws would show d different balls.
func extrapolate(d, k, n int) int64 {
	if d == k || k == n {
		return int64(float64(d) / float64(k) * float64(n))
	}
	lo, hi := float64(d), float64(n)
	for range 60 {
		mid := (lo + hi) / 2
		if mid*(1-math.Exp(-float64(k)/mid)) < float64(d) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return int64(math.Round(lo))
}

// hasher returns a hash of the i-th value and the mean width of values in bytes; nil for types that never get a dictionary:
// booleans, which Parquet packs anyway.
func hasher(a arrow.Array) (value func(i int) uint64, width float64) {
	switch a := a.(type) {
	case *array.String:
		return func(i int) uint64 { return maphash.String(seed, a.Value(i)) }, bytesWidth(len(a.ValueBytes()), a.Len())
	case *array.Binary:
		return func(i int) uint64 { return maphash.Bytes(seed, a.Value(i)) }, bytesWidth(len(a.ValueBytes()), a.Len())
	case *array.Int8:
		return mixed(a.Int8Values()), 4
	case *array.Int16:
		return mixed(a.Int16Values()), 4
	case *array.Int32:
		return mixed(a.Int32Values()), 4
	case *array.Date32:
		return mixed(a.Date32Values()), 4
	case *array.Int64:
		return mixed(a.Int64Values()), 8
	case *array.Timestamp:
		return mixed(a.TimestampValues()), 8
	case *array.Float32:
		v := a.Float32Values()
		return func(i int) uint64 { return mix(uint64(math.Float32bits(v[i]))) }, 4
	case *array.Float64:
		v := a.Float64Values()
		return func(i int) uint64 { return mix(math.Float64bits(v[i])) }, 8
	case *array.Decimal128:
		v := a.Values()
		return func(i int) uint64 { return mix(v[i].LowBits() ^ uint64(v[i].HighBits())*31) }, 16
	}
	return nil, 0
}

func bytesWidth(total, n int) float64 {
	if n == 0 {
		return 0
	}
	return 4 + float64(total)/float64(n)
}

func mixed[T ~int8 | ~int16 | ~int32 | ~int64](v []T) func(int) uint64 {
	return func(i int) uint64 { return mix(uint64(v[i])) }
}

// mix spreads the bits of a number (the finalizer of MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
