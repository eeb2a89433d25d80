package state

import (
	"cmp"
	"slices"
)

// dirtyKeys are the keys of a suppress buffer that were touched since the last commit. They come out in the order in which a Java
// HashSet of them would iterate, so that the changelog is the one of Kafka Streams, record by record.
type dirtyKeys struct {
	seen     map[string]struct{}
	keys     []dirtyKey
	capacity int // of the hash table, which never shrinks
}

type dirtyKey struct {
	key  []byte
	hash uint32
}

func (d *dirtyKeys) add(key []byte) {
	if _, ok := d.seen[string(key)]; ok {
		return
	}
	if d.seen == nil {
		d.seen = map[string]struct{}{}
		d.capacity = 16
	}
	d.seen[string(key)] = struct{}{}
	d.keys = append(d.keys, dirtyKey{slices.Clone(key), javaHash(key)})
	for len(d.keys)*4 > d.capacity*3 {
		d.capacity *= 2
	}
}

// take empties the set and gives its keys.
func (d *dirtyKeys) take() [][]byte {
	if len(d.keys) == 0 {
		return nil
	}
	mask := uint32(d.capacity - 1)
	slices.SortStableFunc(d.keys, func(a, b dirtyKey) int { return cmp.Compare(a.hash&mask, b.hash&mask) })
	out := make([][]byte, len(d.keys))
	for i := range d.keys {
		out[i] = d.keys[i].key
	}
	clear(d.seen)
	clear(d.keys)
	d.keys = d.keys[:0]
	return out
}

// javaHash is the hash of a byte array, spread as Java's HashMap does.
func javaHash(b []byte) uint32 {
	h := uint32(1)
	for _, c := range b {
		h = 31*h + uint32(int32(int8(c)))
	}
	return h ^ h>>16
}
