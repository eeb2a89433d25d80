package state_test

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/tributary-io/tributary/state"
)

// TestApplyBesideTask applies generations on another goroutine while the task goes on and queries look at committed state. Run it with
// -race.
func TestApplyBesideTask(t *testing.T) {
	for _, backend := range backends {
		t.Run(backend.name, func(t *testing.T) {
			db := backend.open(t, []state.Spec{
				{Name: "kv", Kind: state.TimestampedKeyValue, Logged: true},
				{Name: "win", Kind: state.Window, RetentionMs: 50, SegmentIntervalMs: 10, Logged: true},
			}, state.Options{Policy: state.LastPerKeyPerCommit})
			var wg sync.WaitGroup
			done := make(chan struct{})
			wg.Go(func() { queryUntil(t, db, done) })
			count(t, db)
			close(done)
			wg.Wait()
			must(t, db.Close())
		})
	}
}

const concurrentKeys = 7

// count counts per key, and keeps the last counts in windows, with a commit in the background each few records.
func count(t *testing.T, db *state.DB) {
	kv, err := db.KeyValueBytes("kv")
	must(t, err)
	win, err := db.WindowBytes("win")
	must(t, err)
	applied := make(chan error, 1)
	applied <- nil
	var counts [concurrentKeys]uint64
	for i := range 3000 {
		k := i % concurrentKeys
		key := []byte{byte(k)}
		got, _, ok, err := kv.Get(key, nil)
		must(t, err)
		if ok != (counts[k] > 0) || ok && binary.BigEndian.Uint64(got) != counts[k] {
			t.Fatalf("record %d: count of key %d is %x %v, want %d", i, k, got, ok, counts[k])
		}
		counts[k]++
		value := binary.BigEndian.AppendUint64(nil, counts[k])
		must(t, kv.Put(key, value, int64(i)))
		if _, err := win.Put(key, value, int64(i), 0); err != nil {
			t.Fatal(err)
		}
		checkWindows(t, win, key, int64(i), counts[k])
		if i%17 == 16 {
			must(t, <-applied)
			gen, err := db.Seal()
			must(t, err)
			go func() {
				for range gen.Changelog() {
				}
				applied <- gen.Apply([]int64{int64(i), int64(i)}, key)
			}()
		}
	}
	must(t, <-applied)
}

func checkWindows(t *testing.T, win state.WindowBytes, key []byte, now int64, count uint64) {
	it, err := win.Fetch(key, 0, now, state.Backward)
	must(t, err)
	n := 0
	for start := now; it.Next(); start -= concurrentKeys {
		if it.Start() != start || binary.BigEndian.Uint64(it.Value()) != count {
			t.Fatalf("window of key %x at %d: start %d, count %x, want %d and %d", key, now, it.Start(), it.Value(), start, count)
		}
		count--
		n++
	}
	must(t, it.Close())
	if want := min(int(now)/concurrentKeys+1, (50+concurrentKeys-1)/concurrentKeys); n != want {
		t.Fatalf("%d windows of key %x at %d, want %d", n, key, now, want)
	}
}

func queryUntil(t *testing.T, db *state.DB, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		v, err := db.View()
		if err != nil {
			t.Error(err)
			return
		}
		query(t, v)
		v.Close()
	}
}

func query(t *testing.T, v *state.View) {
	kv, err := v.KeyValueBytes("kv")
	if err != nil {
		t.Error(err)
		return
	}
	it, err := kv.Range(nil, nil)
	if err != nil {
		t.Error(err)
		return
	}
	for it.Next() {
		if len(it.Value()) != 8 {
			t.Errorf("a value of %d bytes", len(it.Value()))
		}
	}
	if err := it.Close(); err != nil {
		t.Error(err)
	}
	win, err := v.WindowBytes("win")
	if err != nil {
		t.Error(err)
		return
	}
	wit, err := win.All(state.Forward)
	if err != nil {
		t.Error(err)
		return
	}
	for wit.Next() {
		if len(wit.Value()) != 8 {
			t.Errorf("a value of %d bytes", len(wit.Value()))
		}
	}
	if err := wit.Close(); err != nil {
		t.Error(err)
	}
}
