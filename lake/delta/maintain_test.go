package delta

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

// grow makes n commits of one file and one row each, with upkeep after each.
func grow(t testing.TB, table *Table, n int) {
	t.Helper()
	for range n {
		from, ok := table.Head().Txn("a")
		mustCommit(t, table, Commit{Add: []Add{mustFile(t, table.store, 1)}, Moves: []Move{{AppID: "a", First: !ok, From: from, To: from + 1}}})
		if err := table.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func names(t testing.TB, s object.Store, part string) (out []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), logDir, "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info.Name, part) {
			out = append(out, strings.TrimLeft(strings.TrimPrefix(info.Name, logDir), "0"))
		}
	}
	return out
}

func interval(n string) Spec {
	return Spec{Configuration: map[string]string{"delta.checkpointInterval": n, "key": "value", "delta.appendOnly": "true"}, Name: "n", Description: "d"}
}

func TestCheckpoints(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, interval("5"), Options{})
	grow(t, table, 12)
	if got := names(t, store, "checkpoint.parquet"); !slices.Equal(got, []string{"5.checkpoint.parquet", "10.checkpoint.parquet"}) {
		t.Errorf("checkpoints: %v", got)
	}
	if got := names(t, store, ".crc"); len(got) != 12 {
		t.Errorf("checksums: %v", got)
	}
	pointer, err := store.Get(t.Context(), lastCheckpoint)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := parseLastCheckpoint(pointer); v != 10 || err != nil || !strings.HasPrefix(string(pointer), `{"version":10,"size":13,"sizeInBytes":`) {
		t.Errorf("_last_checkpoint: %s, %v", pointer, err)
	}
	// All ways to open it agree.
	byChecksum := mustOpen(t, store, Options{}).Head()
	s := mustSnapshot(t, table)
	if s.base == nil || s.base.version != 10 || len(s.tail) != 2 {
		t.Errorf("the snapshot stands on %v with %d actions", s.base, len(s.tail))
	}
	for _, info := range names(t, store, ".crc") {
		if err := store.Delete(t.Context(), logDir+strings.Repeat("0", 24-len(info))+info); err != nil {
			t.Fatal(err)
		}
	}
	byCheckpoint := mustOpen(t, store, Options{}).Head()
	for name, h := range map[string]*Head{"checksum": byChecksum, "checkpoint": byCheckpoint, "snapshot": s.Head} {
		if h.Version != 12 || !h.Metadata.Equal(table.Head().Metadata) || h.Txns["a"] != table.Head().Txns["a"] || len(h.Domains) != 0 {
			t.Errorf("%s: %+v", name, h)
		}
	}
	if byChecksum.NumFiles != 12 || byCheckpoint.NumFiles != -1 {
		t.Errorf("counts: %d and %d", byChecksum.NumFiles, byCheckpoint.NumFiles)
	}
	if files, rows := counts(t, s); files != 12 || rows != 12 {
		t.Errorf("%d files, %d rows", files, rows)
	}
	if files, _ := counts(t, must(table.SnapshotAt(t.Context(), 7))); files != 7 {
		t.Errorf("version 7 has %d files", files)
	}
	// A writer that opened without counts gets them back with its next checkpoint, and writes checksums again.
	late := mustOpen(t, store, Options{})
	grow(t, late, 3)
	if h := late.Head(); h.NumFiles != 15 || h.SizeBytes != 60 {
		t.Errorf("counts after a checkpoint: %+v", h)
	}
	grow(t, late, 1)
	if got := names(t, store, ".crc"); !slices.Equal(got, []string{"16.crc"}) {
		t.Errorf("checksums: %v", got)
	}
}

// TestOpenIsCheap counts the requests that opening costs: not more for a longer log.
func TestOpenIsCheap(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, interval("50"), Options{})
	grow(t, table, 220)
	faulty := &object.Faulty{Inner: store}
	mustOpen(t, faulty, Options{})
	if n := faulty.Calls(); n > 4 {
		t.Errorf("opening took %d requests", n)
	}
	before := faulty.Calls()
	mustOpen(t, faulty, Options{}).Head()
	if n := faulty.Calls() - before; n > 4 {
		t.Errorf("opening took %d requests", n)
	}
}

