package lake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

// hotTable is a table of current state whose sink changes rows of every file with each batch.
type hotTable struct {
	t    *testing.T
	w    sink.Writer
	at   int64
	want map[string]string
}

const (
	hotFiles = 6
	hotRows  = 30 // of a file
)

func newHotTable(t *testing.T, s sink.Sink) *hotTable {
	h := &hotTable{t: t, w: openSink[string, member](t, s), want: map[string]string{}}
	for f := range hotFiles {
		var rows []member
		for i := range hotRows {
			rows = append(rows, h.change(f*hotRows+i, "upsert"))
		}
		h.offer(rows...)
	}
	return h
}

func (h *hotTable) change(key int, op string) member {
	m := member{fmt.Sprintf("l%03d", key), fmt.Sprint("c", key%2), op, fmt.Sprint("at ", h.at), LSN(h.at<<8 + int64(key))}
	if k := m.Learner + "/" + m.Course; op == "delete" {
		delete(h.want, k)
	} else {
		h.want[k] = fmt.Sprint(m.Status, "@", m.At)
	}
	return m
}

func (h *hotTable) offer(rows ...member) {
	offerAll(h.t, h.w, h.at, rows...)
	h.at += int64(len(rows))
}

// changeAll replaces a row of each file that the table began with, and deletes one.
func (h *hotTable) changeAll() {
	n := int(h.at)
	var rows []member
	for f := range hotFiles {
		rows = append(rows, h.change(f*hotRows+n%hotRows, "upsert"))
	}
	h.offer(append(rows, h.change(n*7%(hotFiles*hotRows), "delete"))...)
}

// check compares the table with what it should be, by our reader and two others.
func (h *hotTable) check(r *readers.Readers, store object.Store, when string) {
	h.t.Helper()
	wantState(h.t, store, h.want)
	const query = "select learner || '/' || course as k, status || '@' || lsn as v from t"
	for who, rows := range map[string][]readers.Row{"delta-rs": r.DeltaRS(h.t, store.String(), readers.Query(query)).Rows, "DuckDB": r.DuckDB(h.t, store.String(), query).Rows} {
		got := map[string]string{}
		for _, row := range rows {
			got[fmt.Sprint(row["k"])] += fmt.Sprint(row["v"])
		}
		if !maps.Equal(got, h.want) {
			h.t.Errorf("%s: %s finds %v, want %v", when, who, got, h.want)
		}
	}
}

// TestOptimizeBesideChanges compacts a table while a sink changes rows of all of its files, after each file that was read and before each try to commit. One
// compaction lands, without a conflict, and the sink goes on behind it.
func TestOptimizeBesideChanges(t *testing.T) {
	r := readers.Open(t)
	for name, opts := range map[string]OptimizeOptions{"in their order": {}, "sorted": {SortBy: "lsn"}} {
		t.Run(name, func(t *testing.T) {
			_, store := localStore(t)
			h := newHotTable(t, membersOf(store, DeletionVectors(), PartitionBy("course")))
			changes := 0
			change := func(most int) {
				if changes < most {
					changes++
					h.changeAll()
				}
			}
			beside := &object.Faulty{Inner: store, Plan: func(c object.Call) object.Fault {
				switch {
				case isEntry(c.Name) && c.Op == object.OpPutIfAbsent:
					change(6)
				case strings.HasSuffix(c.Name, ".parquet") && !strings.HasPrefix(c.Name, "_"):
					change(3)
				}
				return object.NoFault
			}}
			res := optimize(t, beside, opts)
			if changes != 6 || res.Commits != 1 || res.Conflicts != 0 || res.FilesRemoved != 2*hotFiles || res.FilesAdded != 2 {
				t.Errorf("%d changes, %+v", changes, res)
			}
			h.check(r, store, "after the compaction")
			var marked, moved int64
			for _, f := range filesOf(t, store) {
				if f.DeletionVector != nil {
					rows, _ := f.NumRecords()
					marked += f.DeletionVector.Cardinality
					moved += rows - f.DeletionVector.Cardinality
				}
			}
			if marked == 0 {
				t.Error("no row is marked as deleted, so that nothing was brought over")
			}
			if res.Rows != moved {
				t.Errorf("%d rows were moved, it says %d", moved, res.Rows)
			}
			h.changeAll()
			h.w = openSink[string, member](t, membersOf(store, DeletionVectors(), PartitionBy("course")))
			h.changeAll()
			h.check(r, store, "after more changes")
			if res := optimize(t, store, OptimizeOptions{SortBy: opts.SortBy}); res.Commits != 1 || res.Conflicts != 0 {
				t.Errorf("a second compaction: %+v", res)
			}
			h.check(r, store, "after a second compaction")
			noOrphans(t, store)
		})
	}
}

