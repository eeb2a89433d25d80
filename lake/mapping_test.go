package lake

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

// place is a row of the tables that other engines have made, with column mapping or widened columns.
type place struct {
	ID    int32  `lake:"id"`
	Day   string `lake:"day,partition"`
	Where struct {
		Lat  float32 `lake:"lat"`
		City *string `lake:"city"`
	} `lake:"where"`
	Tags []string `lake:"tags"`
}

func somePlace(i int64) place {
	p := place{ID: int32(i), Day: fmt.Sprint("d", i%2), Tags: []string{fmt.Sprint("t", i)}}
	p.Where.Lat = float32(i) / 2
	if i%3 != 0 {
		city := fmt.Sprint("city", i)
		p.Where.City = &city
	}
	return p
}

// foreignTable makes a table as another engine does, with fields whose metadata meta makes from their names, types that wide changes, and a
// protocol with a feature.
func foreignTable(t testing.TB, store object.Store, feature string, configuration map[string]string, meta func(name string) string, wide bool) {
	t.Helper()
	id, lat := "integer", "float"
	if wide {
		id, lat = "long", "double"
	}
	field := func(name, typ string) string {
		return fmt.Sprintf(`{"name":%q,"type":%s,"nullable":true,"metadata":{%s}}`, name, typ, meta(name))
	}
	where := `{"type":"struct","fields":[` + field("lat", `"`+lat+`"`) + "," + field("city", `"string"`) + `]}`
	schema := `{"type":"struct","fields":[` + strings.Join([]string{field("id", `"`+id+`"`), field("day", `"string"`), field("where", where),
		field("tags", `{"type":"array","elementType":"string","containsNull":true}`)}, ",") + `]}`
	firstEntry(t, store, schema, []string{"day"}, configuration, feature)
}

