package lake

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/keyed"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/parquetfile"
	"github.com/tributary-io/tributary/lake/sink"
)

// member is a change in tests: who is in which course.
type member struct {
	Learner string `lake:"learner"`
	Course  string `lake:"course"`
	Op      string `lake:"op"`
	Status  string `lake:"status"`
	At      LSN    `lake:"lsn"`
}

// membersOf is the sink of most tests.
func membersOf(store object.Store, opts ...Option) sink.Sink {
	opts = append([]Option{Store(store), CurrentState("learner", "course"), OrderBy("lsn"), DeleteWhere("op", "delete")}, opts...)
	return Delta(store.String(), opts...)
}

// offerAll lands changes in one batch.
func offerAll(t testing.TB, w sink.Writer, from int64, changes ...member) sink.Commit {
	t.Helper()
	return land(t, w, from, changes...)
}

// stateOf reads the table as texts by key.
func stateOf(t testing.TB, store object.Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, r := range allRows(t, store) {
		key := fmt.Sprint(r["learner"], "/", r["course"])
		if old, ok := out[key]; ok {
			t.Errorf("%s has two rows: %s and %v", key, old, r)
		}
		out[key] = fmt.Sprint(r["status"], "@", r["lsn"])
	}
	return out
}

func wantState(t testing.TB, store object.Store, want map[string]string) {
	t.Helper()
	if got := stateOf(t, store); !maps.Equal(got, want) {
		t.Errorf("the table has %v, want %v", got, want)
	}
}

// modes are the ways in which rows leave a table.
var modes = map[string][]Option{"copy": nil, "vectors": {DeletionVectors()}}

// TestNewestOrderWins lands changes late, twice, and after a deletion.
func TestNewestOrderWins(t *testing.T) {
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			store := object.NewMemory("t")
			w := openSink[string, member](t, membersOf(store, opts...))
			offerAll(t, w, 0, member{"a", "x", "upsert", "new", 0x10_00000000}, member{"b", "x", "upsert", "new", 5}, member{"c", "x", "upsert", "new", 6})
			// As texts 9/FFFFFFFF is after 10/0.
			c := offerAll(t, w, 3, member{"a", "x", "upsert", "late", 0x9_FFFFFFFF}, member{"b", "x", "delete", "", 9}, member{"c", "x", "upsert", "newer", 7})
			if c.Rows != 3 {
				t.Errorf("%+v", c)
			}
			wantState(t, store, map[string]string{"a/x": "new@10/0", "c/x": "newer@0/7"})
			offerAll(t, w, 6, member{"b", "x", "upsert", "late, must not come back", 8}, member{"d", "x", "delete", "", 50}, member{"d", "x", "upsert", "late", 49})
			wantState(t, store, map[string]string{"a/x": "new@10/0", "c/x": "newer@0/7"})
			// The same after everything that the process knew is gone.
			w2 := openSink[string, member](t, membersOf(store, opts...))
			offerAll(t, w2, 9, member{"b", "x", "upsert", "still late", 8}, member{"d", "x", "upsert", "late", 49}, member{"c", "x", "upsert", "late", 6})
			wantState(t, store, map[string]string{"a/x": "new@10/0", "c/x": "newer@0/7"})
			offerAll(t, w2, 12, member{"b", "x", "upsert", "back", 10}, member{"c", "x", "delete", "", 7})
			wantState(t, store, map[string]string{"a/x": "new@10/0", "b/x": "back@0/A"})
			// The first writer reads what the second has done.
			offerAll(t, w, 14, member{"c", "x", "upsert", "late", 6}, member{"b", "x", "upsert", "newest", 11})
			wantState(t, store, map[string]string{"a/x": "new@10/0", "b/x": "newest@0/B"})
		})
	}
}

