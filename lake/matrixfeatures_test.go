package lake

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

// statements has Spark run SQL in which the table is named {t}.
func (m *matrix) statements(t *testing.T, dir string, all ...string) {
	t.Helper()
	var program strings.Builder
	for _, sql := range all {
		fmt.Fprintf(&program, "spark.sql(%q.replace('{t}', 'delta.`%%s`' %% table))\n", sql)
	}
	m.spark.Python(t, dir, program.String(), nil)
}

// checkpointsV2 has all sides read a table by a V2 checkpoint with a sidecar alone: the log entries before it are gone.
func (m *matrix) checkpointsV2(t *testing.T) {
	dir, store := localStore(t)
	w, err := tryOpen[string, matrixRow](Delta(dir, Properties(map[string]string{"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "4"})), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(4) {
		land(t, w, 3*i, matrixRows(3*i, 3)...)
	}
	if err := w.Close(); err != nil { // waits for the checkpoint
		t.Fatal(err)
	}
	forgetLog(t, store, 4)
	again := openSink[string, matrixRow](t, Delta(dir))
	land(t, again, 12, matrixRows(12, 3)...)
	m.checkRows(t, dir, 15)
	m.checkSkipping(t, dir, 15)
	said := map[string]*readers.Table{"delta-rs": m.clients.DeltaRS(t, dir, readers.Txns(matrixApp))}
	if m.spark != nil {
		said["Spark"] = m.spark.Read(t, dir, readers.Txns(matrixApp))
	}
	for who, d := range said {
		if d.Version != 5 || d.Count != 15 || d.Txn[matrixApp] != 15 || !slices.Contains(d.Features, "v2Checkpoint") || d.Configuration["delta.checkpointPolicy"] != "v2" {
			t.Errorf("%s: version %d, %d rows, txn %v, features %v, properties %v", who, d.Version, d.Count, d.Txn, d.Features, d.Configuration)
		}
	}
	if m.spark == nil {
		return
	}
	m.statements(t, dir, "DELETE FROM {t} WHERE n = 14", "INSERT INTO {t} BY NAME SELECT n + 1 AS n, * EXCEPT (n) FROM {t} WHERE n = 13")
	m.spark.Python(t, dir, "spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table).checkpoint()", nil)
	land(t, again, 15, matrixRows(15, 3)...)
	if rows := m.agree(t, dir, "select n from t order by n"); len(rows) != 18 || len(allRows(t, store)) != 18 {
		t.Errorf("%d rows behind a checkpoint of Spark's, and we find %d", len(rows), len(allRows(t, store)))
	}
}

// forgetLog deletes the log entries below a version that has a V2 checkpoint, as a clean-up does.
func forgetLog(t *testing.T, store object.Store, version int) {
	t.Helper()
	var sidecars, checkpoints int
	var old []string
	for info, err := range store.List(ctx, "_delta_log/", "") {
		if err != nil {
			t.Fatal(err)
		}
		var v int
		name := strings.TrimPrefix(info.Name, "_delta_log/")
		switch {
		case strings.HasPrefix(name, "_sidecars/"):
			sidecars++
		case strings.HasPrefix(name, fmt.Sprintf("%020d.checkpoint.", version)):
			checkpoints++
		}
		if _, err := fmt.Sscanf(name, "%d.json", &v); err == nil && v < version {
			old = append(old, info.Name)
		}
	}
	if sidecars == 0 || checkpoints != 1 || len(old) != version {
		t.Fatalf("%d sidecars, %d checkpoints of version %d, %d older entries", sidecars, checkpoints, version, len(old))
	}
	for _, name := range old {
		if err := store.Delete(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
}

// columnMapping has Spark turn column mapping on while a batch is on its way, rename, drop and add columns, and write rows; we go on under the new names.
func (m *matrix) columnMapping(t *testing.T) {
	if m.spark == nil {
		t.Skip("SKIPPED: nobody but Spark turns column mapping on")
	}
	type before struct {
		N     int64   `lake:"n"`
		Name  *string `lake:"name"`
		Gone  string  `lake:"gone"`
		Inner struct {
			X int64 `lake:"x"`
		} `lake:"part"`
	}
	type after struct {
		N     int64   `lake:"n"`
		Title *string `lake:"title"`
		Inner struct {
			X int64 `lake:"x"`
			Y int64 `lake:"y"`
		} `lake:"part"`
		Extra *int64 `lake:"extra"`
	}
	dir, store := localStore(t)
	w := openSink[string, before](t, Delta(dir))
	land(t, w, 0, before{N: 0, Name: p("zero")}, before{N: 1})
	b := w.NewBatch()
	defer b.Release()
	if err := b.Append(nil, &before{N: 2, Name: p("two")}, meta(2)); err != nil {
		t.Fatal(err)
	}
	if err := b.(*batch).encode(ctx); err != nil {
		t.Fatal(err)
	}
	m.statements(t, dir, "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')")
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, 2, 3)}); err != nil {
		t.Fatal(err)
	}
	m.statements(t, dir, "ALTER TABLE {t} RENAME COLUMN name TO title", "ALTER TABLE {t} DROP COLUMN gone", "ALTER TABLE {t} ADD COLUMN note STRING",
		"INSERT INTO {t} (n, title, part, note) VALUES (3, 'three', NAMED_STRUCT('x', 7L), 'theirs')")
	w2 := openSink[string, after](t, Delta(dir))
	five := int64(5)
	land(t, w2, 3, after{N: 4, Title: p("four")}, after{N: 5, Extra: &five})
	m.statements(t, dir, "UPDATE {t} SET title = 'one', extra = 1 WHERE n = 1")
	land(t, w2, 5, after{N: 6, Title: p("six")})
	check := func(when string) {
		t.Helper()
		rows := m.agree(t, dir, "select n, title, part['x'] as x, note, extra from t order by n")
		var got []string
		for _, r := range rows {
			got = append(got, fmt.Sprint(r.Int(t, "n"), r.Text("title"), r.Text("note"), r.Text("extra")))
		}
		if want := "[0zero 1one1 2two 3threetheirs 4four 55 6six]"; fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", when, got, want)
		}
		m.metadata(t, dir, 7, 6)
	}
	check("after all have written")
	optimize(t, store, OptimizeOptions{})
	check("after our compaction")
}

// mappedState is columnMapping for a table of current state.
func (m *matrix) mappedState(t *testing.T) {
	if m.spark == nil {
		t.Skip("SKIPPED: nobody but Spark turns column mapping on")
	}
	type before struct {
		ID int64  `lake:"id"`
		V  string `lake:"v"`
		O  int64  `lake:"o"`
	}
	type after struct {
		ID int64   `lake:"id"`
		W  *string `lake:"w"`
		O  int64   `lake:"o"`
	}
	dir, _ := localStore(t)
	opts := []Option{CurrentState("id"), OrderBy("o"), DeletionVectors()}
	w := openSink[string, before](t, Delta(dir, opts...))
	var all []before
	for i := range int64(8) {
		all = append(all, before{i, fmt.Sprint("v", i), 10})
	}
	land(t, w, 0, all...)
	m.statements(t, dir, "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
	land(t, w, 8, before{0, "new", 11}, before{1, "late", 9})
	m.statements(t, dir, "ALTER TABLE {t} RENAME COLUMN v TO w")
	w2 := openSink[string, after](t, Delta(dir, opts...))
	land(t, w2, 10, after{2, p("new"), 12}, after{3, p("late"), 9})
	m.statements(t, dir, "DELETE FROM {t} WHERE id = 4", "OPTIMIZE {t}")
	land(t, w2, 12, after{5, p("new"), 13}, after{6, nil, 13}, after{7, p("late"), 1})
	m.statements(t, dir, "DELETE FROM {t} WHERE id = 7")
	rows := m.agree(t, dir, "select id, w, o from t order by id")
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprint(r.Int(t, "id"), r.Text("w"), "@", r.Text("o")))
	}
	if want := "[0new@11 1v1@10 2new@12 3v3@10 5new@13 6@13]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	m.metadata(t, dir, 6, 15)
}

