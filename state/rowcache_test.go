package state

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestRowCache puts, reads and removes rows of all sizes in caches with little room: what is found is what was put last, and the memory
// stays within the limit, also when that is lowered.
func TestRowCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c rowCache
		defer c.clear()
		model := map[string]string{}
		limit := int64(rapid.IntRange(0, 8).Draw(t, "chunks")) * chunkSize
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		largest := rapid.SampledFrom([]int{20, 300, maxRow + 100}).Draw(t, "largest")
		for i := range 5000 {
			key := fmt.Appendf(nil, "key %d", rnd.IntN(2000))
			h := uint32(hashRow(key) >> 32)
			switch rnd.IntN(10) {
			case 0:
				c.remove(h, key)
				delete(model, string(key))
			case 1, 2, 3, 4:
				val := make([]byte, rnd.IntN(largest))
				if len(val) > 4 {
					binary.BigEndian.PutUint32(val, uint32(i))
				}
				c.set(h, key, val, limit)
				model[string(key)] = string(val)
			default:
				if got, ok := c.get(h, key, nil); ok && string(got) != model[string(key)] {
					t.Fatalf("step %d: %s is %d bytes %x, want %d bytes", i, key, len(got), got, len(model[string(key)]))
				}
			}
			if i == 3000 {
				limit /= 2
			}
			if i%1000 == 999 {
				c.check(t, model)
				if c.size() > max(limit, minRows)+chunkSize {
					t.Fatalf("step %d: %d bytes are in use, the limit is %d", i, c.size(), limit)
				}
			}
		}
		c.removeIf(func(key []byte) bool { return key[len(key)-1] == '3' })
		for key := range model {
			if _, ok := c.get(uint32(hashRow([]byte(key))>>32), []byte(key), nil); ok && key[len(key)-1] == '3' {
				t.Fatalf("%s is still there", key)
			}
		}
		c.check(t, model)
	})
}

// check compares all rows with the model, and the table with the chunks.
func (c *rowCache) check(t *rapid.T, model map[string]string) {
	n := 0
	for _, s := range c.slots {
		if s == 0 {
			continue
		}
		n++
		r := c.at(placeOf(s))
		if r[rowState] == rowReplaced || r.hash() != hashOf(s) {
			t.Fatalf("a slot leads to a row that isn't in use")
		}
		if want, ok := model[string(r.key())]; !ok || want != string(r.value()) {
			t.Fatalf("%s has %d bytes, want %v, %d bytes", r.key(), r.valLen(), ok, len(want))
		}
	}
	if n != c.used {
		t.Fatalf("%d slots are taken, %d are counted", n, c.used)
	}
}

// TestRowCacheKeepsWhatIsRead reads the same rows again and again while many others pass through.
func TestRowCacheKeepsWhatIsRead(t *testing.T) {
	var c rowCache
	defer c.clear()
	key := func(n int) ([]byte, uint32) {
		k := binary.BigEndian.AppendUint32(nil, uint32(n))
		return k, uint32(hashRow(k) >> 32)
	}
	const hot, limit = 100, 4 * chunkSize
	missed := 0
	for n := range 100_000 {
		k, h := key(n)
		c.set(h, k, []byte("value"), limit)
		if n > hot {
			k, h := key(n % hot)
			if _, ok := c.get(h, k, nil); !ok {
				missed++
				c.set(h, k, []byte("value"), limit)
			}
		}
	}
	if missed > 3*hot { // some go when the table grows
		t.Errorf("%d times a row wasn't there that is read all the time", missed)
	}
}

func TestFilter(t *testing.T) {
	var f filter
	defer f.release()
	var bytes int64
	const keys = 300_000
	hash := func(n uint64) uint64 { return hashRow(binary.BigEndian.AppendUint64(nil, n)) }
	for n := range uint64(keys) {
		bytes += f.add(hash(n))
	}
	for n := range uint64(keys) {
		if !f.has(hash(n)) {
			t.Fatalf("key %d is denied", n)
		}
	}
	wrong := 0
	for n := range uint64(keys) {
		if f.has(hash(n + keys)) {
			wrong++
		}
	}
	if wrong > keys/150 {
		t.Errorf("%d of %d keys that aren't there are affirmed", wrong, keys)
	}
	if bytes != f.size() || bytes > keys*filterKeyBits/8*2*filterGrowth {
		t.Errorf("it grew by %d bytes and has %d", bytes, f.size())
	}
	for n := range uint64(keys) {
		if grown := f.add(hash(n)); grown != 0 {
			t.Fatal("it grew for keys that it has")
		}
	}
}
