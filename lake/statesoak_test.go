package lake

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/tributary-io/tributary/internal/sinktest"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/keyed"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

// stateSoakVariable names the folder that a child process of the soak changes rows in, and behind a space its partition.
const stateSoakVariable = "LAKE_TEST_SOAKS_CHANGES_IN"

const (
	soakKeys = 3000
	soakLate = 500 // how many offsets a change may come late
)

// soakChange is the change at an offset of a partition. Few are late, and no two of different partitions have the same order.
func soakChange(p int32, o int64) member {
	r := rand.New(rand.NewPCG(uint64(p), uint64(o)))
	m := member{fmt.Sprint("l", r.IntN(soakKeys)), "", "upsert", fmt.Sprint(p, "-", o), 0}
	m.Course = fmt.Sprint("c", len(m.Learner)%2)
	late := int64(0)
	if r.IntN(4) == 0 {
		late = r.Int64N(soakLate)
	}
	m.At = LSN(uint64(soakLate+o-late)<<1 | uint64(p))
	if r.IntN(5) == 0 {
		m.Op = "delete"
	}
	return m
}

func stateSoakSink(dir string, p int32) sink.Sink {
	return Delta(dir, CurrentState("learner", "course"), OrderBy("lsn"), DeleteWhere("op", "delete"), DeletionVectors(), PartitionBy("course"), IndexDir(fmt.Sprint(dir, "-index", p)),
		Properties(map[string]string{"delta.checkpointInterval": "20", "delta.checkpointPolicy": "v2", "delta.logRetentionDuration": "interval 1 hours"}))
}

// changeRows lands changes, a few hundred at a time.
func changeRows(dir string, p int32) error {
	w, err := tryOpen[string, member](stateSoakSink(dir, p), testEnv())
	if err != nil {
		return err
	}
	return sinktest.Advance(w, part(p), 1<<40, 200, func(b sink.Batch, o int64) error {
		m := soakChange(p, o)
		return b.Append(nil, &m, meta(o))
	})
}

// TestStateSoak is TestSoak for current state: two processes change the same keys, each with an index in a folder of its own, while the table is compacted and
// vacuumed. Then DuckDB tells the rows: those of the newest changes up to the table's progress.
func TestStateSoak(t *testing.T) {
	r := readers.Open(t)
	s := &soak{t: t, dir: t.TempDir() + "/t", variable: stateSoakVariable}
	w, err := tryOpen[string, member](stateSoakSink(s.dir, 0), testEnv()) // makes the table
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.run()
	info, err := Show(ctx, s.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	var offsets [2]int64
	for _, p := range info.Progress {
		if p.Topic != "" {
			offsets[p.Partition] = p.Next
		}
	}
	want := soakState(offsets)
	got := map[string]string{}
	for _, row := range r.DuckDB(t, s.dir, "select learner || '/' || course as k, status || '@' || lsn as v from t").Rows {
		got[row.Text("k")] += row.Text("v")
	}
	if !maps.Equal(got, want) {
		t.Errorf("after %v changes DuckDB finds %d rows, want %d", offsets, len(got), len(want))
		for key := range want {
			if got[key] != want[key] {
				t.Errorf("%s is %q, want %q", key, got[key], want[key])
				break
			}
		}
	}
	t.Logf("%v changes, %d rows in %d files, version %d; %s", offsets, info.Rows, info.Files, info.Version, soakDeletions(t, s.dir))
}

// soakState is the state after so many changes of each partition.
func soakState(offsets [2]int64) map[string]string {
	newest := map[string]member{}
	for p := range offsets {
		for o := range offsets[p] {
			m := soakChange(int32(p), o)
			key := m.Learner + "/" + m.Course
			if old, ok := newest[key]; !ok || m.At >= old.At {
				newest[key] = m
			}
		}
	}
	out := map[string]string{}
	for key, m := range newest {
		if m.Op != "delete" {
			out[key] = fmt.Sprint(m.Status, "@", m.At)
		}
	}
	return out
}

// soakDeletions tells how many deletions are remembered, in how many files.
func soakDeletions(t *testing.T, dir string) string {
	t.Helper()
	store, err := object.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := &stateIndex{store: store}
	if x.x, err = keyed.Open(""); err == nil {
		err = x.loadDeletions(ctx, table.Head(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d deletions remembered in %d files", x.deletions.count(), len(x.deletions.segments))
}