// TestDamagedStarts damages what tables are opened from, one at a time, and sees that the state stays the same.
func TestDamagedStarts(t *testing.T) {
	build := func() (*object.Memory, *Head) {
		store := object.NewMemory("t")
		table := mustCreate(t, store, interval("4"), Options{})
		grow(t, table, 10)
		return store, table.Head()
	}
	put := func(name string, data string) func(*object.Memory) {
		return func(m *object.Memory) { _ = m.Put(context.Background(), name, []byte(data)) }
	}
	damages := map[string]func(*object.Memory){
		"pointer ahead":          put(lastCheckpoint, `{"version":400,"size":3}`),
		"pointer behind":         put(lastCheckpoint, `{"version":4,"size":3}`),
		"pointer to no version":  put(lastCheckpoint, `{"version":6,"size":3}`),
		"pointer not JSON":       put(lastCheckpoint, `{"vers`),
		"pointer empty":          put(lastCheckpoint, ``),
		"pointer of other text":  put(lastCheckpoint, `{"version":8,"size":3,"checksum":"00"}`),
		"checksum torn":          put(checksumName(10), `{"tableSizeBy`),
		"checksum empty":         put(checksumName(10), ``),
		"checksum without txns":  put(checksumName(10), `{"tableSizeBytes":1,"numFiles":1,"numMetadata":1,"numProtocol":1}`),
		"checkpoint empty":       put(checkpointName(8), ``),
		"checkpoint not Parquet": put(checkpointName(8), strings.Repeat("x", 5000)),
	}
	intact, _ := build()
	whole, err := intact.Get(t.Context(), checkpointName(8))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		damages[fmt.Sprint("checkpoint cut at ", i, "/8")] = put(checkpointName(8), string(whole[:len(whole)*i/8]))
	}
	for _, drop := range []bool{false, true} { // with and without checksums to start from
		for name, damage := range damages {
			store, want := build()
			if drop {
				for v := range int64(11) {
					_ = store.Delete(t.Context(), checksumName(v))
				}
			}
			damage(store)
			table, err := Open(t.Context(), store, Options{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if h := table.Head(); h.Version != want.Version || h.Txns["a"] != want.Txns["a"] || !h.Metadata.Equal(want.Metadata) {
				t.Errorf("%s: %+v", name, h)
			}
			if files, rows := counts(t, mustSnapshot(t, table)); files != 10 || rows != 10 {
				t.Errorf("%s: %d files, %d rows", name, files, rows)
			}
		}
	}
}

// TestBitRot flips bytes all over a checkpoint: the table is either read rightly or an error says so, and a second snapshot goes
// round it.
func TestBitRot(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, interval("4"), Options{})
	grow(t, table, 10)
	whole, err := store.Get(t.Context(), checkpointName(8))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		data := slices.Clone(whole)
		at := rng.IntN(len(data))
		data[at] ^= byte(1 + rng.IntN(255))
		if err := store.Put(t.Context(), checkpointName(8), data); err != nil {
			t.Fatal(err)
		}
		reader := mustOpen(t, store, Options{})
		s := mustSnapshot(t, reader)
		n := 0
		var failed error
		for _, err := range s.Files(t.Context()) {
			if n++; err != nil {
				failed = err
			}
		}
		if failed == nil && n == 10 {
			continue
		}
		if failed != nil && errors.Is(failed, errCheckpoint) {
			if files, _ := counts(t, mustSnapshot(t, reader)); files == 10 {
				continue
			}
		}
		t.Fatalf("byte %d of %d: %d files, error %v", at, len(whole), n, failed)
	}
}

func TestCheckpointMadeByTheOtherWriter(t *testing.T) {
	store := object.NewMemory("t")
	a := mustCreate(t, store, interval("4"), Options{})
	b := mustOpen(t, store, Options{})
	// b makes all the commits at which checkpoints are due, and never maintains: a steps in.
	for i := range int64(24) {
		w, id := a, "a"
		if (i+1)%4 == 0 {
			w, id = b, "b"
		}
		from, ok := must(w.Refresh(t.Context())).Txn(id)
		mustCommit(t, w, Commit{Moves: []Move{{AppID: id, First: !ok, From: from, To: from + 1}}})
		if err := a.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, store, "checkpoint.parquet"); len(got) < 2 || len(got) > 4 {
		t.Errorf("checkpoints: %v", got)
	}
}

func TestMaintainFailsSoftly(t *testing.T) {
	inner := object.NewMemory("t")
	mustCreate(t, inner, interval("2"), Options{})
	broken := true
	faulty := &object.Faulty{Inner: inner, Plan: func(c object.Call) object.Fault {
		if broken && (strings.Contains(c.Name, ".checkpoint") || strings.Contains(c.Name, ".crc")) {
			return object.NoSpace
		}
		return object.NoFault
	}}
	table := mustOpen(t, faulty, Options{})
	for i := range int64(2) {
		mustCommit(t, table, Commit{Moves: []Move{move("a", i-1, i)}})
	}
	if err := table.Maintain(t.Context()); !errors.Is(err, object.ErrNoSpace) {
		t.Errorf("on a full store: %v", err)
	}
	broken = false
	if err := table.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := names(t, inner, ".checkpoint"); len(got) != 1 {
		t.Errorf("checkpoints: %v", got)
	}
}