// typeWidening has Spark widen columns of our table: a sink that declares the old types goes on beside one that declares the new ones.
func (m *matrix) typeWidening(t *testing.T) {
	if m.spark == nil {
		t.Skip("SKIPPED: nobody but Spark widens columns")
	}
	type before struct {
		ID  int32   `lake:"id"`
		Lat float32 `lake:"lat"`
	}
	type after struct {
		ID  int64   `lake:"id"`
		Lat float64 `lake:"lat"`
	}
	dir, store := localStore(t)
	w := openSink[string, before](t, Delta(dir))
	land(t, w, 0, before{1, 0.5}, before{2, 1.5})
	m.statements(t, dir, "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')", "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT", "ALTER TABLE {t} ALTER COLUMN lat TYPE DOUBLE")
	land(t, w, 2, before{3, 2.5})
	m.statements(t, dir, "INSERT INTO {t} VALUES (5000000000, 3.25)")
	w2 := openSink[string, after](t, Delta(dir))
	land(t, w2, 3, after{6_000_000_000, 0.1})
	check := func(when string) {
		t.Helper()
		const want = "[1 0.5 2 1.5 3 2.5 5000000000 3.25 6000000000 0.1]"
		for who, rows := range m.query(t, dir, "select id, lat from t where id > 0 and lat < 1000 order by id", "delta-rs") { // delta-rs 1.6 refuses the feature
			var got []string
			for _, r := range rows {
				got = append(got, r.Text("id"), r.Text("lat"))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%s: %s reads %v, want %s", when, who, got, want)
			}
		}
		if n := len(allRows(t, store)); n != 5 {
			t.Errorf("%s: we find %d rows", when, n)
		}
	}
	check("after all have written")
	optimize(t, store, OptimizeOptions{})
	check("after our compaction")
}
