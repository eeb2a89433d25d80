package delta

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
)

// TestOthersReadFeatures has the readers open a table at protocol (3,7): local timestamps, in-commit timestamps, NOT NULL and
// appendOnly, evolved by a column at a depth, behind a checkpoint.
func TestOthersReadFeatures(t *testing.T) {
	r := readers.Open(t)
	dir := t.TempDir()
	store := must(object.NewLocal(dir))
	schema := structs(Field{Name: "id", Type: Long}, field("at", TimestampNTZ), field("list", &ArrayType{Element: structs(field("x", Long)), ContainsNull: true}))
	table := mustCreate(t, store, Spec{Schema: schema, Configuration: map[string]string{
		"delta.enableInCommitTimestamps": "true", "delta.appendOnly": "true", "delta.checkpointInterval": "2"}}, Options{})
	element := structOf("x", arrow.PrimitiveTypes.Int64)
	land := func(first int64, element *arrow.StructType) {
		a := featureFile(t, store, first, element)
		from, ok := table.Head().Txn("a")
		mustCommit(t, table, Commit{Add: []Add{a}, Moves: []Move{{AppID: "a", First: !ok, From: from, To: from + 2}}})
		if err := table.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	land(0, element)
	wanted := structs(Field{Name: "id", Type: Long}, field("at", TimestampNTZ),
		field("list", &ArrayType{Element: structs(field("x", Long), Field{Name: "y", Type: String, Nullable: true, Metadata: FieldMetadata{}.With("comment", "deep")}), ContainsNull: true}))
	mustCommit(t, table, Commit{Operation: "ADD COLUMNS", Metadata: func(m *Metadata) (*Metadata, error) {
		s, err := Evolve(m.Schema, wanted)
		return m.WithSchema(s), err
	}})
	land(2, structOf("x", arrow.PrimitiveTypes.Int64, "y", arrow.BinaryTypes.String))
	if got := names(t, store, ".checkpoint"); len(got) == 0 {
		t.Fatal("no checkpoint was made")
	}

	const sql = `select id, "at", list[1]['x'] as x, list[1]['y'] as y from t order by id`
	d := r.DeltaRS(t, dir, readers.Query(sql), readers.Txns("a"))
	if d.MinReader != 3 || d.MinWriter != 7 || len(d.Features) != 4 || d.Txn["a"] != 4 || d.Version != 3 {
		t.Errorf("delta-rs sees (%d,%d) with %v, txn %v, version %d", d.MinReader, d.MinWriter, d.Features, d.Txn, d.Version)
	}
	for reader, rows := range map[string][]readers.Row{"delta-rs": d.Rows, "DuckDB": r.DuckDB(t, dir, sql).Rows} {
		if len(rows) != 4 {
			t.Fatalf("%s sees %d rows", reader, len(rows))
		}
		for i, row := range rows {
			n := int64(i)
			y := ""
			if n >= 2 {
				y = "new"
			}
			if row.Int(t, "id") != n || row.Int(t, "x") != -n || row.Text("y") != y || row.Text("at") != micros(startMicros + n)[:26] {
				t.Errorf("%s: row %d is %v", reader, i, row)
			}
		}
	}
}

// featureFile writes two rows, with a list of one element each.
func featureFile(t *testing.T, s object.Store, first int64, element *arrow.StructType) Add {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond}, Nullable: true},
		{Name: "list", Type: listOf(element), Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := first; i < first+2; i++ {
		b.Field(0).(*array.Int64Builder).Append(i)
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(startMicros + i))
		list := b.Field(2).(*array.ListBuilder)
		list.Append(true)
		inner := list.ValueBuilder().(*array.StructBuilder)
		inner.Append(true)
		inner.FieldBuilder(0).(*array.Int64Builder).Append(-i)
		if inner.NumField() > 1 {
			inner.FieldBuilder(1).(*array.StringBuilder).Append("new")
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	name := NewDataFileName("snappy")
	w, err := s.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := pqarrow.NewFileWriter(schema, w, nil, pqarrow.DefaultWriterProps())
	if err == nil {
		err = file.Write(batch)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Stat(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	stats := FileStats{NumRecords: 2, Columns: []ColumnStats{
		{Path: []string{"id"}, Min: AppendIntStat(nil, first), Max: AppendIntStat(nil, first+1)},
		{Path: []string{"at"}, Min: AppendTimestampStat(nil, startMicros+first, false), Max: AppendTimestampStat(nil, startMicros+first+1, false)},
		{Path: []string{"list"}},
	}}
	return Add{Path: EncodePath(name), Size: info.Size, ModificationTime: info.Modified.UnixMilli(), Stats: string(stats.AppendJSON(nil))}
}
