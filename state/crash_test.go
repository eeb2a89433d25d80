package state_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tributary-io/tributary/state"
)

// The crash tests write records 0, 1, 2, ... to two stores, in commits of random size that carry the number of records so far. Whatever a
// crash leaves must be exactly what that many records make.

const (
	crashKeys    = 97
	crashEnv     = "TRIBUTARY_STATE_CRASH_DIR"
	crashKeySize = 4
)

var crashSpecs = []state.Spec{
	{Name: "kv", Kind: state.TimestampedKeyValue, Logged: true},
	{Name: "win", Kind: state.Window, RetentionMs: 1000, SegmentIntervalMs: 300, Logged: true},
}

type crashWriter struct {
	db  *state.DB
	kv  state.KeyValueBytes
	win state.WindowBytes
	rnd *rand.Rand
}

func newCrashWriter(db *state.DB, seed uint64) (*crashWriter, error) {
	kv, err := db.KeyValueBytes("kv")
	if err != nil {
		return nil, err
	}
	win, err := db.WindowBytes("win")
	return &crashWriter{db, kv, win, rand.New(rand.NewPCG(seed, 7))}, err
}

// commit writes and applies records from n on, and gives the number of the next.
func (w *crashWriter) commit(n int64) (int64, error) {
	for range 1 + w.rnd.IntN(60) {
		key := binary.BigEndian.AppendUint32(nil, uint32(n%crashKeys))
		value := fmt.Appendf(nil, "%d %x", n, make([]byte, w.rnd.IntN(500)))
		if n%5 == 4 {
			value = nil
		}
		if err := w.kv.Put(key, value, n); err != nil {
			return 0, err
		}
		if _, err := w.win.Put(key, fmt.Append(nil, n), n, 0); err != nil {
			return 0, err
		}
		n++
	}
	gen, err := w.db.Seal()
	if err != nil {
		return 0, err
	}
	return n, gen.Apply([]int64{n, n}, fmt.Append(nil, n))
}

// checkPrefix fails unless db is what the records that its offsets name make. It gives their number.
func checkPrefix(t *testing.T, db *state.DB) int64 {
	t.Helper()
	n, ok := db.Offset("kv")
	n2, ok2 := db.Offset("win")
	if ok != ok2 || n != n2 || ok && string(db.TaskMeta()) != fmt.Sprint(n) {
		t.Fatalf("offsets %d %v and %d %v, task meta %q", n, ok, n2, ok2, db.TaskMeta())
	}
	w, err := newCrashWriter(db, 0)
	must(t, err)
	for k := range int64(crashKeys) {
		checkCrashKey(t, w, k, n)
	}
	return n
}

func checkCrashKey(t *testing.T, w *crashWriter, k, n int64) {
	t.Helper()
	key := binary.BigEndian.AppendUint32(nil, uint32(k))
	last := n - 1 - (n-1-k+crashKeys*2)%crashKeys // the last record before n of this key; negative if none
	got, ts, ok, err := w.kv.Get(key, nil)
	must(t, err)
	if want := last >= 0 && last%5 != 4; ok != want || ok && (ts != last || string(got[:len(fmt.Sprint(last))]) != fmt.Sprint(last)) {
		t.Fatalf("key %d after %d records: %.20q at %d, %v; want record %d", k, n, got, ts, ok, last)
	}
	it, err := w.win.Fetch(key, 0, 1<<40, state.Backward)
	must(t, err)
	defer it.Close()
	for ; last >= 0 && last > n-1-1000; last -= crashKeys {
		if !it.Next() || it.Start() != last || string(it.Value()) != fmt.Sprint(last) {
			t.Fatalf("windows of key %d after %d records: no record %d (%v)", k, n, last, it.Err())
		}
	}
	if it.Next() {
		t.Fatalf("windows of key %d after %d records: record %d is too much", k, n, it.Start())
	}
}

// TestKill kills a writing process several times in mid-write.
func TestKill(t *testing.T) {
	if dir := os.Getenv(crashEnv); dir != "" {
		crashChild(dir)
	}
	dir := t.TempDir()
	res := state.NewResources(state.ResourceOptions{CacheBytes: 8 << 20, MaxMemtableBytes: 1 << 20})
	defer res.Close()
	var before int64
	for round := range 5 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), crashEnv+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		if _, err := out.Read(make([]byte, 1)); err != nil { // it has committed once
			t.Fatalf("round %d: the writer did not start: %v", round, err)
		}
		time.Sleep(time.Duration(20+rand.IntN(150)) * time.Millisecond)
		if _, err := state.OpenPebble(dir, crashSpecs, res, state.Options{Log: quiet}); !errors.Is(err, state.ErrLocked) {
			t.Errorf("opened while another process has it: %v", err)
		}
		must(t, cmd.Process.Kill())
		if err := cmd.Wait(); err == nil {
			t.Fatal("the writer ended by itself")
		}
		db, err := state.OpenPebble(dir, crashSpecs, res, state.Options{Log: quiet})
		must(t, err)
		n := checkPrefix(t, db)
		if n < before {
			t.Errorf("round %d: %d records, there were %d before", round, n, before)
		}
		must(t, db.Close())
		t.Logf("round %d: %d records survived", round, n)
		before = n
	}
	if before == 0 {
		t.Error("no record survived any round")
	}
}

// crashChild writes until it is killed.
func crashChild(dir string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
	res := state.NewResources(state.ResourceOptions{CacheBytes: 8 << 20, MaxMemtableBytes: 1 << 20})
	db, err := state.OpenPebble(dir, crashSpecs, res, state.Options{Log: quiet})
	fail(err)
	w, err := newCrashWriter(db, uint64(os.Getpid()))
	fail(err)
	n, _ := db.Offset("kv")
	for first := true; ; first = false {
		n, err = w.commit(n)
		fail(err)
		if first {
			_, err := fmt.Println("started")
			fail(err)
		}
	}
}

// TestPowerLoss takes what a disk may hold after the power fails: synced bytes, and an arbitrary part of the others.
func TestPowerLoss(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var survived int64
	for range 20 {
		res := state.NewResources(state.ResourceOptions{CacheBytes: 8 << 20, MaxMemtableBytes: 256 << 10, MinMemtableBytes: 64 << 10})
		clone := res.UseCrashableFS()
		db, err := state.OpenPebble("db", crashSpecs, res, state.Options{Log: quiet})
		must(t, err)
		w, err := newCrashWriter(db, rnd.Uint64())
		must(t, err)
		var n int64
		for range rnd.IntN(60) {
			n, err = w.commit(n)
			must(t, err)
		}
		left := state.NewResources(state.ResourceOptions{CacheBytes: 8 << 20})
		left.UseFS(clone(rnd, rnd.IntN(101)))
		must(t, db.Close())
		must(t, res.Close())

		db, err = state.OpenPebble("db", crashSpecs, left, state.Options{Log: quiet})
		must(t, err)
		got := checkPrefix(t, db)
		if got > n {
			t.Errorf("%d records after a power loss at %d", got, n)
		}
		survived += got
		must(t, db.Close())
		must(t, left.Close())
	}
	if survived == 0 {
		t.Error("no record survived in any round")
	}
}
