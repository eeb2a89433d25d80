package readers_test

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/readers"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/state"
)

func openDB(t *testing.T, value uint64) *state.DB {
	t.Helper()
	db, err := state.OpenMemory([]state.Spec{{Name: "kv", Kind: state.KeyValue}}, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	record := state.RestoreRecord{Key: []byte("k"), Value: binary.BigEndian.AppendUint64(nil, value)}
	if err := db.Restore("kv", []state.RestoreRecord{record}, 1); err != nil {
		t.Fatal(err)
	}
	return db
}

// Close waits for leases, and new ones can't be had meanwhile, also by those who hold one.
func TestCloseWaitsForLeases(t *testing.T) {
	var set readers.Set
	id, other := task.ID{Subtopology: 1}, task.ID{Subtopology: 2}
	db := openDB(t, 1)
	if err := set.Open(id, db); err != nil {
		t.Fatal(err)
	}
	if err := set.Open(id, db); err == nil {
		t.Error("opened twice")
	}
	if _, ok := set.Acquire(other); ok {
		t.Error("a lease of a task that isn't open")
	}
	lease, ok := set.Acquire(id)
	if !ok {
		t.Fatal("no lease")
	}
	closed := make(chan struct{})
	go func() {
		set.Close(id, other)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		close(closed)
	}()
	for set.Has(id) {
		time.Sleep(time.Millisecond)
	}
	if _, ok := set.Acquire(id); ok {
		t.Error("a lease of a task that is closing")
	}
	select {
	case <-closed:
		t.Fatal("closed under a lease")
	case <-time.After(20 * time.Millisecond):
	}
	kv, err := lease.View().KeyValueBytes("kv")
	if err != nil {
		t.Fatal(err)
	}
	if v, _, ok, err := kv.Get([]byte("k"), nil); err != nil || !ok || binary.BigEndian.Uint64(v) != 1 {
		t.Errorf("read %x, %v, %v while closing", v, ok, err)
	}
	lease.Release()
	<-closed
}

// Readers see either a task's value or that it isn't here, while it comes and goes. Run it with -race.
func TestReadWhileTasksComeAndGo(t *testing.T) {
	var set readers.Set
	var stop atomic.Bool
	var seen atomic.Int64
	var reading sync.WaitGroup
	id := task.ID{Subtopology: 1, Partition: 2}
	for range 4 {
		reading.Go(func() {
			for !stop.Load() {
				lease, ok := set.Acquire(id)
				if !ok {
					time.Sleep(50 * time.Microsecond)
					continue
				}
				kv, err := lease.View().KeyValueBytes("kv")
				if err != nil {
					t.Error(err)
				} else if v, _, ok, err := kv.Get([]byte("k"), nil); err != nil || !ok || len(v) != 8 {
					t.Errorf("read %x, %v, %v", v, ok, err)
				}
				seen.Add(1)
				lease.Release()
			}
		})
	}
	for round := range uint64(40) {
		db := openDB(t, round)
		if err := set.Open(id, db); err != nil {
			t.Fatal(err)
		}
		for before := seen.Load(); seen.Load() == before; {
			time.Sleep(100 * time.Microsecond)
		}
		set.Close(id)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	reading.Wait()
}
