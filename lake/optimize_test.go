package lake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

// reading is a row with the kinds of columns that compaction has to bring over.
type reading struct {
	ID     int64     `lake:"id"`
	Day    string    `lake:"day,partition"`
	Value  *float64  `lake:"value"`
	Name   string    `lake:"name"`
	At     time.Time `lake:"at"`
	Labels map[string]struct {
		Score int32  `lake:"score"`
		Text  string `lake:"text"`
	} `lake:"labels"`
	List []string `lake:"list"`
}

func someReading(i int64) reading {
	r := reading{ID: i, Day: fmt.Sprintf("2026-01-0%d", 1+i%3), Name: fmt.Sprintf("name-%03d-%s", i, strings.Repeat("é", int(i%40))), At: time.UnixMicro(1780000000000000 + i*1_000_001).UTC()}
	if i%5 != 0 {
		v := float64(i) * 1.5
		r.Value = &v
	}
	for n := range i % 3 {
		r.List = append(r.List, fmt.Sprint("l", n))
		if r.Labels == nil {
			r.Labels = map[string]struct {
				Score int32  `lake:"score"`
				Text  string `lake:"text"`
			}{}
		}
		r.Labels[fmt.Sprint("k", n)] = struct {
			Score int32  `lake:"score"`
			Text  string `lake:"text"`
		}{int32(n), "t"}
	}
	return r
}

// landReadings lands so many commits of so many rows each.
func landReadings(t testing.TB, w sink.Writer, from int64, commits, rows int) {
	t.Helper()
	for range commits {
		var all []reading
		for range rows {
			all = append(all, someReading(from+int64(len(all))))
		}
		land(t, w, from, all...)
		from += int64(rows)
	}
}