// firstEntry makes a table with a protocol of table features, by its log entry.
func firstEntry(t rapid.TB, store object.Store, schema string, partitions []string, configuration map[string]string, features ...string) {
	t.Helper()
	text := func(v any) []byte {
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	entry := fmt.Sprintf(`{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":%s,"writerFeatures":%[1]s}}
{"metaData":{"id":"0c5c5e5e-0000-4000-8000-000000000001","format":{"provider":"parquet","options":{}},"schemaString":%s,"partitionColumns":%s,"configuration":%s}}
`, text(features), text(schema), text(append([]string{}, partitions...)), text(configuration))
	if err := store.PutIfAbsent(ctx, "_delta_log/00000000000000000000.json", []byte(entry)); err != nil {
		t.Fatal(err)
	}
}

// mappedID gives each field of the foreign table an id and a physical name.
func mappedID(name string) string {
	id := 1 + slices.Index([]string{"id", "day", "where", "lat", "city", "tags"}, name)
	return fmt.Sprintf(`"delta.columnMapping.id":%d,"delta.columnMapping.physicalName":"col-%d-%s"`, id, id, strings.ToUpper(name))
}

// TestColumnMapping appends to tables with column mapping, by name and by id: files, partition values and statistics have the physical names, files
// the ids; we, DuckDB and a compaction find the rows by the names of the schema.
func TestColumnMapping(t *testing.T) {
	r := readers.Open(t)
	for _, mode := range []string{delta.MappingName, delta.MappingID} {
		t.Run(mode, func(t *testing.T) {
			dir, store := localStore(t)
			foreignTable(t, store, "columnMapping", map[string]string{"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "6"}, mappedID, false)
			w := openSink[string, place](t, Delta(dir))
			for i := range int64(4) {
				land(t, w, 3*i, somePlace(3*i), somePlace(3*i+1), somePlace(3*i+2))
			}
			for _, f := range filesOf(t, store) {
				if v := f.PartitionValues["col-2-DAY"]; v == nil || len(f.PartitionValues) != 1 || !strings.Contains(f.Stats, `"col-3-WHERE":{"col-4-LAT":`) || strings.Contains(f.Stats, `"id"`) {
					t.Errorf("a file has partition values %v and statistics %s", f.PartitionValues, f.Stats)
				}
			}
			check := func(when string) {
				t.Helper()
				rows := allRows(t, store)
				if got := fmt.Sprint(texts(rows, "id")); got != "[0 1 10 11 2 3 4 5 6 7 8 9]" {
					t.Errorf("%s: ids %s", when, got)
				}
				for _, row := range rows {
					id := int64(row["id"].(int32))
					where := row["where"].(map[string]any)
					if row["day"] != fmt.Sprint("d", id%2) || where["lat"] != float32(id)/2 || (where["city"] == nil) != (id%3 == 0) || fmt.Sprint(row["tags"]) != fmt.Sprintf("[t%d]", id) {
						t.Errorf("%s: %v", when, row)
					}
				}
				// DuckDB 1.5.5 takes partition values of mapped tables, also of Spark's, for null: it is asked for the rest.
				const q = `select count(*) as n from t where "where".lat >= 1.5 and tags[1] = ('t' || id) and ("where".city is null) = (id % 3 = 0)`
				if n := r.DuckDB(t, dir, q).Rows[0].Int(t, "n"); n != 9 {
					t.Errorf("%s: DuckDB finds %d rows", when, n)
				}
			}
			check("appended")
			if res := optimize(t, store, OptimizeOptions{SortBy: "id"}); res.FilesAdded != 2 {
				t.Errorf("%+v", res)
			}
			check("compacted")
			checkNewColumns(t, r, dir, store)
		})
	}
}

// widerPlace is place with columns that the table doesn't have yet, on all levels.
type widerPlace struct {
	ID    int32  `lake:"id"`
	Day   string `lake:"day,partition"`
	Where struct {
		Lat  float32  `lake:"lat"`
		City *string  `lake:"city"`
		Lon  *float64 `lake:"lon"`
	} `lake:"where"`
	Tags  []string `lake:"tags"`
	Score *int64   `lake:"score"`
	Seen  []struct {
		By string `lake:"by"`
	} `lake:"seen"`
}

// checkNewColumns lands rows with columns that the mapped table of TestColumnMapping, with twelve rows, doesn't have: they get ids and physical names, and are null in the
// rows that are there.
func checkNewColumns(t *testing.T, r *readers.Readers, dir string, store object.Store) {
	t.Helper()
	w := openSink[string, widerPlace](t, Delta(dir))
	for i := range int64(2) {
		row := widerPlace{ID: int32(12 + i), Day: fmt.Sprint("d", i), Tags: []string{fmt.Sprint("t", 12+i)}}
		score, lon := 100+i, float64(i)+0.25
		row.Score, row.Where.Lon = &score, &lon
		row.Seen = append(row.Seen, struct {
			By string `lake:"by"`
		}{"x"})
		land(t, w, 12+i, row)
	}
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	md := table.Head().Metadata
	if got := md.Configuration["delta.columnMapping.maxColumnId"]; got != "10" {
		t.Errorf("maxColumnId is %s, want that of 6 columns and 4 new ones", got)
	}
	score, _ := md.Schema.Field("score")
	if id, ok := score.ColumnID(); !ok || id < 7 || !strings.HasPrefix(md.PhysicalName(score), "col-") {
		t.Errorf("score has id %d and the physical name %s", id, md.PhysicalName(score))
	}
	check := func(when string) {
		t.Helper()
		n := 0
		for _, row := range allRows(t, store) {
			id := int64(row["id"].(int32))
			isNew := id >= 12
			lon := row["where"].(map[string]any)["lon"]
			if isNew != (row["score"] == id+88) || isNew != (lon == float64(id-12)+0.25) || isNew != (row["seen"] != nil) {
				t.Errorf("%s: %v", when, row)
			}
			n++
		}
		if n != 14 {
			t.Errorf("%s: %d rows", when, n)
		}
		// DuckDB is asked for the columns of the topmost level only.
		const q = "select count(*) as n, count(score) as s, cast(sum(score) as bigint) as t from t"
		d := r.DuckDB(t, dir, q).Rows[0]
		if d.Int(t, "n") != 14 || d.Int(t, "s") != 2 || d.Int(t, "t") != 201 {
			t.Errorf("%s: DuckDB finds %v", when, d)
		}
	}
	check("with new columns")
	if res := optimize(t, store, OptimizeOptions{}); res.FilesAdded != 2 {
		t.Errorf("%+v", res)
	}
	check("compacted with new columns")
	if again, err := tryOpen[string, place](Delta(dir), testEnv()); err != nil {
		t.Errorf("a sink without the new columns: %v", err)
	} else if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestColumnMappingRenamed renames a column while a batch is on its way: its files are written anew, or it is refused, but no value lands in another
// column.
func TestColumnMappingRenamed(t *testing.T) {
	_, store := localStore(t)
	config := map[string]string{"delta.columnMapping.mode": delta.MappingName, "delta.columnMapping.maxColumnId": "6"}
	foreignTable(t, store, "columnMapping", config, mappedID, false)
	w := openSink[string, place](t, Delta("m", Store(store)))
	land(t, w, 0, somePlace(1))
	other, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := w.NewBatch()
	row := somePlace(2)
	if err := b.Append(nil, &row, meta(1)); err != nil {
		t.Fatal(err)
	}
	change := func(edit func(fields []delta.Field)) {
		t.Helper()
		_, err := other.Commit(ctx, delta.Commit{Metadata: func(m *delta.Metadata) (*delta.Metadata, error) {
			fields := slices.Clone(m.Schema.Fields)
			edit(fields)
			return m.WithSchema(&delta.StructType{Fields: fields}), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	change(func(f []delta.Field) { f[3].Metadata = f[3].Metadata.With("comment", "of others") }) // the batch's files are written anew
	if err := b.(*batch).encode(ctx); err != nil {
		t.Fatal(err)
	}
	before := b.(*batch).adds[0].Path
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, 1, 2)}); err != nil {
		t.Fatal(err)
	}
	if after := b.(*batch).adds[0].Path; after == before {
		t.Error("the files were not written anew")
	}
	b.Release()
	if got := fmt.Sprint(texts(allRows(t, store), "id")); got != "[1 2]" {
		t.Errorf("ids %s", got)
	}
	b = w.NewBatch()
	defer b.Release()
	if err := b.Append(nil, &row, meta(2)); err != nil {
		t.Fatal(err)
	}
	change(func(f []delta.Field) { f[3].Name = "labels" })
	_, err = w.Commit(ctx, b, []sink.Move{move(0, 2, 3)})
	wantRefused(t, err, "column mapping", "tags")
}

// TestTypeWidening appends to a table whose columns have been widened since the sink was declared: files have the table's types.
func TestTypeWidening(t *testing.T) {
	_, store := localStore(t)
	changes := func(name string) string {
		switch name {
		case "id":
			return `"delta.typeChanges":[{"fromType":"integer","toType":"long"}]`
		case "lat":
			return `"delta.typeChanges":[{"fromType":"float","toType":"double"}]`
		}
		return ""
	}
	foreignTable(t, store, "typeWidening", map[string]string{"delta.enableTypeWidening": "true"}, changes, true)
	w := openSink[string, place](t, Delta("m", Store(store)))
	land(t, w, 0, somePlace(1), somePlace(2), somePlace(4))
	for i := range 2 {
		for _, row := range allRows(t, store) {
			id, isLong := row["id"].(int64)
			if lat, ok := row["where"].(map[string]any)["lat"].(float64); !isLong || !ok || lat != float64(id)/2 {
				t.Errorf("%v", row)
			}
		}
		if i == 0 {
			optimize(t, store, OptimizeOptions{SortBy: "id"})
		}
	}
	if n := len(allRows(t, store)); n != 3 {
		t.Errorf("%d rows", n)
	}
	// Without the mark of a widened column another type is refused, as ever.
	_, plain := localStore(t)
	foreignTable(t, plain, "timestampNtz", nil, func(string) string { return "" }, true)
	_, err := tryOpen[string, place](Delta("m", Store(plain)), testEnv())
	wantRefused(t, err, "id", "long")
}
