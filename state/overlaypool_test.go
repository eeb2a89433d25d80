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
		m := p.take()
		p.give(m)
	}
	if len(p.free) != 1 {
		t.Errorf("%d pieces lie ready, want the one that is used", len(p.free))
	}
}