// rowTexts returns all rows as sorted texts.
func rowTexts(t testing.TB, store object.Store) (out []string) {
	t.Helper()
	for _, r := range allRows(t, store) {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	slices.Sort(out)
	return out
}

// filesOf lists the live files.
func filesOf(t testing.TB, store object.Store) (out []delta.Add) {
	t.Helper()
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for a, err := range snap.Files(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

func optimize(t testing.TB, store object.Store, opts OptimizeOptions) OptimizeResult {
	t.Helper()
	r, err := optimizeStore(ctx, store, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOptimize makes one file of many in each partition: the rows stay what they were, for our reader and for others, statistics are those
// of the rows, progress stays, and a second run finds nothing to do.
func TestOptimize(t *testing.T) {
	r := readers.Open(t)
	dir, store := localStore(t)
	w := openSink[string, reading](t, Delta(dir, SourceColumns()))
	landReadings(t, w, 0, 20, 9)
	before := rowTexts(t, store)
	var steps []OptimizeResult
	res := optimize(t, store, OptimizeOptions{Progress: func(r OptimizeResult) { steps = append(steps, r) }})
	if res.FilesRemoved != 60 || res.FilesAdded != 3 || res.Rows != 180 || res.Commits != 1 || res.Groups != 3 || res.Done != 3 || res.Version != 21 || len(res.Left) > 0 {
		t.Errorf("%+v", res)
	}
	if len(steps) < 3 || steps[0].Groups != 3 || steps[0].Done != 0 || steps[len(steps)-1].Done != 3 {
		t.Errorf("progress: %+v", steps)
	}
	if after := rowTexts(t, store); !slices.Equal(before, after) {
		t.Errorf("rows changed: %d before, %d after", len(before), len(after))
	}
	for _, f := range filesOf(t, store) {
		if n, _ := f.NumRecords(); n != 60 || !strings.Contains(f.Stats, `"name":"name-0`) || len(f.PartitionValues) != 1 {
			t.Errorf("a file has the statistics %s and partition values %v", f.Stats, f.PartitionValues)
		}
	}
	if again := optimize(t, store, OptimizeOptions{}); again.Done != 0 || again.Commits != 0 {
		t.Errorf("a second run did %+v", again)
	}
	const sums = "select count(*) as n, sum(id) as s, sum(value) as v, count(distinct name) as d from t where id >= 0"
	want := "180 16110 19440.0 180"
	d := r.DeltaRS(t, dir, readers.Query(sums)).Rows[0]
	if got := fmt.Sprint(d["n"], " ", d["s"], " ", d["v"], " ", d["d"]); got != want {
		t.Errorf("delta-rs: %s, want %s", got, want)
	}
	d = r.DuckDB(t, dir, sums).Rows[0]
	if got := fmt.Sprint(d["n"], " ", d["s"], " ", d["v"], " ", d["d"]); got != want {
		t.Errorf("DuckDB: %s, want %s", got, want)
	}
	if n := r.DuckDB(t, dir, "select count(*) as n from t where day = '2026-01-02' and id = 61 and labels is not null").Rows[0].Int(t, "n"); n != 1 {
		t.Errorf("DuckDB finds %d rows by partition and statistics", n)
	}
	landReadings(t, w, 180, 1, 3) // the sink goes on
	if len(rowTexts(t, store)) != 183 {
		t.Error("rows are missing after the sink went on")
	}
}

// TestOptimizeSorted sorts by a column, and writes files anew that aren't sorted whatever their size, but once.
func TestOptimizeSorted(t *testing.T) {
	_, store := localStore(t)
	w := openSink[string, order](t, Delta("m", Store(store)))
	var next int64
	for range 5 {
		var rows []order
		for range 50 {
			rows = append(rows, order{ID: fmt.Sprintf("%04d", rand.N(1000)), Amount: float64(next)})
		}
		land(t, w, next, rows...)
		next += 50
	}
	before := rowTexts(t, store)
	res := optimize(t, store, OptimizeOptions{SortBy: "id"})
	if res.FilesAdded != 1 || res.Rows != 250 {
		t.Errorf("%+v", res)
	}
	if !slices.Equal(before, rowTexts(t, store)) {
		t.Error("rows changed")
	}
	last := ""
	for _, r := range allRows(t, store) {
		if id := r["id"].(string); id < last {
			t.Fatalf("%s stands behind %s", id, last)
		} else {
			last = id
		}
	}
	if res := optimize(t, store, OptimizeOptions{SortBy: "id"}); res.Done != 0 {
		t.Errorf("sorted again: %+v", res)
	}
	if res := optimize(t, store, OptimizeOptions{SortBy: "amount"}); res.Done != 1 {
		t.Errorf("sorted by another column: %+v", res)
	}
	for _, column := range []string{"none", "labels"} {
		if _, err := optimizeStore(ctx, store, OptimizeOptions{SortBy: column}); err == nil || !strings.Contains(err.Error(), "can't sort by "+column) {
			t.Errorf("sorting by %s: %v", column, err)
		}
	}
}

// TestOptimizeWhere keeps to the partitions asked for.
func TestOptimizeWhere(t *testing.T) {
	_, store := localStore(t)
	w := openSink[string, reading](t, Delta("m", Store(store)))
	landReadings(t, w, 0, 4, 3)
	condition := func(text string) []Condition {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		return []Condition{c}
	}
	if res := optimize(t, store, OptimizeOptions{Where: condition("day >= 2026-01-03"), DryRun: true}); res.Groups != 1 || res.FilesRemoved != 4 || res.FilesAdded != 1 || res.Rows != 4 || res.Commits != 0 {
		t.Errorf("dry run: %+v", res)
	}
	if n := len(filesOf(t, store)); n != 12 {
		t.Errorf("the dry run left %d files", n)
	}
	if res := optimize(t, store, OptimizeOptions{Where: condition("day=2026-01-02")}); res.FilesRemoved != 4 {
		t.Errorf("%+v", res)
	}
	if n := len(filesOf(t, store)); n != 9 {
		t.Errorf("%d files are left", n)
	}
	for text, want := range map[string]string{"id=3": "no partition column", "day<": "doesn't go with"} {
		if _, err := optimizeStore(ctx, store, OptimizeOptions{Where: condition(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestConditions compares partition values by their types.
func TestConditions(t *testing.T) {
	md := &delta.Metadata{Schema: &delta.StructType{}, PartitionColumns: []string{"i", "d", "s", "f", "c", "b"}}
	for name, typ := range map[string]delta.Primitive{"i": delta.Integer, "d": delta.Date, "s": delta.String, "f": delta.Double, "c": delta.Decimal(5, 2), "b": delta.Boolean} {
		md.Schema.Fields = append(md.Schema.Fields, delta.Field{Name: name, Type: typ, Nullable: true})
	}
	text := func(s string) *string { return &s }
	add := &delta.Add{PartitionValues: map[string]*string{"i": text("10"), "d": text("2026-01-02"), "s": text("m"), "f": nil, "c": text("1.50"), "b": text("true")}}
	for condition, want := range map[string]bool{
		"i=10": true, "i!=10": false, "i>9": true, "i<9": false, "i<=10": true, "i>=11": false, "i > -3": true, "d>2026-01-01": true, "d<=2026-01-01": false,
		"s>=m": true, "s<m": false, "f=": true, "f!=": false, "f=1.5": false, "f!=1.5": true, "f<3": false, "i=": false, "i!=": true, "c=1.5": true, "c<1.49": false, "b=true": true, "b>false": true,
	} {
		c, err := ParseCondition(condition)
		if err != nil {
			t.Fatal(err)
		}
		all, err := compileConditions(md, []Condition{c})
		if err != nil {
			t.Fatal(err)
		}
		if got := all.holds(add); got != want {
			t.Errorf("%s: %v", condition, got)
		}
	}
	for _, bad := range []string{"", "day", "=3"} {
		if _, err := ParseCondition(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if _, err := compileConditions(md, []Condition{{"i", "=", "x"}}); err == nil {
		t.Error("a condition of another type was taken")
	}
	for text, want := range map[string]int64{"100": 100, "128mb": 128 << 20, "1 GB": 1 << 30, "2k": 2048, "7b": 7, "x": 0, "-1": 0, "99999999999g": 0} {
		if got := byteSize(text); got != want {
			t.Errorf("%q is %d bytes, not %d", text, got, want)
		}
	}
}

// TestOptimizeTarget fills files up to the target, and rewrites a file later only when it at least doubles.
func TestOptimizeTarget(t *testing.T) {
	_, store := localStore(t)
	w := openSink[string, order](t, Delta("m", Store(store), Compression("uncompressed", 0)))
	rows := func(n int) (out []order) {
		for range n {
			out = append(out, order{ID: strings.Repeat("x", 100), Amount: rand.Float64()})
		}
		return out
	}
	next := int64(0)
	for range 40 {
		land(t, w, next, rows(20)...)
		next += 20
	}
	one := filesOf(t, store)[0].Size
	res := optimize(t, store, OptimizeOptions{TargetSize: 10*one + one/2})
	if res.FilesRemoved != 40 || res.FilesAdded < 4 || res.FilesAdded > 5 {
		t.Errorf("%+v", res)
	}
	moved := res.Rows
	for range 24 { // each with another small file
		land(t, w, next, rows(20)...)
		next += 20
		moved += optimize(t, store, OptimizeOptions{TargetSize: 100 * one}).Rows
	}
	if most := next * 8; moved > most {
		t.Errorf("%d rows were moved for %d, more than %d", moved, next, most)
	}
	if n := len(filesOf(t, store)); n > 10 {
		t.Errorf("%d files are left", n)
	}
}

// TestOptimizeBesideWriters compacts while others append, compact and delete.
func TestOptimizeBesideWriters(t *testing.T) {
	r := readers.Open(t)
	dir, store := localStore(t)
	w := openSink[string, order](t, Delta(dir))
	for i := range int64(6) {
		land(t, w, i, order{ID: fmt.Sprint("a", i)})
	}
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &optimizer{table: table, opts: OptimizeOptions{}.withDefaults()}
	p, err := o.plan(ctx)
	if err != nil || len(p.groups) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	// An append, and behind it delta-rs's deletion of a row in one of the chosen files.
	land(t, w, 6, order{ID: "late"})
	r.Python(t, dir, `
deltalake.DeltaTable(table).delete("id = 'a3'")
`, nil)
	if err := o.rewrite(ctx, p); err != nil {
		t.Fatal(err)
	}
	if o.result.Conflicts != 1 || o.result.Commits != 0 {
		t.Errorf("%+v", o.result)
	}
	res, err := o.run(ctx)
	if err != nil || res.Commits != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	const want = "[a0 a1 a2 a4 a5 late]"
	if got := fmt.Sprint(texts(allRows(t, store), "id")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if n := len(r.DeltaRS(t, dir, readers.Query("select id from t")).Rows); n != 6 {
		t.Errorf("delta-rs finds %d rows", n)
	}
	// The file of the dropped group is gone.
	var data int
	for info, err := range store.List(ctx, "part-", "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(info.Name, ".parquet") {
			data++
		}
	}
	if files := filesOf(t, store); len(files) != 1 {
		t.Errorf("%d live files", len(files))
	}
	if data > 7+1+1 { // ours, delta-rs's rewritten one, the compacted one
		t.Errorf("%d data files lie in the table", data)
	}
}

// TestOptimizeSchemaChange lands nothing that was written for columns that have changed since, and then everything.
func TestOptimizeSchemaChange(t *testing.T) {
	_, store := localStore(t)
	w := openSink[string, order](t, Delta("m", Store(store)))
	for i := range int64(3) {
		land(t, w, i, order{ID: fmt.Sprint("a", i)})
	}
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &optimizer{table: table, opts: OptimizeOptions{}.withDefaults()}
	p, err := o.plan(ctx)
	if err != nil {
		t.Fatal(err)
	}
	openSink[string, grownOrder](t, Delta("m", Store(store)))
	if err := o.rewrite(ctx, p); err != nil || o.result.Conflicts != 1 || o.result.Commits != 0 {
		t.Errorf("%+v, %v", o.result, err)
	}
	if res, err := o.run(ctx); err != nil || res.Commits != 1 || len(allRows(t, store)) != 3 {
		t.Errorf("%+v, %v", res, err)
	}
	for _, r := range allRows(t, store) {
		if v, ok := r["extra"]; !ok || v != nil {
			t.Errorf("a row has %v", r)
		}
	}
}

type grownOrder struct {
	ID     string  `lake:"id"`
	Amount float64 `lake:"amount"`
	Note   *string `lake:"note"`
	Extra  *int64  `lake:"extra"`
}

// TestOptimizeNaN keeps bounds honest when NaN stands in one file only.
func TestOptimizeNaN(t *testing.T) {
	_, store := localStore(t)
	w := openSink[string, order](t, Delta("m", Store(store)))
	land(t, w, 0, order{ID: "a", Amount: 1})
	land(t, w, 1, order{ID: "b", Amount: math.NaN()})
	optimize(t, store, OptimizeOptions{})
	files := filesOf(t, store)
	if len(files) != 1 || strings.Contains(files[0].Stats, `"maxValues":{"id":"b","amount"`) || !strings.Contains(files[0].Stats, `"maxValues":{"id":"b"`) {
		t.Errorf("%d files, %s", len(files), files[0].Stats)
	}
}

// TestOptimizeInterrupted loses and doubles nothing when it is stopped.
func TestOptimizeInterrupted(t *testing.T) {
	_, store := localStore(t)
	w := openSink[string, reading](t, Delta("m", Store(store)))
	landReadings(t, w, 0, 6, 6)
	want := rowTexts(t, store)
	stopped, cancel := context.WithCancel(ctx)
	res, err := optimizeStore(stopped, store, OptimizeOptions{Progress: func(OptimizeResult) { cancel() }})
	if !errors.Is(err, context.Canceled) || res.Commits != 0 {
		t.Errorf("stopped: %+v, %v", res, err)
	}
	if got := rowTexts(t, store); !slices.Equal(got, want) {
		t.Errorf("%d rows after it was stopped, %d before", len(got), len(want))
	}
	if res := optimize(t, store, OptimizeOptions{}); res.Done != 3 || !slices.Equal(rowTexts(t, store), want) {
		t.Errorf("%+v", res)
	}
}

// TestOptimizeDeletionVectors brings only those rows over that their deletion vectors leave, and takes a file away of which they leave none.
func TestOptimizeDeletionVectors(t *testing.T) {
	r := readers.Open(t)
	dir, store := localStore(t)
	w := openSink[string, order](t, Delta(dir, Properties(map[string]string{"delta.enableDeletionVectors": "true"}), PartitionBy("note")))
	note := func(s string) *string { return &s }
	land(t, w, 0, order{ID: "a0", Note: note("x")}, order{ID: "a1", Note: note("x")}, order{ID: "a2", Note: note("x")}, order{ID: "gone", Note: note("y")})
	land(t, w, 4, order{ID: "b0", Note: note("x")})
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range filesOf(t, store) {
		n, _ := f.NumRecords()
		if n != 3 && *f.PartitionValues["note"] != "y" {
			continue
		}
		vectors, _, err := delta.WriteDeletionVectors(ctx, store, []*roaring.Bitmap{roaring.BitmapOf(uint32(n / 2))})
		if err != nil {
			t.Fatal(err)
		}
		with := f
		with.DeletionVector = vectors[0]
		if _, err := table.Commit(ctx, delta.Commit{Remove: []delta.Add{f}, Add: []delta.Add{with}, ReadVersion: table.Head().Version}); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(texts(allRows(t, store), "id")); got != "[a0 a2 b0]" {
		t.Fatalf("before: %s", got)
	}
	res := optimize(t, store, OptimizeOptions{})
	if res.FilesRemoved != 3 || res.FilesAdded != 1 || res.Rows != 3 {
		t.Errorf("%+v", res)
	}
	if got := fmt.Sprint(texts(allRows(t, store), "id")); got != "[a0 a2 b0]" {
		t.Errorf("after: %s", got)
	}
	files := filesOf(t, store)
	if n, _ := files[0].NumRecords(); len(files) != 1 || n != 3 || files[0].DeletionVector != nil {
		t.Errorf("%+v", files)
	}
	if n := r.DuckDB(t, dir, "select count(*) as n from t").Rows[0].Int(t, "n"); n != 3 {
		t.Errorf("DuckDB finds %d rows", n)
	}
}