func TestLogCleanup(t *testing.T) {
	c := newClock()
	store := object.NewMemory("t")
	store.SetClock(c.Now)
	spec := interval("5")
	spec.Configuration["delta.logRetentionDuration"] = "interval 3 days"
	table := mustCreate(t, store, spec, Options{Now: c.Now})
	early := mustOpen(t, store, Options{Now: c.Now})
	for range 8 { // a day each
		grow(t, table, 5)
		c.now = c.now.Add(24 * time.Hour)
	}
	// The last checkpoint was made on day 7 (noon): the cut-off is midnight at the start of day 4, so that the newest commit
	// before it is version 20, of day 3, which has a checkpoint.
	if got := names(t, store, ".json"); got[0] != "20.json" || len(got) != 21 {
		t.Errorf("commits left: %v", got)
	}
	if got := names(t, store, ".checkpoint"); got[0] != "20.checkpoint.parquet" || len(got) != 5 {
		t.Errorf("checkpoints left: %v", got)
	}
	if got := names(t, store, ".crc"); got[0] != "20.crc" {
		t.Errorf("checksums left: %v", got)
	}
	if files, rows := counts(t, mustSnapshot(t, mustOpen(t, store, Options{}))); files != 40 || rows != 40 {
		t.Errorf("%d files, %d rows", files, rows)
	}
	if files, _ := counts(t, must(table.SnapshotAt(t.Context(), 21))); files != 21 {
		t.Errorf("version 21 has %d files", files)
	}
	if _, err := table.SnapshotAt(t.Context(), 19); err == nil {
		t.Error("a version that is gone was read")
	}
	// A writer that slept all the while must not take the free place of a version that was cleaned up.
	l := mustCommit(t, early, Commit{Moves: []Move{move("late", -1, 1)}})
	if l.Version != 41 {
		t.Errorf("landed %+v", l)
	}
	// Switched off, nothing goes.
	mustCommit(t, table, Commit{Metadata: func(m *Metadata) (*Metadata, error) {
		m = m.Clone()
		m.Configuration["delta.enableExpiredLogCleanup"] = "false"
		return m, nil
	}})
	c.now = c.now.Add(100 * 24 * time.Hour)
	grow(t, table, 10)
	if got := names(t, store, ".json"); got[0] != "20.json" {
		t.Errorf("commits left: %v", got[0])
	}
}

// TestCleanupKeepsWhatItNeeds: a checkpoint that can't be read doesn't get the log before it deleted.
func TestCleanupKeepsWhatItNeeds(t *testing.T) {
	c := newClock()
	store := object.NewMemory("t")
	store.SetClock(c.Now)
	table := mustCreate(t, store, interval("5"), Options{Now: c.Now})
	grow(t, table, 7)
	if err := store.Put(t.Context(), checkpointName(5), []byte("rotten")); err != nil {
		t.Fatal(err)
	}
	c.now = c.now.Add(40 * 24 * time.Hour)
	for range int64(3) {
		from, _ := table.Head().Txn("a")
		mustCommit(t, table, Commit{Moves: []Move{move("a", from, from+1)}})
	}
	if err := table.Maintain(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing deleted") {
		t.Errorf("clean-up over a rotten checkpoint: %v", err)
	}
	if got := names(t, store, ".json"); got[0] != "0.json" && got[0] != ".json" {
		t.Errorf("commits left: %v", got)
	}
}

func TestReplacedTable(t *testing.T) {
	c := newClock()
	store := object.NewMemory("t")
	table := mustCreate(t, store, interval("100"), Options{Now: c.Now})
	grow(t, table, 5)
	for _, name := range names(t, store, "") {
		_ = store.Delete(t.Context(), logDir+name)
		_ = store.Delete(t.Context(), logDir+strings.Repeat("0", 25-len(name))+name)
		_ = store.Delete(t.Context(), logDir+strings.Repeat("0", 24-len(name))+name)
	}
	mustCreate(t, store, interval("100"), Options{Now: c.Now})
	c.now = c.now.Add(time.Hour)
	if _, err := table.Commit(t.Context(), Commit{Moves: []Move{move("a", 5, 6)}}); !errors.Is(err, ErrReplaced) {
		t.Errorf("commit to a table that was replaced: %v", err)
	}
}

