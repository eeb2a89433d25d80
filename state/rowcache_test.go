package state

import (
	"bytes"
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
		c.thrifty = rapid.Bool().Draw(t, "thrifty")
		limit := int64(rapid.IntRange(0, 8).Draw(t, "chunks")) * chunkSize
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		largest := rapid.SampledFrom([]int{20, 300, maxRow + 100}).Draw(t, "largest")
		for i := range 5000 {
			n := rnd.IntN(2000)
			key := fmt.Appendf(nil, []string{"key %d", "kez %d", "%d"}[n%3], n)
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

// TestRowCacheOfOddKeys has keys and values about the lengths at which rows are laid out differently, from none to more than is kept, keys that share what
// they begin with or are others' beginnings, from one to thousands, and a limit that comes and goes.
func TestRowCacheOfOddKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rowCache{thrifty: rapid.Bool().Draw(t, "thrifty")}
		defer c.clear()
		model := map[string]string{}
		limit := int64(rapid.SampledFrom([]int{2, 3, 8, 40, 300}).Draw(t, "chunks")) * chunkSize
		keys := rapid.SampledFrom([]int{1, 5, 48, 96, 700, 20_000}).Draw(t, "keys")
		keyLens := rapid.SampledFrom([][]int{{0, 1, 2, 3, 4, 5}, {0, 3, 8, 250, 255, 256, 258, 259, 260}, {10, 4085, 4096, 65_535, 65_536, 70_000}}).Draw(t, "key lengths")
		valLens := rapid.SampledFrom([][]int{{0, 1, 2, 3, 4}, {250, 251, 252, 253, 254, 255, 256, 257, 258}, {0, 100, 255, 256, 4000, 4089, 4096, 100_000}}).Draw(t, "value lengths")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for i := range 5000 {
			key := oddKey(rnd.IntN(keys), keyLens)
			h := rowHash(key)
			switch rnd.IntN(10) {
			case 0:
				c.remove(h, key)
				delete(model, string(key))
			case 1, 2, 3, 4:
				val := make([]byte, valLens[rnd.IntN(len(valLens))])
				for j := range min(8, len(val)) {
					val[j] = byte(rnd.Uint32())
				}
				c.set(h, key, val, limit)
				model[string(key)] = string(val)
			default:
				got, ok := c.get(h, key, nil)
				if ok && string(got) != model[string(key)] {
					t.Fatalf("step %d: a key of %d bytes has another value", i, len(key))
				}
				if !ok {
					c.missed++
				}
			}
			if rnd.IntN(2000) == 0 {
				limit = int64(rnd.IntN(10)) * chunkSize
			}
			if i%1000 == 999 {
				c.check(t, model)
			}
		}
	})
}

// oddKey is the n-th key, which has one of the lengths.
func oddKey(n int, lengths []int) []byte {
	rnd := rand.New(rand.NewPCG(uint64(n), 1))
	key := make([]byte, lengths[rnd.IntN(len(lengths))])
	if rnd.IntN(3) > 0 {
		for i := range min(4, len(key)) {
			key[len(key)-1-i] = byte(rnd.Uint32())
		}
	}
	return key
}

// check compares all rows with the model, and the table with the chunks.
func (c *rowCache) check(t *rapid.T, model map[string]string) {
	n := 0
	c.each(func(key, val []byte) {
		n++
		if want, ok := model[string(key)]; !ok || want != string(val) {
			t.Fatalf("%s has %d bytes, want %v, %d bytes", key, len(val), ok, len(want))
		}
		if place, _, ok := c.find(rowHash(key), key); !ok || !bytes.Equal(c.at(place).value(), val) {
			t.Fatalf("%s isn't found", key)
		}
	})
	slots := 0
	for _, b := range c.table.all {
		for _, s := range b.slots {
			if s != 0 {
				slots++
			}
		}
	}
	if n != c.used || slots != n {
		t.Fatalf("there are %d rows, %d slots are taken, %d are counted", n, slots, c.used)
	}
	c.checkPassed(t)
}

// checkPassed checks that buckets count those rows that went past them, and no others.
func (c *rowCache) checkPassed(t *rapid.T) {
	passed := make([]uint32, c.table.buckets())
	for _, number := range c.queue {
		c.rowsOf(number, func(r rowRef, place uint32) {
			h := rowHash(c.keyOf(r))
			for b, at := c.table.home(h), c.table.spot(h, place); b != at.bucket; b = c.table.after(b) {
				passed[b]++
			}
		})
	}
	for i, b := range c.table.all {
		if b.passed != passed[i] {
			t.Fatalf("%d rows are counted that went past a bucket, it were %d", b.passed, passed[i])
		}
	}
}

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

// A thrifty cache stays small while rows are only asked for that came lately, and grows once older ones are missed.
func TestThriftyRowCache(t *testing.T) {
	c := rowCache{thrifty: true}
	defer c.clear()
	const limit, rows = 4 << 20, 50_000
	key := func(n int) ([]byte, uint32) {
		k := fmt.Appendf(nil, "id %d", n)
		return k, rowHash(k)
	}
	put := func(n int) {
		k, h := key(n)
		c.set(h, k, []byte("seen"), limit)
	}
	for n := range rows {
		put(n)
		k, h := key(n - n%100)
		if _, ok := c.get(h, k, nil); !ok {
			t.Fatalf("row %d isn't there, though it has just come", n)
		}
	}
	if c.size() > limit/thriftyPart+chunkSize {
		t.Errorf("the cache takes %d bytes although no row was missed", c.size())
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	missed := 0
	for n := range rows {
		k, h := key(rnd.IntN(rows))
		if _, ok := c.get(h, k, nil); !ok {
			c.missed++
			c.set(h, k, []byte("seen"), limit)
			if n > rows*4/5 {
				missed++
			}
		}
	}
	if missed > rows/5/2 {
		t.Errorf("%d of the last %d rows that were asked for weren't there", missed, rows/5)
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
