package processors

import (
	"encoding/binary"
	"math/bits"
)

// hashSeed is the seed with which Kafka Streams hashes the left rows of foreign-key joins.
const hashSeed = 104729

// hash128 is MurmurHash3's 128 bits for x64, as Kafka Streams computes it, in the big endian order of its wire format.
func hash128(data []byte) (out [16]byte) {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	h1, h2 := uint64(hashSeed), uint64(hashSeed)
	mix1 := func(k uint64) uint64 { return bits.RotateLeft64(k*c1, 31) * c2 }
	mix2 := func(k uint64) uint64 { return bits.RotateLeft64(k*c2, 33) * c1 }
	rest := data
	for ; len(rest) >= 16; rest = rest[16:] {
		h1 ^= mix1(binary.LittleEndian.Uint64(rest))
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= mix2(binary.LittleEndian.Uint64(rest[8:]))
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	// What is left counts as if it was filled up with zeros, which change nothing.
	var tail [16]byte
	copy(tail[:], rest)
	h2 ^= mix2(binary.LittleEndian.Uint64(tail[8:]))
	h1 ^= mix1(binary.LittleEndian.Uint64(tail[:]))

	h1 ^= uint64(len(data))
	h2 ^= uint64(len(data))
	h1 += h2
	h2 += h1
	h1, h2 = fmix64(h1), fmix64(h2)
	h1 += h2
	h2 += h1
	binary.BigEndian.PutUint64(out[:], h1)
	binary.BigEndian.PutUint64(out[8:], h2)
	return out
}

func fmix64(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