// TestTableOfAStream lands keys and values without an order: the last one in the topic counts, and a null value deletes.
func TestTableOfAStream(t *testing.T) {
	type seat struct{ Free int64 }
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			store := object.NewMemory("t")
			w := openSink[string, seat](t, Delta("t", append(opts, Store(store), KeyColumn("course"), CurrentState())...))
			offset := int64(0)
			offer := func(pairs ...any) {
				b := w.NewBatch()
				defer b.Release()
				from := offset
				for i := 0; i < len(pairs); i += 2 {
					key := pairs[i].(string)
					var value any
					if n, ok := pairs[i+1].(int); ok {
						value = &seat{int64(n)}
					}
					if err := b.Append(&key, value, meta(offset)); err != nil {
						t.Fatal(err)
					}
					offset++
				}
				if from == 0 {
					from = sink.NoOffset
				}
				if _, err := w.Commit(ctx, b, []sink.Move{move(0, from, offset)}); err != nil {
					t.Fatal(err)
				}
			}
			check := func(want string) {
				t.Helper()
				var got []string
				for _, r := range allRows(t, store) {
					got = append(got, fmt.Sprint(r["course"], "=", r["Free"]))
				}
				slices.Sort(got)
				if fmt.Sprint(got) != want {
					t.Errorf("the table has %v, want %s", got, want)
				}
			}
			offer("a", 1, "b", 2, "a", 3, "c", nil)
			check("[a=3 b=2]")
			offer("a", nil, "d", 4, "d", nil, "b", nil, "b", 5)
			check("[b=5]")
			offer("b", nil, "zz", nil)
			check("[]")
			offer("a", 7)
			check("[a=7]")
		})
	}
}

// TestStateAgainstModel draws changes, partitions of the topic and of the table, instances that come and go, and foreign compactions, and
// compares the table with a map after each batch.
func TestStateAgainstModel(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		modelState(t, fmt.Sprint(dir, "/", n))
	})
}

type modelRow struct {
	status  string
	lsn     LSN
	deleted bool
}