// TestOptimizeBesideNewVectors sorts a table in which deletion vectors are allowed while its rows are copied, and rows deleted by them. The compaction, which
// hasn't noted where its rows are, gives way and is planned anew.
func TestOptimizeBesideNewVectors(t *testing.T) {
	store := object.NewMemory("t")
	h := newHotTable(t, membersOf(store, DeletionVectors()))
	allowVectors(t, store, "false")
	changed := false
	beside := &object.Faulty{Inner: store, Plan: func(c object.Call) object.Fault {
		if strings.HasSuffix(c.Name, ".parquet") && !strings.HasPrefix(c.Name, "_") && !changed {
			changed = true
			allowVectors(t, store, "true")
			h.changeAll()
		}
		return object.NoFault
	}}
	if res := optimize(t, beside, OptimizeOptions{SortBy: "course"}); !changed || res.Commits != 1 || res.Conflicts != 1 {
		t.Errorf("%+v", res)
	}
	wantState(t, store, h.want)
}

// allowVectors sets the table property that allows to write deletion vectors.
func allowVectors(t *testing.T, store object.Store, value string) {
	t.Helper()
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Commit(ctx, delta.Commit{Metadata: func(m *delta.Metadata) (*delta.Metadata, error) {
		m = m.Clone()
		m.Configuration[vectorsProperty] = value
		return m, nil
	}}); err != nil {
		t.Fatal(err)
	}
}

// noOrphans looks for files of rows or deletion vectors that no version names.
func noOrphans(t *testing.T, store object.Store) {
	t.Helper()
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	err = table.Changes(ctx, 0, table.Head().Version, func(c delta.FileChanges) error {
		for i := range c.Add {
			vectors, err := c.Add[i].DeletionVector.File()
			if err != nil {
				return err
			}
			name, err := c.Add[i].Name()
			if err != nil {
				return err
			}
			named[vectors], named[name] = true, true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for info, err := range store.List(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(info.Name, "_") && !named[info.Name] {
			t.Errorf("%s is left, and no version names it", info.Name)
		}
	}
}

// TestOptimizeBesideAnything compacts while others do what they like to the chosen files: change and delete rows, empty whole files, compact them. Whatever it is, and wherever
// the compaction is when it comes, the rows are those of the changes.
func TestOptimizeBesideAnything(t *testing.T) {
	landed, beside := 0, 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 4))
		store := object.NewMemory("t")
		var opts []Option
		if seed%5 > 0 {
			opts = append(opts, DeletionVectors())
		}
		if seed%3 == 0 {
			opts = append(opts, PartitionBy("course"))
		}
		h := newHotTable(t, membersOf(store, opts...))
		table, err := delta.Open(ctx, store, delta.Options{})
		if err != nil {
			t.Fatal(err)
		}
		before := table.Head().Version
		events := 0
		faulty := &object.Faulty{Inner: store}
		faulty.Plan = func(c object.Call) object.Fault {
			if r.IntN(12) > 0 || events == 12 {
				return object.NoFault
			}
			events++
			switch r.IntN(6) {
			case 0:
				compact(t, store)
			case 1: // empties files
				f := r.IntN(hotFiles)
				var rows []member
				for i := range hotRows {
					rows = append(rows, h.change(f*hotRows+i, []string{"delete", "upsert"}[r.IntN(2)]))
				}
				h.offer(rows...)
			case 2:
				if seed%4 == 0 {
					return []object.Fault{object.Crash, object.CrashAfter, object.Fail, object.LoseReply}[r.IntN(4)]
				}
				h.changeAll()
			default:
				h.changeAll()
			}
			return object.NoFault
		}
		o := OptimizeOptions{}
		if r.IntN(2) == 0 {
			o.SortBy = "learner"
		}
		res, err := optimizeStore(ctx, faulty, o)
		if err != nil && seed%4 > 0 {
			t.Errorf("seed %d: %v", seed, err)
		}
		if landed += res.Commits; res.Commits > 0 && events > 0 && res.Version > before+1 {
			beside++
		}
		wantState(t, store, h.want)
		h.changeAll()
		wantState(t, store, h.want)
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, res)
		}
	}
	if landed < 60 || beside < 40 {
		t.Errorf("%d compactions landed, %d of them behind the commits of others", landed, beside)
	}
}

// TestOptimizeDiesAnywhere lets a compaction beside changes die at each operation of the store, before and behind its effect. No row is lost or doubled, and the next
// compaction lands. Time is that of a bubble, since an outcome in doubt is pursued.
func TestOptimizeDiesAnywhere(t *testing.T) {
	died := true
	n := 0
	for ; died; n++ {
		for _, fault := range []object.Fault{object.Crash, object.CrashAfter} {
			synctest.Test(t, func(t *testing.T) { died = dieCompacting(t, n+1, fault) })
			if t.Failed() {
				t.Fatalf("it died at operation %d, fault %d", n+1, fault)
			}
		}
	}
	if n < 30 {
		t.Errorf("a compaction takes %d operations", n)
	}
}

// TestOptimizeSurvivesAFailingStore lets one operation fail between the moment at which a compaction is overtaken and its next try. Its work isn't lost for that. Where the
// store fails until the compaction gives up, it leaves nothing.
func TestOptimizeSurvivesAFailingStore(t *testing.T) {
	failed := true
	n := 0
	for ; failed; n++ {
		synctest.Test(t, func(t *testing.T) { failed = failOvertaken(t, n+1, 1) })
		if t.Failed() {
			t.Fatalf("operation %d failed", n+1)
		}
	}
	if n < 3 {
		t.Errorf("to look what others did takes %d operations", n)
	}
	synctest.Test(t, func(t *testing.T) { failOvertaken(t, n-1, 1000) }) // where the groups are brought to the newer version
}

