package state

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestMemoryRowsAreAMap compares the table with a map through growth, shrinking, deletions in the middle of runs of slots, values that grow out of
// their place and large ones, and compaction.
func TestMemoryRowsAreAMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, keys := range []int{3, 12, 200, 5000} {
		table, model := newMemoryRows(), map[string]string{}
		compacted := 0
		for step := range 20_000 {
			key := fmt.Sprint(rnd.IntN(keys))
			h := memoryHash(hashRow([]byte(key)))
			val := strings.Repeat(fmt.Sprint(step), rnd.IntN(4))
			if rnd.IntN(1000) == 0 {
				val = strings.Repeat("x", memoryChunk/10+rnd.IntN(memoryChunk))
			}
			if growing := step%8000 < 4000; rnd.IntN(10) < 4 == growing {
				row, ok := table.delete(h, []byte(key))
				if old, there := model[key]; ok != there || ok && string(row.value()) != old {
					t.Fatalf("%d keys, step %d: deleted %v, want %v", keys, step, ok, there)
				}
				delete(model, key)
			} else {
				row, grown, added := table.set(h, []byte(key), []byte(val), step%3 > 0)
				old, there := model[key]
				if string(row.key()) != key || string(row.value()) != val || added == there || grown != len(val)-len(old) {
					t.Fatalf("%d keys, step %d: set gives a row of %d bytes, grown by %d, added %v", keys, step, row.valLen(), grown, added)
				}
				model[key] = val
			}
			if table.wasteful() {
				table.compact()
				compacted++
			}
			if table.n != len(model) {
				t.Fatalf("%d keys, step %d: %d rows, want %d", keys, step, table.n, len(model))
			}
		}
		if compacted == 0 {
			t.Errorf("%d keys: never compacted", keys)
		}
		got := map[string]string{}
		for _, s := range table.slots {
			if s != 0 {
				got[string(table.at(s).key())] = string(table.at(s).value())
			}
		}
		if !maps.Equal(got, model) {
			t.Fatalf("%d keys: the table holds other rows than the map", keys)
		}
		for k, v := range model {
			if row, ok := table.find(memoryHash(hashRow([]byte(k))), []byte(k)); !ok || string(row.value()) != v {
				t.Fatalf("%d keys: key %s isn't found with its value", keys, k)
			}
		}
	}
}

// TestMemoryIsGivenBackUnderACursor replaces rows over and over while a cursor is open: it sees what it saw, and the store doesn't grow.
func TestMemoryIsGivenBackUnderACursor(t *testing.T) {
	b := newMemoryBase()
	const rows = 100
	fill := func(mark byte) {
		b.update(func() {
			for i := range rows {
				key := fmt.Appendf(nil, "%03d", i)
				b.set(hashRow(key), key, bytes.Repeat([]byte{mark}, 1000))
			}
		})
	}
	fill('a')
	var c cursor
	if err := b.open(&c); err != nil {
		t.Fatal(err)
	}
	seen := &c.inMemory
	if !seen.seek([]byte{0}, []byte{0xff}, false, false) {
		t.Fatal("nothing is seen")
	}
	for i := range 2000 {
		fill(byte('b' + i%20))
	}
	if b.rows.bytes > 2*(rows*1100+memoryChunk) {
		t.Errorf("%d rows of 1 kB take %d bytes", rows, b.rows.bytes)
	}
	n := 0
	for ok := true; ok; ok = seen.next() {
		if string(seen.key()) != fmt.Sprintf("%03d", n) || !bytes.Equal(seen.value(), bytes.Repeat([]byte{'a'}, 1000)) {
			t.Fatalf("row %d is seen as %s with %c", n, seen.key(), seen.value()[0])
		}
		n++
	}
	if n != rows || seen.close() != nil {
		t.Errorf("%d rows were seen", n)
	}
	if entries, size := b.size(); entries != rows || size != rows*1003 {
		t.Errorf("%d entries of %d bytes", entries, size)
	}
}

// TestWhatExpiresInMemoryIsRemoved removes ranges with and without an ordered map.
func TestWhatExpiresInMemoryIsRemoved(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		b := newMemoryBase()
		b.update(func() {
			for i := range 1000 {
				key := fmt.Appendf(nil, "%03d", i)
				b.set(hashRow(key), key, []byte("v"))
			}
		})
		if ordered {
			b.order()
		}
		b.update(func() {
			b.deleteRanges([2][]byte{[]byte("100"), []byte("900")}, [2][]byte{[]byte("300"), []byte("950")})
		})
		if n, size := b.size(); n != 750 || size != 750*4 {
			t.Errorf("ordered %v: %d entries of %d bytes are left", ordered, n, size)
		}
		for key, want := range map[string]bool{"099": true, "100": false, "299": false, "300": true, "899": true, "900": false, "949": false, "950": true} {
			if _, ok, _ := b.get([]byte(key), nil); ok != want {
				t.Errorf("ordered %v: key %s is there: %v", ordered, key, ok)
			}
		}
	}
}

// A store that is only got and put keeps no order: opening it, and taking writes back, don't scan it.
func TestOpeningKeepsNoOrder(t *testing.T) {
	db, err := OpenMemory([]Spec{{Name: "st", Kind: TimestampedKeyValue}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Drop(); err != nil {
		t.Fatal(err)
	}
	if db.byName["st"].mem.ordered != nil {
		t.Error("the store keeps its rows in order, though nothing has scanned it")
	}
}
