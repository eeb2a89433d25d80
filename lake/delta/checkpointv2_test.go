package delta

import (
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
)

// v2Properties ask for V2 checkpoints, each two commits.
func v2Properties() map[string]string {
	return map[string]string{propCheckpointPolicy: policyV2, propCheckpointInterval: "2", propLogRetention: "interval 1 days"}
}

// TestV2Checkpoint writes V2 checkpoints, opens the table by them alone, removes a file behind one, and cleans up what is old, sidecars too.
func TestV2Checkpoint(t *testing.T) {
	c := newClock()
	store := newAgedStore(c.Now)
	table := mustCreate(t, store, Spec{Configuration: v2Properties()}, Options{Now: c.Now})
	if p := table.Head().Protocol; p.MinReaderVersion != 3 || strings.Join(p.ReaderFeatures, " ") != featureV2 || strings.Join(p.WriterFeatures, " ") != featureV2 {
		t.Errorf("protocol %+v", p)
	}
	var all []Add
	for i := range int64(5) {
		all = append(all, mustFile(t, store, i))
		mustCommit(t, table, Commit{Add: all[i:], Moves: []Move{move("a", i-1, i)}})
		if err := table.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mustCommit(t, table, Commit{Remove: all[:1], ReadVersion: 5})
	if err := table.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkpoints, sidecars := names(t, store, ".checkpoint."), listed(t, store, sidecarDir)
	if len(checkpoints) != 3 || len(sidecars) != 3 {
		t.Fatalf("%v with %v", checkpoints, sidecars)
	}
	for _, name := range names(t, store, ".crc") {
		if err := store.Delete(t.Context(), logDir+strings.Repeat("0", 24-len(name))+name); err != nil {
			t.Fatal(err)
		}
	}
	for v := range int64(6) {
		if err := store.Delete(t.Context(), commitName(v)); err != nil {
			t.Fatal(err)
		}
	}
	again := mustOpen(t, store, Options{Now: c.Now})
	h := again.Head()
	if files, rows := counts(t, mustSnapshot(t, again)); h.Version != 6 || h.Txns["a"].Version != 4 || files != 4 || rows != 10 || !h.wantsV2() {
		t.Errorf("version %d, txns %v, %d files with %d rows", h.Version, h.Txns, files, rows)
	}
	// Two days later the oldest go, with the sidecars that only they named.
	old := c.now
	c.now = c.now.Add(49 * time.Hour)
	for _, n := range append(listed(t, store, logDir), sidecars...) {
		store.at[n] = old
	}
	for i := range int64(2) {
		mustCommit(t, again, Commit{Moves: []Move{move("a", 4+i, 5+i)}})
	}
	if err := again.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if checkpoints, sidecars = names(t, store, ".checkpoint."), listed(t, store, sidecarDir); len(checkpoints) != 2 || len(sidecars) != 2 {
		t.Errorf("after clean-up %v with %v", checkpoints, sidecars)
	}
	// A checkpoint whose sidecar is gone is gone round.
	if err := store.Delete(t.Context(), newestSidecar(t, store)); err != nil {
		t.Fatal(err)
	}
	if files, _ := counts(t, mustSnapshotAfterDamage(t, mustOpen(t, store, Options{Now: c.Now}))); files != 4 {
		t.Errorf("%d files behind a damaged checkpoint", files)
	}
}

// listed lists the names below a folder of the log.
// TestV2CheckpointHasColumnsForFiles: Spark reads no checkpoint without them, also where all files are in sidecars.
func TestV2CheckpointHasColumnsForFiles(t *testing.T) {
	c := newCheckpointColumns(memory.DefaultAllocator, true, v2Form)
	defer c.builder.Release()
	for _, name := range []string{"add", "remove", "txn", "metaData", "protocol", "domainMetadata", "sidecar", "checkpointMetadata"} {
		if !c.schema.HasField(name) {
			t.Errorf("a V2 checkpoint has no column %s", name)
		}
	}
}

func listed(t *testing.T, s object.Store, prefix string) (out []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, info.Name)
	}
	return out
}

// newestSidecar is one that the newest checkpoint names.
func newestSidecar(t *testing.T, s object.Store) string {
	t.Helper()
	l, err := listLog(t.Context(), s, 0)
	if err != nil {
		t.Fatal(err)
	}
	named, err := namedSidecars(t.Context(), s, &l.checkpoints[len(l.checkpoints)-1])
	if err != nil || len(named) != 1 {
		t.Fatal(named, err)
	}
	return named[0]
}

// mustSnapshotAfterDamage reads a snapshot to its end, and takes another one if a checkpoint turns out to be damaged.
func mustSnapshotAfterDamage(t *testing.T, table *Table) *Snapshot {
	t.Helper()
	s := mustSnapshot(t, table)
	for _, err := range s.Files(t.Context()) {
		if err != nil {
			return mustSnapshot(t, table)
		}
	}
	t.Error("a checkpoint without its sidecar was read")
	return s
}

// TestV2CheckpointKilled breaks off a checkpoint at every request to the store: the table opens, with all of its files, and the next try makes one.
func TestV2CheckpointKilled(t *testing.T) {
	for broken := 1; ; broken++ {
		store := &object.Faulty{Inner: object.NewMemory("t")}
		table := mustCreate(t, store, Spec{Configuration: v2Properties()}, Options{})
		for range 3 {
			mustCommit(t, table, Commit{Add: []Add{mustFile(t, store, 1)}})
		}
		calls := 0
		store.Plan = func(object.Call) object.Fault {
			if calls++; calls == broken {
				return object.Fail
			}
			return object.NoFault
		}
		_, _, err := table.checkpoint(t.Context())
		store.Plan = nil
		if files, _ := counts(t, mustSnapshot(t, mustOpen(t, store, Options{}))); files != 3 {
			t.Errorf("broken at request %d: %d files", broken, files)
		}
		if _, _, err := table.checkpoint(t.Context()); err != nil {
			t.Errorf("broken at request %d: the next try: %v", broken, err)
		}
		if err == nil && calls < broken {
			if broken < 4 {
				t.Errorf("a checkpoint took %d requests", broken)
			}
			return
		}
	}
}

// TestOthersReadV2Checkpoints has other readers find rows, progress and removals behind our V2 checkpoints, with the commits before them gone.
func TestOthersReadV2Checkpoints(t *testing.T) {
	r := readers.Open(t)
	properties := v2Properties()
	delete(properties, propLogRetention)
	dir, table := wideTable(t, properties)
	landWide(t, table, 4)
	if n := len(names(t, table.Store(), ".checkpoint.")); n != 2 {
		t.Fatalf("%d checkpoints", n)
	}
	for v := range int64(4) {
		if err := table.Store().Delete(t.Context(), commitName(v)); err != nil {
			t.Fatal(err)
		}
	}
	if d := checkWide(t, r, dir, 40); d.Version != 4 || d.Txn["app/sink/orders@id/0"] != 40 || d.MinReader != 3 {
		t.Errorf("delta-rs sees %+v", d)
	}
	landWide(t, table, 1)
	if d := checkWide(t, r, dir, 50); d.Version != 5 {
		t.Errorf("delta-rs sees version %d", d.Version)
	}
}