// lockedStore lets nobody write the log.
type lockedStore struct {
	object.Store
	tries int
}

func (s *lockedStore) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if isEntry(name) {
		s.tries++
		return &object.Error{Op: "put if absent", Store: s.String(), Name: name, Err: fs.ErrPermission}
	}
	return s.Store.PutIfAbsent(ctx, name, data)
}

// TestOptimizeWithoutRights gives up at once where commits aren't permitted, and leaves nothing.
func TestOptimizeWithoutRights(t *testing.T) {
	store := &lockedStore{Store: object.NewMemory("t")}
	h := newHotTable(t, membersOf(store.Store, append(weatherOptions(), DeletionVectors())...))
	_, err := optimizeStore(ctx, store, OptimizeOptions{Parallel: 1})
	if !errors.Is(err, fs.ErrPermission) || store.tries != 1 {
		t.Errorf("%v after %d tries", err, store.tries)
	}
	wantState(t, store, h.want)
	noOrphans(t, store.Store)
}

// failOvertaken has some operations of a store fail, from the nth on after a compaction is overtaken until its next try. It reports whether there was one.
func failOvertaken(t *testing.T, n, some int) bool {
	store := object.NewMemory("t")
	h := newHotTable(t, membersOf(store, append(weatherOptions(), DeletionVectors(), Properties(map[string]string{codecProperty: "snappy"}))...))
	overtaken, since, failed := 0, 0, 0
	faulty := &object.Faulty{Inner: store, Plan: func(c object.Call) object.Fault {
		try := isEntry(c.Name) && c.Op == object.OpPutIfAbsent
		switch {
		case try:
			if overtaken++; overtaken == 1 {
				h.changeAll()
			}
			return object.NoFault
		case overtaken == 1:
			since++
		}
		if overtaken == 1 && since >= n && since < n+some && c.Op != object.OpDelete {
			failed++
			return object.Fail
		}
		return object.NoFault
	}}
	res, err := optimizeStore(ctx, faulty, OptimizeOptions{Parallel: 1})
	switch {
	case some > 1:
		if !errors.Is(err, object.ErrFault) || failed != storeTries {
			t.Errorf("%v after %d failures", err, failed)
		}
	case err != nil || res.Commits != 1 || res.Conflicts != 0:
		t.Errorf("%+v, %v", res, err)
	}
	wantState(t, store, h.want)
	noOrphans(t, store)
	return failed > 0
}

// dieCompacting has a compaction die at its nth operation, and reports whether there was one.
func dieCompacting(t *testing.T, n int, fault object.Fault) bool {
	store := object.NewMemory("t")
	opts := append(weatherOptions(), DeletionVectors(), Properties(map[string]string{codecProperty: "snappy"}))
	h := newHotTable(t, membersOf(store, opts...))
	overtaken, died := 0, false
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	faulty := &object.Faulty{Inner: store, OnCrash: cancel, Plan: func(c object.Call) object.Fault {
		if isEntry(c.Name) && c.Op == object.OpPutIfAbsent && overtaken < 2 {
			overtaken++
			h.changeAll()
		}
		if c.N == n {
			died = true
			return fault
		}
		return object.NoFault
	}}
	if _, err := optimizeStore(ctx, faulty, OptimizeOptions{Parallel: 1}); !died && (err != nil || overtaken != 2) {
		t.Errorf("without a crash: %v, overtaken %d times", err, overtaken)
	}
	wantState(t, store, h.want)
	h.changeAll()
	if res := optimize(t, store, OptimizeOptions{}); res.Conflicts > 0 {
		t.Errorf("the next compaction: %+v", res)
	}
	wantState(t, store, h.want)
	return died
}

// TestMissedRows compares what has gone of copied rows with a model that knows all rows.
func TestMissedRows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "rows")
		row := rapid.IntRange(0, n-1)
		before, later := roaring.New(), roaring.New()
		for _, i := range rapid.SliceOf(row).Draw(rt, "before") {
			before.Add(uint32(i))
		}
		for _, i := range rapid.SliceOf(row).Draw(rt, "later") {
			later.Add(uint32(i))
		}
		var want, got []uint32
		for i, number := uint32(0), uint32(0); i < uint32(n); i++ {
			if before.Contains(i) {
				continue
			}
			if later.Contains(i) {
				want = append(want, number)
			}
			number++
		}
		c := &copied{rows: uint32(n), gone: before}
		if ok := c.missed(roaring.Or(before, later), func(i uint32) { got = append(got, i) }); !ok || !slices.Equal(got, want) {
			rt.Fatalf("%v, %v of %v, want %v", ok, got, later, want)
		}
		if back := roaring.AndNot(before, later); !back.IsEmpty() && c.missed(later, func(uint32) {}) {
			rt.Fatalf("%v have come back", back)
		}
	})
}