func modelState(t *rapid.T, dir string) {
	store := object.NewMemory("t")
	opts := []Option{func(o *options) { o.inlineUpkeep = true }, Properties(map[string]string{"delta.checkpointInterval": "4", "delta.targetFileSize": "4000"})}
	vectors := rapid.Bool().Draw(t, "vectors")
	if vectors {
		opts = append(opts, DeletionVectors())
	}
	var by []string
	if rapid.Bool().Draw(t, "partitioned") {
		by = []string{rapid.SampledFrom([]string{"course", "status"}).Draw(t, "by")}
		opts = append(opts, PartitionBy(by...))
	}
	if mode := rapid.SampledFrom([]string{"", delta.MappingName, delta.MappingID}).Draw(t, "column mapping"); mode != "" {
		mappedMembers(t, store, mode, vectors, by...)
	}
	bound := rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "remembered deletions")
	if bound > 0 {
		opts = append(opts, RememberDeletions(bound))
	}
	keepIndex := rapid.Bool().Draw(t, "index in a folder")
	open := func(i int) sink.Writer {
		mine := opts
		if keepIndex {
			mine = append(slices.Clone(opts), IndexDir(fmt.Sprint(dir, "-", i)))
		}
		w, err := tryOpen[string, member](membersOf(store, mine...), testEnv())
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	writers := []sink.Writer{open(0), open(1)}
	model := map[string]modelRow{}
	at := []int64{sink.NoOffset, sink.NoOffset} // of each writer's partition
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		i := rapid.IntRange(0, 1).Draw(t, "writer")
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0:
			if err := writers[i].Close(); err != nil {
				t.Fatal(err)
			}
			writers[i] = open(i)
			continue
		case 1:
			compact(t, store)
			continue
		}
		b := writers[i].NewBatch()
		from := at[i]
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			m := member{Learner: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "learner"), Course: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "course"),
				Op: "upsert", Status: rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "status"), At: LSN(rapid.IntRange(1, 30).Draw(t, "lsn"))}
			if rapid.IntRange(0, 3).Draw(t, "op") == 0 {
				m.Op = "delete"
			}
			if err := b.Append(nil, &m, meta(max(at[i], 0))); err != nil {
				t.Fatal(err)
			}
			at[i] = max(at[i], 0) + 1
			key := m.Learner + "/" + m.Course
			if old, ok := model[key]; !ok || m.At >= old.lsn {
				model[key] = modelRow{m.Status, m.At, m.Op == "delete"}
			}
		}
		if at[i] == from {
			b.Release()
			continue
		}
		_, err := writers[i].Commit(ctx, b, []sink.Move{move(int32(i), from, at[i])})
		b.Release()
		if err != nil {
			t.Fatal(err)
		}
		checkModel(t, store, model, writers[i].(*writer).index.deletions.horizon)
	}
	for _, w := range writers {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// checkModel compares the table with the model. Rows of orders below the horizon may be missing; none may be there that the model doesn't have.
func checkModel(t *rapid.T, store object.Store, model map[string]modelRow, horizon uint64) {
	want := map[string]string{}
	for key, m := range model {
		if !m.deleted {
			want[key] = fmt.Sprint(m.status, "@", m.lsn)
		}
	}
	got := map[string]string{}
	for r, err := range readStore(ctx, store, "t") {
		if err != nil {
			t.Fatal(err)
		}
		got[fmt.Sprint(r["learner"], "/", r["course"])] += fmt.Sprint(r["status"], "@", r["lsn"])
	}
	maps.DeleteFunc(want, func(key, _ string) bool { return got[key] == "" && uint64(model[key].lsn) < horizon })
	if !maps.Equal(got, want) {
		t.Fatalf("the table has %v, want %v; the horizon is %d", got, want, horizon)
	}
}

// compact does what another engine's compaction does: it puts one file in the place of all those of a partition, without the rows that are
// deleted.
func compact(t rapid.TB, store object.Store) {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	table, err := delta.Open(ctx, store, delta.Options{})
	fail(err)
	snap, err := table.Snapshot(ctx)
	fail(err)
	byPartition := map[string][]delta.Add{}
	for add, err := range snap.Files(ctx) {
		fail(err)
		key := ""
		for _, name := range snap.Head.Metadata.PartitionColumns {
			key += *snap.Head.Metadata.PartitionValue(&add, name) + "/"
		}
		byPartition[key] = append(byPartition[key], add)
	}
	for _, key := range slices.Sorted(maps.Keys(byPartition)) {
		files := byPartition[key]
		w := &writer{sink: &deltaSink{opts: options{parquet: parquetfile.Options{Codec: "snappy"}}}, env: testEnv(), table: table}
		var f stateFile
		o := output{values: files[0].PartitionValues}
		gone := &statePlan{}
		for _, add := range files {
			rows, err := delta.DeletedRows(ctx, store, add.DeletionVector)
			fail(err)
			o.sources = append(o.sources, &stateFile{name: add.Path, add: add, gone: rows})
		}
		opts, err := w.parquetOptions(snap.Head.Metadata)
		fail(err)
		gone.gone = nil
		fail(w.writeSources(ctx, nil, snap.Head.Metadata, gone, &o, &f, opts))
		c := delta.Commit{Remove: files, ReadVersion: snap.Head.Version, Rearrange: true, Operation: "OPTIMIZE"}
		if f.add.Path != "" {
			c.Add = []delta.Add{f.add}
		}
		_, err = table.Commit(ctx, c)
		fail(err)
	}
}

// TestStateRefusals names what can't be declared, and what tables can't be written.
func TestStateRefusals(t *testing.T) {
	type odd struct {
		F float64
		L []string
		S string
		N int64
		B bool
	}
	for want, opts := range map[string][]Option{
		"name the key's columns":          {CurrentState()},
		`there is no column "nope"`:       {CurrentState("nope")},
		"column F of type double":         {CurrentState("F")},
		"named twice":                     {CurrentState("S", "S")},
		"column L of type array can't or": {CurrentState("S"), OrderBy("L")},
		"column N of type long can't hav": {CurrentState("S"), DeleteWhere("N", "x")},
		"column B of type boolean":        {CurrentState("S"), DeleteWhere("B", "x")},
		"no value is given":               {CurrentState("S"), DeleteWhere("B")},
		"a value of type int":             {CurrentState("S"), DeleteWhere("B", 1)},
		"exclude one another":             {CurrentState("S"), LandTombstones()},
		"remembered with OrderBy only":    {CurrentState("S"), RememberDeletions(5)},
		"0 deletions: at least one":       {CurrentState("S"), OrderBy("N"), RememberDeletions(0)},
	} {
		if err := Delta("t", opts...).Bind(reflect.TypeFor[string](), reflect.TypeFor[odd]()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	store := object.NewMemory("t")
	openSink[string, member](t, membersOf(store))
	env := testEnv()
	env.Name = "another-sink"
	_, err := tryOpen[string, member](membersOf(store), env)
	wantRefused(t, err, "app/orders-sink", "app/another-sink", "one writer")
	_, err = tryOpen[string, member](Delta("t", Store(store)), testEnv())
	wantRefused(t, err, "this sink appends")
	_, err = tryOpen[string, member](Delta("t", Store(store), CurrentState("learner"), OrderBy("lsn")), testEnv())
	wantRefused(t, err, `["learner","course"]`)
	_, err = tryOpen[string, member](Delta("t", Store(store), CurrentState("learner", "course")), testEnv())
	wantRefused(t, err, "ordered by column lsn")
	appended := object.NewMemory("u")
	openSink[string, member](t, Delta("u", Store(appended)))
	_, err = tryOpen[string, member](membersOf(appended), testEnv())
	wantRefused(t, err, "made for appends")
}

// TestBadChanges are errors of the record alone.
func TestBadChanges(t *testing.T) {
	type change struct {
		ID *string
		At string
	}
	store := object.NewMemory("t")
	w := openSink[string, change](t, Delta("t", Store(store), CurrentState("ID"), OrderBy("At")))
	b := w.NewBatch()
	id, key := "a", "k"
	for _, bad := range []change{{nil, "0/1"}, {&id, "17"}, {&id, ""}} {
		var rowErr *sink.RowError
		if err := b.Append(&key, &bad, meta(0)); !asRowError(err, &rowErr) || rowErr.Field == "" {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if err := b.Append(&key, &change{&id, "A/0"}, meta(1)); err != nil {
		t.Fatal(err)
	}
	if err := b.Append(&key, nil, meta(2)); err != nil { // whose row that would be nobody knows
		t.Fatal(err)
	}
	if b.Rows() != 1 {
		t.Errorf("%d changes", b.Rows())
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 3)}); err != nil {
		t.Fatal(err)
	}
	b.Release()
	if rows := allRows(t, store); len(rows) != 1 || rows[0]["At"] != "A/0" {
		t.Errorf("%v", rows)
	}
}

func asRowError(err error, out **sink.RowError) bool {
	e, ok := err.(*sink.RowError)
	*out = e
	return ok
}

// TestForeignRowsAreRefused adds a row of a key that has one already, as another engine's INSERT would.
func TestForeignRowsAreRefused(t *testing.T) {
	store := object.NewMemory("t")
	w := openSink[string, member](t, membersOf(store))
	offerAll(t, w, 0, member{"a", "x", "upsert", "new", 5})
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for add, err := range snap.Files(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		data, err := store.Get(ctx, add.Path)
		if err == nil {
			err = store.Put(ctx, "copy.parquet", data)
		}
		if err != nil {
			t.Fatal(err)
		}
		add.Path = "copy.parquet"
		if _, err := table.Commit(ctx, delta.Commit{Add: []delta.Add{add}}); err != nil {
			t.Fatal(err)
		}
		break
	}
	b := w.NewBatch()
	defer b.Release()
	if err := b.Append(nil, &member{"b", "x", "upsert", "", 5}, meta(1)); err != nil {
		t.Fatal(err)
	}
	_, err = w.Commit(ctx, b, []sink.Move{move(0, 1, 2)})
	wantRefused(t, err, "same key", "mem://t")
	_, err = tryOpen[string, member](membersOf(store), testEnv())
	wantRefused(t, err, "same key")
}

// TestConcurrentChanges lets four instances change the same keys at once, each from a partition of its own.
func TestConcurrentChanges(t *testing.T) {
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			_, store := localStore(t)
			done := make(chan error)
			for n := range int32(4) {
				go func() { done <- changeMany(store, n, opts) }()
			}
			for range 4 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			want := map[string]string{}
			for n := range int32(4) {
				for _, m := range manyChanges(n) {
					key := m.Learner + "/" + m.Course
					lsn, _ := ParseLSN(strings.TrimPrefix(want[key], "@"))
					if m.At > lsn {
						want[key] = "@" + m.At.String()
					}
				}
			}
			got := stateOf(t, store)
			for key := range want {
				if !strings.HasSuffix(got[key], want[key]) {
					t.Errorf("%s is %s, want %s", key, got[key], want[key])
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d keys, want %d", len(got), len(want))
			}
		})
	}
}

// manyChanges are those of one partition. Their orders are in no order, and no two are equal.
func manyChanges(n int32) (out []member) {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	for i := range 60 {
		out = append(out, member{fmt.Sprint("l", r.IntN(20)), "x", "upsert", fmt.Sprint(n, "-", i), LSN(r.Uint32N(1<<20)*4 + uint32(n) + 4)})
	}
	return out
}

func changeMany(store object.Store, n int32, opts []Option) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	s := membersOf(store, opts...)
	if err := s.Bind(reflect.TypeFor[string](), reflect.TypeFor[member]()); err != nil {
		return err
	}
	w, err := s.Open(ctx, testEnv())
	if err != nil {
		return err
	}
	defer w.Close()
	at := sink.NoOffset
	for chunk := range slices.Chunk(manyChanges(n), 10) {
		b := w.NewBatch()
		for i := range chunk {
			if err := b.Append(nil, &chunk[i], meta(0)); err != nil {
				return err
			}
		}
		to := max(at, 0) + int64(len(chunk))
		_, err := w.Commit(ctx, b, []sink.Move{move(n, at, to)})
		b.Release()
		if err != nil {
			return err
		}
		at = to
	}
	return nil
}

