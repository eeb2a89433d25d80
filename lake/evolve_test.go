package lake

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

type itemV1 struct {
	Name string `json:"name"`
}

type orderV1 struct {
	ID    string            `lake:"id,comment=old"`
	Items []itemV1          `json:"items"`
	By    map[string]itemV1 `json:"by"`
}

type itemV2 struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

type orderV2 struct {
	ID    string            `lake:"id,ods.pii=true,comment=new"`
	Items []itemV2          `json:"items"`
	By    map[string]itemV2 `json:"by"`
	Total *float64          `json:"total"`
}

// TestColumnsAreAddedAtAnyDepth opens a table with a newer type: columns appear at the top, in lists and in maps; comments and
// tags change; old rows have nulls; all in one commit of metadata.
func TestColumnsAreAddedAtAnyDepth(t *testing.T) {
	r := readers.Open(t)
	dir, store := localStore(t)
	w := openSink[string, orderV1](t, Delta(dir))
	land(t, w, 0, orderV1{"1", []itemV1{{"a"}}, map[string]itemV1{"k": {"b"}}})
	before := logEntries(t, store)
	w2 := openSink[string, orderV2](t, Delta(dir))
	if n := logEntries(t, store); n != before+1 {
		t.Errorf("%d commits to publish the schema, want 1", n-before)
	}
	openSink[string, orderV2](t, Delta(dir))
	if n := logEntries(t, store); n != before+1 {
		t.Error("opening once more wrote a commit")
	}
	land(t, w2, 1, orderV2{"2", []itemV2{{"c", "mail"}}, map[string]itemV2{"k": {"d", "post"}}, p(5.0)})
	// The old instance goes on: its files lack the new columns.
	land(t, w, 2, orderV1{"3", nil, nil})
	// delta-rs 1.6 can't read old files once a struct inside a map has grown: it is asked for the others.
	d := r.DeltaRS(t, dir, readers.Query("select id, items, total from t order by id"))
	duck := r.DuckDB(t, dir, "select * from t order by id")
	for i := range d.Rows {
		for _, col := range []string{"id", "items", "total"} {
			if diff := cmp.Diff(duck.Rows[i][col], d.Rows[i][col]); diff != "" {
				t.Errorf("row %d: DuckDB and delta-rs disagree: %s", i, diff)
			}
		}
	}
	text, err := json.Marshal(duck.Rows)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"by":[["k",{"email":null,"name":"b"}]],"id":"1","items":[{"email":null,"name":"a"}],"total":null},` +
		`{"by":[["k",{"email":"post","name":"d"}]],"id":"2","items":[{"email":"mail","name":"c"}],"total":5.0},{"by":null,"id":"3","items":null,"total":null}]`
	if string(text) != want {
		t.Errorf("DuckDB reads\n%s, want\n%s", text, want)
	}
	for _, row := range allRows(t, store) {
		if row["id"] != "1" {
			continue
		}
		old := Row{"id": "1", "items": []any{map[string]any{"name": "a", "email": nil}}, "by": map[string]any{"k": map[string]any{"name": "b", "email": nil}}, "total": nil}
		if diff := cmp.Diff(old, row); diff != "" {
			t.Errorf("our own reader: %s", diff)
		}
	}
	if d.Comment("id") != "new" || d.Field("id", "ods.pii") != true {
		t.Errorf("metadata of id: %s", d.Schema)
	}
}

func TestIncompatibleSchemasAreRefused(t *testing.T) {
	store := object.NewMemory("t")
	openSink[string, orderV1](t, Delta("mem", Store(store)))
	type other struct {
		ID int64 `json:"id"`
	}
	_, err := tryOpen[string, other](Delta("mem", Store(store)), testEnv())
	wantRefused(t, err, "id", "string", "long")
	type nestedOther struct {
		Items []struct {
			Name bool `json:"name"`
		} `json:"items"`
	}
	_, err = tryOpen[string, nestedOther](Delta("mem", Store(store)), testEnv())
	wantRefused(t, err, "items.element.name", "string", "boolean")
	type cased struct {
		ID string `json:"Id"`
	}
	_, err = tryOpen[string, cased](Delta("mem", Store(store)), testEnv())
	wantRefused(t, err, "Id", "id")
	_, err = tryOpen[string, orderV1](Delta("mem", Store(store), PartitionBy("id")), testEnv())
	wantRefused(t, err, "partition columns")
	type must struct {
		ID  string `json:"id"`
		New string `lake:"new,notnull"`
	}
	_, err = tryOpen[string, must](Delta("mem", Store(store)), testEnv())
	wantRefused(t, err, "new", "nullable")
}

// TestOldInstancesDontTouchMetadata lets an instance of an older schema version run beside a newer one.
func TestOldInstancesDontTouchMetadata(t *testing.T) {
	store := object.NewMemory("t")
	openSink[string, orderV2](t, Delta("mem", Store(store), SchemaVersion(2)))
	before := logEntries(t, store)
	old := openSink[string, orderV1](t, Delta("mem", Store(store), SchemaVersion(1)))
	land(t, old, 0, orderV1{ID: "1"})
	if n := logEntries(t, store); n != before+1 {
		t.Errorf("the old instance made %d commits, want 1", n-before)
	}
	info, err := showStore(ctx, store, "mem", 0)
	if err != nil || info.Columns[0].Comment != "new" {
		t.Errorf("the comment is %q, %v", info.Columns[0].Comment, err)
	}
	type foreign struct {
		Unknown string `json:"unknown"`
	}
	_, err = tryOpen[string, foreign](Delta("mem", Store(store), SchemaVersion(1)), testEnv())
	wantRefused(t, err, "unknown", "newer schema")
	newer := openSink[string, orderV2](t, Delta("mem", Store(store), SchemaVersion(3)))
	land(t, newer, 1, orderV2{ID: "2"})
	if info, err = showStore(ctx, store, "mem", 0); err != nil || info.Properties[schemaVersionKey] != "3" {
		t.Errorf("%v, %v", info.Properties, err)
	}
}

// foreignMetadata commits a change of metadata as another engine would.
func foreignMetadata(t *testing.T, store object.Store, change func(*delta.Metadata) *delta.Metadata) {
	t.Helper()
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Commit(ctx, delta.Commit{Metadata: func(m *delta.Metadata) (*delta.Metadata, error) { return change(m), nil }}); err != nil {
		t.Fatal(err)
	}
}

// TestForeignMetadataIsMerged lets others change the table between a batch's start and its commit.
func TestForeignMetadataIsMerged(t *testing.T) {
	store := object.NewMemory("t")
	w := openSink[string, orderV1](t, Delta("mem", Store(store)))
	b := w.NewBatch()
	row := orderV1{ID: "1"}
	if err := b.Append(nil, &row, meta(0)); err != nil {
		t.Fatal(err)
	}
	foreignMetadata(t, store, func(m *delta.Metadata) *delta.Metadata {
		s := &delta.StructType{}
		for _, f := range m.Schema.Fields {
			f.Metadata = f.Metadata.With("comment", "theirs").With("x", map[string]any{"a": 1})
			s.Fields = append(s.Fields, f)
		}
		s.Fields = append(s.Fields, delta.Field{Name: "extra", Type: delta.Long, Nullable: true})
		return m.WithSchema(s)
	})
	c, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 1)})
	b.Release()
	if err != nil || c.Version != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	info, err := showStore(ctx, store, "mem", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := ColumnInfo{Name: "id", Type: "string", Nullable: true, Comment: "theirs", Tags: map[string]any{"x": map[string]any{"a": 1.0}}}
	if d := cmp.Diff(want, info.Columns[0]); d != "" {
		t.Error(d)
	}
	if rows := allRows(t, store); len(rows) != 1 || rows[0]["id"] != "1" || rows[0]["extra"] != nil {
		t.Errorf("got %v", rows)
	}

	// A column that was taken away comes back with the rows that need it.
	foreignMetadata(t, store, func(m *delta.Metadata) *delta.Metadata {
		return m.WithSchema(&delta.StructType{Fields: m.Schema.Fields[:1]})
	})
	land(t, w, 1, orderV1{ID: "2", Items: []itemV1{{"n"}}})
	if rows := allRows(t, store); len(rows) != 2 || rows[0]["items"] == nil && rows[1]["items"] == nil {
		t.Errorf("got %v", rows)
	}

	// What no longer fits is refused, and nothing lands.
	foreignMetadata(t, store, func(m *delta.Metadata) *delta.Metadata {
		f := m.Schema.Fields[0]
		f.Type = delta.Long
		return m.WithSchema(&delta.StructType{Fields: append([]delta.Field{f}, m.Schema.Fields[1:]...)})
	})
	b = w.NewBatch()
	defer b.Release()
	if err := b.Append(nil, &row, meta(2)); err != nil {
		t.Fatal(err)
	}
	_, err = w.Commit(ctx, b, []sink.Move{move(0, 2, 3)})
	wantRefused(t, err, "id", "long", "string")
}

func TestUnknownFeaturesAreRefused(t *testing.T) {
	store := object.NewMemory("t")
	schema := `{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}}]}`
	log := `{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["appendOnly","sparkles"]}}
{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"schemaString":"` + schema + `","partitionColumns":[],"configuration":{}}}
`
	if err := store.PutIfAbsent(ctx, fmt.Sprintf("_delta_log/%020d.json", 0), []byte(log)); err != nil {
		t.Fatal(err)
	}
	_, err := tryOpen[string, orderV1](Delta("mem", Store(store)), testEnv())
	wantRefused(t, err, "sparkles")
}

// TestConstraintsOfTheTable lands in a table with NOT NULL columns, append-only, with in-commit timestamps.
func TestConstraintsOfTheTable(t *testing.T) {
	r := readers.Open(t)
	type row struct {
		ID  *string `lake:"id,notnull"`
		Sub struct {
			X *int64 `lake:"x,notnull"`
		} `json:"sub"`
		L []string `lake:"l"`
	}
	dir, store := localStore(t)
	w := openSink[string, row](t, Delta(dir, Properties(map[string]string{"delta.appendOnly": "true", "delta.enableInCommitTimestamps": "true"})))
	good := row{ID: p("a")}
	good.Sub.X = p(int64(1))
	noX := row{ID: p("b")}
	b := w.NewBatch()
	defer b.Release()
	for _, c := range []struct {
		row   *row
		field string
	}{{&good, ""}, {&row{}, "id"}, {&noX, "sub.x"}, {&good, ""}} {
		err := b.Append(nil, c.row, meta(0))
		var re *sink.RowError
		if c.field == "" && err != nil || c.field != "" && (!errors.As(err, &re) || re.Field != c.field) {
			t.Errorf("field %q: %v", c.field, err)
		}
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 4)}); err != nil {
		t.Fatal(err)
	}
	d := r.DeltaRS(t, dir, readers.Query("select id, sub from t"))
	if d.Count != 2 || d.MinReader != 1 || d.MinWriter != 7 || fmt.Sprint(d.Features) != "[appendOnly inCommitTimestamp invariants]" {
		t.Errorf("delta-rs: %d rows, protocol %d/%d, features %v", d.Count, d.MinReader, d.MinWriter, d.Features)
	}
	if n := r.DuckDB(t, dir, "select count(*) c from t where sub.x = 1").Rows[0].Int(t, "c"); n != 2 {
		t.Errorf("DuckDB finds %d rows", n)
	}
	entry, err := store.Get(ctx, fmt.Sprintf("_delta_log/%020d.json", 1))
	if err != nil || !strings.HasPrefix(string(entry), `{"commitInfo":{`) || !strings.Contains(string(entry), `"inCommitTimestamp":`) {
		t.Errorf("%s, %v", entry, err)
	}
}

// TestPartitionColumns lands values that have broken others' paths, and reads them with other readers.
func TestPartitionColumns(t *testing.T) {
	r := readers.Open(t)
	type row struct {
		N   int64   `json:"n"`
		Key *string `lake:"key,partition"`
		Day *Date   `json:"day"`
	}
	dir, store := localStore(t)
	w := openSink[string, row](t, Delta(dir, PartitionBy("day")))
	keys := []*string{nil, p("a/b"), p("a b"), p("a%b"), p("é"), p("x:y"), p("}"), p("new\nline"), p("'\"`"), p(" ")}
	var ascii strings.Builder
	for c := byte(32); c < 127; c++ {
		ascii.WriteByte(c)
	}
	keys = append(keys, p(ascii.String()))
	var rows []row
	for i := range 3 * len(keys) {
		day := Date(20600 + i%2)
		rows = append(rows, row{int64(i), keys[i%len(keys)], &day})
	}
	c := land(t, w, 0, rows...)
	if c.Files != 2*len(keys) || c.Rows != int64(len(rows)) {
		t.Errorf("%+v", c)
	}
	d := r.DeltaRS(t, dir, readers.Query("select n, key, day from t order by n"))
	duck := r.DuckDB(t, dir, "select n, key, day from t order by n")
	for who, got := range map[string][]readers.Row{"delta-rs": d.Rows, "DuckDB": duck.Rows} {
		if len(got) != len(rows) {
			t.Fatalf("%s reads %d rows, want %d", who, len(got), len(rows))
		}
		for i, g := range got {
			var want any
			if rows[i].Key != nil {
				want = *rows[i].Key
			}
			if g["key"] != want || g["day"] != rows[i].Day.String() {
				t.Errorf("%s: row %d is %v, want %v on %v", who, i, g, want, rows[i].Day)
			}
		}
	}
	nulls := 0
	for _, row := range allRows(t, store) {
		if row["key"] == nil {
			nulls++
		}
	}
	if nulls != 3 {
		t.Errorf("our own reader finds %d null keys, want 3", nulls)
	}
	if fmt.Sprint(d.PartitionColumns) != "[key day]" {
		t.Errorf("partition columns are %v", d.PartitionColumns)
	}
}