func TestInCommitTimestamps(t *testing.T) {
	c := newClock()
	store := object.NewMemory("t")
	spec := Spec{Configuration: map[string]string{"delta.enableInCommitTimestamps": "true"}}
	a := mustCreate(t, store, spec, Options{Now: c.Now})
	if p := a.Head().Protocol; p.MinWriterVersion != 7 || p.MinReaderVersion != 1 || !slices.Equal(p.WriterFeatures, []string{"inCommitTimestamp"}) {
		t.Errorf("protocol %+v", p)
	}
	b := mustOpen(t, store, Options{Now: c.Now})
	c.now = c.now.Add(-time.Hour) // clocks go back, in-commit timestamps don't
	start := a.Head().InCommitTimestamp
	for i := range int64(4) {
		w := []*Table{a, b}[i%2] // the other's head is always old, so that every commit loses a race first
		mustCommit(t, w, Commit{Moves: []Move{move(fmt.Sprint("w", i), -1, i)}})
		if got := w.Head().InCommitTimestamp; got != start+1+i {
			t.Errorf("commit %d has the timestamp %d, want %d", i, got, start+1+i)
		}
	}
	if err := b.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := mustOpen(t, store, Options{}).Head().InCommitTimestamp; got != start+4 {
		t.Errorf("from the checksum: %d", got)
	}
	if err := store.Delete(t.Context(), checksumName(4)); err != nil {
		t.Fatal(err)
	}
	if got := mustOpen(t, store, Options{}).Head().InCommitTimestamp; got != start+4 {
		t.Errorf("from the log: %d", got)
	}
}

// TestPropertiesInAnyCase: Spark takes flags and modes in any case, and keeps them as they were written. A commit without the timestamp that such a flag wants is damage.
func TestPropertiesInAnyCase(t *testing.T) {
	store := object.NewMemory("t")
	a := mustCreate(t, store, Spec{Configuration: map[string]string{"delta.enableInCommitTimestamps": "True"}}, Options{})
	if p := a.Head().Protocol; !slices.Contains(p.WriterFeatures, "inCommitTimestamp") || a.Head().InCommitTimestamp == 0 {
		t.Errorf("a new table has the protocol %+v and the timestamp %d", p, a.Head().InCommitTimestamp)
	}
	mustCommit(t, a, Commit{Moves: []Move{move("w", -1, 1)}})
	entry, err := store.Get(t.Context(), commitName(1))
	if err != nil || !strings.Contains(string(entry), `"inCommitTimestamp":`) {
		t.Errorf("%v: %s", err, entry)
	}
	for mode, want := range map[string]string{"Name": MappingName, "ID": MappingID, "None": MappingNone, "": MappingNone} {
		if got := (&Metadata{Configuration: map[string]string{propColumnMapping: mode}}).ColumnMapping(); got != want {
			t.Errorf("mode %q is %s, want %s", mode, got, want)
		}
	}
}

func TestIdleMoves(t *testing.T) {
	c := newClock()
	store := object.NewMemory("t")
	table := mustCreate(t, store, Spec{Configuration: map[string]string{"delta.setTransactionRetentionDuration": "interval 10 days"}}, Options{Now: c.Now})
	mustCommit(t, table, Commit{Moves: []Move{move("a", -1, 5), move("b", -1, 6)}})
	ids := []string{"a", "b", "unknown"}
	c.now = c.now.Add(4 * 24 * time.Hour)
	if got := table.Head().IdleMoves(ids, c.now); got != nil {
		t.Errorf("after 4 days: %v", got)
	}
	mustCommit(t, table, Commit{Moves: []Move{move("b", 6, 7)}})
	c.now = c.now.Add(2 * 24 * time.Hour)
	moves := table.Head().IdleMoves(ids, c.now)
	if len(moves) != 1 || moves[0] != move("a", 5, 5) {
		t.Fatalf("after 6 days: %v", moves)
	}
	mustCommit(t, table, Commit{Moves: moves})
	if got := table.Head().IdleMoves(ids, c.now); got != nil {
		t.Errorf("after the refresh: %v", got)
	}
	plain := mustCreate(t, object.NewMemory("u"), Spec{}, Options{Now: c.Now})
	mustCommit(t, plain, Commit{Moves: []Move{move("a", -1, 5)}})
	if got := plain.Head().IdleMoves(ids, c.now.Add(1e6*time.Hour)); got != nil {
		t.Errorf("without the property: %v", got)
	}
}
