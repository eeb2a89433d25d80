package state

import (
	"fmt"
	"testing"
)

// TestStoresLendTheirBuffersToEachOther writes much to two databases in turn: once a generation is released, the other one fills the same memory, and
// each finds its own rows.
func TestStoresLendTheirBuffersToEachOther(t *testing.T) {
	res := NewResources(ResourceOptions{})
	defer res.Close()
	var dbs [2]*DB
	var stores [2]KeyValueBytes
	for i := range dbs {
		var err error
		if dbs[i], err = OpenPebble(t.TempDir(), []Spec{{Name: "st", Kind: KeyValue, Logged: true}}, res, Options{}); err != nil {
			t.Fatal(err)
		}
		defer dbs[i].Close()
		if stores[i], err = dbs[i].KeyValueBytes("st"); err != nil {
			t.Fatal(err)
		}
	}
	for generation := range 10 {
		i := generation % 2
		for k := range 1000 {
			if err := stores[i].Put(fmt.Append(nil, k), fmt.Append(nil, generation, k), 0); err != nil {
				t.Fatal(err)
			}
		}
		gen, err := dbs[i].Seal()
		if err != nil {
			t.Fatal(err)
		}
		gen.Release() // too early: it does nothing
		n := 0
		for r := range gen.Changelog() {
			if string(r.Key) != fmt.Sprint(n) || string(r.Value) != fmt.Sprint(generation, n) {
				t.Fatalf("changelog record %d of generation %d: %s=%s", n, generation, r.Key, r.Value)
			}
			n++
		}
		if err := gen.Apply([]int64{int64(generation + 1)}, nil); err != nil {
			t.Fatal(err)
		}
		gen.Release()
		if free := len(res.overlays.free); free != 1 {
			t.Fatalf("%d pieces of memory lie ready after generation %d, want 1", free, generation)
		}
		for k := range 1000 {
			if v, _, ok, err := stores[i].Get(fmt.Append(nil, k), nil); err != nil || !ok || string(v) != fmt.Sprint(generation, k) {
				t.Fatalf("key %d of generation %d: %q, %v, %v", k, generation, v, ok, err)
			}
		}
	}
}

// TestMemoryThatNobodyTakesIsGivenUp gives much memory to a pool of which then one piece is used.
func TestMemoryThatNobodyTakesIsGivenUp(t *testing.T) {
	var p overlayPool
	fresh := func() overlayMemory { return overlayMemory{buf: make([]byte, 0, 100)} }
	for range 10 {
		p.give(fresh())
	}
	if len(p.free) != 10 {
		t.Fatalf("%d pieces lie ready, want 10", len(p.free))
	}
	for range 10 * poolKeeps * (10 + 1) {
		m := p.take(0)
		p.give(m)
	}
	if len(p.free) != 1 {
		t.Errorf("%d pieces lie ready, want the one that is used", len(p.free))
	}
}

// TestMemoryAtRestIsTrimmed: what nobody takes between two trims is given up, and all that lies ready is counted.
func TestMemoryAtRestIsTrimmed(t *testing.T) {
	res := NewResources(ResourceOptions{})
	defer res.Close()
	p := &res.overlays
	for range 3 {
		p.give(overlayMemory{buf: make([]byte, 0, 1000)})
	}
	if res.SpareBytes() != 3000 {
		t.Errorf("%d bytes lie ready, want 3000", res.SpareBytes())
	}
	res.Trim()
	p.give(p.take(1000))
	if res.SpareBytes() != 3000 {
		t.Errorf("%d bytes lie ready after the first trim, want 3000", res.SpareBytes())
	}
	res.Trim()
	if res.SpareBytes() != 1000 || len(p.free) != 1 {
		t.Errorf("%d bytes lie ready, want the 1000 that were used meanwhile", res.SpareBytes())
	}
	res.Trim()
	if res.SpareBytes() != 0 {
		t.Errorf("%d bytes lie ready, want none", res.SpareBytes())
	}
}

// TestMemtablesAreCounted opens and closes databases.
func TestMemtablesAreCounted(t *testing.T) {
	res := NewResources(ResourceOptions{MaxMemtableBytes: 4 << 20})
	defer res.Close()
	var dbs []*DB
	for n := range 3 {
		db, err := OpenPebble(t.TempDir(), []Spec{{Name: "st", Kind: KeyValue}}, res, Options{})
		if err != nil {
			t.Fatal(err)
		}
		dbs = append(dbs, db)
		if n == 0 && res.MemtableBytes() != 8<<20 {
			t.Errorf("memtables of one database take %d bytes at most, want %d", res.MemtableBytes(), 8<<20)
		}
	}
	for _, db := range dbs {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if res.MemtableBytes() != 0 {
		t.Errorf("memtables take %d bytes when all is closed", res.MemtableBytes())
	}
}

// TestAStoreGetsMemoryOfItsSize commits to a large store and a small one in turn: once the buffer of the large one has grown, it keeps its size.
func TestAStoreGetsMemoryOfItsSize(t *testing.T) {
	res := NewResources(ResourceOptions{})
	defer res.Close()
	db, err := OpenPebble(t.TempDir(), []Spec{{Name: "large", Kind: KeyValue, Logged: true}, {Name: "small", Kind: KeyValue, Logged: true}}, res, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	put := func(store string, rows int) {
		t.Helper()
		s, err := db.KeyValueBytes(store)
		if err != nil {
			t.Fatal(err)
		}
		for k := range rows {
			if err := s.Put(fmt.Append(nil, k), make([]byte, 1000), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	large := db.byName["large"]
	for generation := range 6 {
		put("large", 1)
		had := cap(large.open.buf)
		put("large", 2000)
		if has := cap(large.open.buf); generation > 0 && has != had {
			t.Errorf("generation %d: a buffer of %d bytes had to grow to %d", generation, had, has)
		}
		put("small", 10)
		gen, err := db.Seal()
		if err != nil {
			t.Fatal(err)
		}
		if err := gen.Apply(nil, nil); err != nil {
			t.Fatal(err)
		}
		gen.Release()
	}
}

// TestThePoolGivesTheMemoryThatFits takes memory for several needs.
func TestThePoolGivesTheMemoryThatFits(t *testing.T) {
	for _, c := range []struct{ need, want int }{{0, 10}, {10, 10}, {11, 30}, {100, 100}, {101, 100}} {
		var p overlayPool
		for _, n := range []int{30, 100, 10} {
			p.give(overlayMemory{buf: make([]byte, 0, n)})
		}
		if got := cap(p.take(c.need).buf); got != c.want || len(p.free) != 2 {
			t.Errorf("for %d bytes: memory of %d, %d pieces left; want %d, 2", c.need, got, len(p.free), c.want)
		}
	}
}
