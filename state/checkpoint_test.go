package state_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tributary-io/tributary/state"
)

// A checkpoint that is made while the task goes on is a database of one moment: what its offset says is what its rows hold.
func TestCheckpointIsOfOneMoment(t *testing.T) {
	res := state.NewResources(state.ResourceOptions{})
	defer res.Close()
	specs := []state.Spec{{Name: "a", Kind: state.KeyValue, Logged: true}, {Name: "m", Kind: state.KeyValue, Logged: true, InMemory: true}}
	dir := t.TempDir()
	db, err := state.OpenPebble(filepath.Join(dir, "db"), specs, res, state.Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	written := make(chan error, 1)
	stop := make(chan struct{})
	go func() { written <- keepWriting(db, stop) }()
	for i := range 5 {
		view, err := db.View()
		if err != nil {
			t.Fatal(err)
		}
		into := filepath.Join(dir, fmt.Sprint("checkpoint", i))
		err = view.Checkpoint(into)
		view.Close()
		if err != nil {
			t.Fatal(err)
		}
		offsets, err := state.InspectCheckpoint(into, res)
		if err != nil {
			t.Fatal(err)
		}
		if offsets["m"] != state.NoOffset {
			t.Errorf("the store in memory is at %d in the checkpoint", offsets["m"])
		}
		if got := sumOf(t, into, specs, res); got != max(0, offsets["a"]) {
			t.Errorf("checkpoint %d is at offset %d and has the writes up to %d", i, offsets["a"], got)
		}
	}
	close(stop)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}

// keepWriting commits generations: in the one that ends at offset n each of ten keys is set to n.
func keepWriting(db *state.DB, stop chan struct{}) error {
	kv, err := db.KeyValueBytes("a")
	if err != nil {
		return err
	}
	for n := int64(1); ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		for k := range 10 {
			if err := kv.Put([]byte{byte(k)}, binary.BigEndian.AppendUint64(nil, uint64(n)), 0); err != nil {
				return err
			}
		}
		gen, err := db.Seal()
		if err != nil {
			return err
		}
		if err := gen.Apply([]int64{n, n}, nil); err != nil {
			return err
		}
	}
}

// sumOf opens a checkpoint and gives the number that all of its keys have.
func sumOf(t *testing.T, dir string, specs []state.Spec, res *state.Resources) (n int64) {
	t.Helper()
	db, err := state.OpenPebble(dir, specs, res, state.Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	kv, err := db.KeyValueBytes("a")
	if err != nil {
		t.Fatal(err)
	}
	for k := range 10 {
		val, _, ok, err := kv.Get([]byte{byte(k)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := int64(0)
		if ok {
			at = int64(binary.BigEndian.Uint64(val))
		}
		if k > 0 && at != n {
			t.Fatalf("key %d is of generation %d, key 0 of %d", k, at, n)
		}
		n = at
	}
	return n
}

func TestCheckpointsThatCanNotBe(t *testing.T) {
	res := state.NewResources(state.ResourceOptions{})
	defer res.Close()
	if _, err := state.InspectCheckpoint(t.TempDir(), res); err == nil {
		t.Error("an empty directory passes for a checkpoint")
	}
	memory, err := state.OpenMemory([]state.Spec{{Name: "a", Kind: state.KeyValue}}, state.Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	view, err := memory.View()
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if err := view.Checkpoint(filepath.Join(t.TempDir(), "x")); !errors.Is(err, state.ErrNoDatabase) {
		t.Errorf("a checkpoint of memory: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "db")
	db, err := state.OpenPebble(dir, []state.Spec{{Name: "a", Kind: state.KeyValue, Logged: true}}, res, state.Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	manifests, _ := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	for _, path := range manifests {
		if err := os.Truncate(path, 3); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := state.InspectCheckpoint(dir, res); err == nil {
		t.Error("a database whose manifest is cut off passes for a checkpoint")
	}
	if n := res.OpenDatabases(); n != 0 {
		t.Errorf("%d databases count as open", n)
	}
}
