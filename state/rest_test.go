package state

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// TestAStoreThatIsOnlyReadKeepsNoBuffers writes much to a store and then to another one: the first lets go of its buffers, and is read as before.
func TestAStoreThatIsOnlyReadKeepsNoBuffers(t *testing.T) {
	db, err := OpenMemory([]Spec{{Name: "table", Kind: KeyValue}, {Name: "busy", Kind: KeyValue}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	table, err := db.KeyValueBytes("table")
	if err != nil {
		t.Fatal(err)
	}
	busy, err := db.KeyValueBytes("busy")
	if err != nil {
		t.Fatal(err)
	}
	commit := func() {
		t.Helper()
		gen, err := db.Seal()
		if err != nil {
			t.Fatal(err)
		}
		if err := gen.Apply(nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	put := func(s KeyValueBytes, key, value string) {
		t.Helper()
		if err := s.Put([]byte(key), []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	for generation := range 3 {
		for i := range 1000 {
			put(table, fmt.Sprint(i), fmt.Sprint(generation))
		}
		commit()
	}
	for range restAfter {
		put(busy, "key", "value")
		commit()
	}
	s := db.byName["table"]
	if s.spare != nil || s.recent != nil || cap(s.open.buf) > 0 {
		t.Errorf("the store that is only read keeps %d bytes of buffers", cap(s.open.buf))
	}
	if db.byName["busy"].recent == nil {
		t.Error("the store that is written has no buffers to be used again")
	}
	if v, _, ok, err := table.Get([]byte("7"), nil); err != nil || !ok || !bytes.Equal(v, []byte("2")) {
		t.Errorf("got %q, %v, %v", v, ok, err)
	}
	put(table, "7", "again")
	if v, _, ok, err := table.Get([]byte("7"), nil); err != nil || !ok || string(v) != "again" {
		t.Errorf("got %q, %v, %v", v, ok, err)
	}
	commit()
	if v, _, ok, err := table.Get([]byte("7"), nil); err != nil || !ok || string(v) != "again" {
		t.Errorf("committed: got %q, %v, %v", v, ok, err)
	}
}

// TestADatabaseAtRestHasWrittenOutWhatItHad reads a table and leaves it alone: what Pebble has of it in memory goes to its files, once, and little is left
// where it is.
func TestADatabaseAtRestHasWrittenOutWhatItHad(t *testing.T) {
	res := NewResources(ResourceOptions{})
	defer res.Close()
	db, err := OpenPebble(filepath.Join(t.TempDir(), "0_0"), []Spec{{Name: "table", Kind: KeyValue}}, res, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	table, err := db.KeyValueBytes("table")
	if err != nil {
		t.Fatal(err)
	}
	generation := func(bytesOfRows int) {
		t.Helper()
		value := make([]byte, 1000)
		for i := range bytesOfRows / len(value) {
			if err := table.Put([]byte(fmt.Sprint(i)), value, 0); err != nil {
				t.Fatal(err)
			}
		}
		gen, err := db.Seal()
		if err != nil {
			t.Fatal(err)
		}
		if err := gen.Apply(nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	flushes := func() int64 { return db.pebble.db.Metrics().Flush.Count }
	rest := func() {
		for range restAfter + 3 {
			generation(0)
		}
	}
	before := flushes()
	generation(flushFrom / 2)
	rest()
	if db.unflushed == 0 {
		t.Error("little was flushed")
	}
	generation(flushFrom)
	rest()
	for end := time.Now().Add(4 * time.Minute); flushes() == before && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if n := flushes() - before; n != 1 || db.unflushed != 0 {
		t.Errorf("%d flushes, want one", n)
	}
	if v, _, ok, err := table.Get([]byte("7"), nil); err != nil || !ok || len(v) != 1000 {
		t.Errorf("got %d bytes, %v, %v", len(v), ok, err)
	}
}