// TestDeletionsAreFew deletes a row in each of many commits: the files that hold the orders stay few, old ones go after a day, and the orders
// are all still there.
func TestDeletionsAreFew(t *testing.T) {
	store := object.NewMemory("t")
	env := testEnv()
	var ahead time.Duration
	env.Now = func() time.Time { return time.Now().Add(ahead) }
	inline := func(o *options) { o.inlineUpkeep = true }
	w, err := tryOpen[string, member](membersOf(store, inline), env)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 60
	for i := range int64(rows) {
		offerAll(t, w, i, member{fmt.Sprint("l", i), "x", "delete", "", 10})
	}
	segments := func() (n int) {
		for _, err := range store.List(ctx, keyed.DeletionsDir, "") {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	if n := segments(); n != rows {
		t.Errorf("%d files before the first sweep", n)
	}
	ahead = 48 * time.Hour
	offerAll(t, w, rows, member{"other", "x", "upsert", "here", 5})
	if n := segments(); n > 16 {
		t.Errorf("%d files are left", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = openSink[string, member](t, membersOf(store))
	var late []member
	for i := range rows {
		late = append(late, member{fmt.Sprint("l", i), "x", "upsert", "late", 9})
	}
	offerAll(t, w, rows+1, late...)
	wantState(t, store, map[string]string{"other/x": "here@0/5"})
}

// TestStateEvolves opens a table with one more column than its rows have, changes some of them, and keeps the others.
func TestStateEvolves(t *testing.T) {
	type grown struct {
		member
		Grade *int64 `lake:"grade"`
	}
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			store := object.NewMemory("t")
			w := openSink[string, member](t, membersOf(store, opts...))
			offerAll(t, w, 0, member{"a", "x", "upsert", "old", 1}, member{"b", "x", "upsert", "old", 1}, member{"c", "x", "upsert", "old", 1})
			grade := int64(7)
			w2 := openSink[string, grown](t, membersOf(store, opts...))
			land(t, w2, 3, grown{member{"a", "x", "upsert", "graded", 2}, &grade}, grown{member{"b", "x", "delete", "", 2}, nil})
			wantState(t, store, map[string]string{"a/x": "graded@0/2", "c/x": "old@0/1"})
			for _, r := range allRows(t, store) {
				if want := map[string]any{"a": int64(7)}[r["learner"].(string)]; r["grade"] != want {
					t.Errorf("%v, want the grade %v", r, want)
				}
			}
			// The instance of before, in a rolling upgrade, goes on.
			offerAll(t, w, 5, member{"c", "x", "upsert", "newer", 3})
			wantState(t, store, map[string]string{"a/x": "graded@0/2", "c/x": "newer@0/3"})
		})
	}
}
