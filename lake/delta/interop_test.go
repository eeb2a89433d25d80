package delta

import (
	"encoding/json"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
)

// A table with a column of many types, partitioned by two others, as seen by the readers that we did not write.
var (
	wideSchema = &StructType{Fields: []Field{
		{Name: "id", Type: Long, Metadata: FieldMetadata{}.With("comment", "the row's number").With("ods.key", true)},
		{Name: "name", Type: String, Nullable: true, Metadata: FieldMetadata{}.With("ods.sensitivity", "internal")},
		{Name: "price", Type: Decimal(12, 2), Nullable: true},
		{Name: "score", Type: Double, Nullable: true},
		{Name: "at", Type: Timestamp, Nullable: true},
		{Name: "nested", Nullable: true, Type: &StructType{Fields: []Field{{Name: "x", Type: Integer, Nullable: true}}}},
		{Name: "day", Type: Date, Nullable: true},
		{Name: "region", Type: String, Nullable: true},
	}}
	wideArrow = arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "price", Type: &arrow.Decimal128Type{Precision: 12, Scale: 2}, Nullable: true},
		{Name: "score", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
		{Name: "nested", Type: structOf("x", arrow.PrimitiveTypes.Int32), Nullable: true},
	}, nil)
)

const startMicros = 1_704_164_645_678_901 // 2024-01-02T03:04:05.678901Z

// wideFile writes rows first..first+n-1 as a data file. Each third name is null.
func wideFile(t testing.TB, s object.Store, first, n int64, day int32, region *string) Add {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, wideArrow)
	defer b.Release()
	nulls := int64(0)
	for i := first; i < first+n; i++ {
		b.Field(0).(*array.Int64Builder).Append(i)
		if i%3 == 0 {
			nulls++
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("näme %03d", i))
		}
		b.Field(2).(*array.Decimal128Builder).Append(decimal128.FromI64(i * 125))
		b.Field(3).(*array.Float64Builder).Append(float64(i) / 4)
		b.Field(4).(*array.TimestampBuilder).Append(arrow.Timestamp(startMicros + i))
		inner := b.Field(5).(*array.StructBuilder)
		inner.Append(true)
		inner.FieldBuilder(0).(*array.Int32Builder).Append(int32(-i))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	name := NewDataFileName("zstd")
	w, err := s.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := pqarrow.NewFileWriter(wideArrow, w, parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd)), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Write(batch); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := s.Stat(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	last := first + n - 1
	stats := FileStats{NumRecords: n, Columns: []ColumnStats{
		{Path: []string{"id"}, Min: AppendIntStat(nil, first), Max: AppendIntStat(nil, last)},
		{Path: []string{"name"}, Nulls: nulls, Min: AppendStringMinStat(nil, "n"), Max: AppendStringMaxStat(nil, "näme 999")},
		{Path: []string{"price"}, Min: AppendDecimalStat(nil, big.NewInt(first*125), 2), Max: AppendDecimalStat(nil, big.NewInt(last*125), 2)},
		{Path: []string{"score"}, Min: AppendFloatStat(nil, float64(first)/4, false), Max: AppendFloatStat(nil, float64(last)/4, true)},
		{Path: []string{"at"}, Min: AppendTimestampStat(nil, startMicros+first, true), Max: AppendTimestampStat(nil, startMicros+last, true)},
		{Path: []string{"nested", "x"}, Min: AppendIntStat(nil, -last), Max: AppendIntStat(nil, -first)},
	}}
	return Add{Path: EncodePath(name), Size: info.Size, ModificationTime: info.Modified.UnixMilli(), Stats: string(stats.AppendJSON(nil)),
		PartitionValues: map[string]*string{"day": PartitionDate(day), "region": region}}
}

func wideTable(t testing.TB, config map[string]string) (dir string, table *Table) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "orders of 2026")
	table = mustCreate(t, must(object.NewLocal(dir)), Spec{Schema: wideSchema, PartitionColumns: []string{"day", "region"},
		Name: "orders", Description: "All orders, \"raw\"", Configuration: config}, Options{})
	return dir, table
}

// landWide commits n batches of 10 rows on changing days and regions, with upkeep.
func landWide(t testing.TB, table *Table, n int) {
	t.Helper()
	regions := []*string{ptr("north"), nil, ptr("süd/west %41 {x}")}
	for range n {
		from, ok := table.Head().Txn("app/sink/orders@id/0")
		mustCommit(t, table, Commit{
			Add:   []Add{wideFile(t, table.Store(), from, 10, int32(20000+from/10%4), regions[from/10%3])},
			Moves: []Move{{AppID: "app/sink/orders@id/0", First: !ok, From: from, To: from + 10}},
		})
		if err := table.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// checkWide has both readers compare what they see with what was landed: rows 0..n-1.
func checkWide(t testing.TB, r *readers.Readers, dir string, n int64) *readers.Table {
	t.Helper()
	sql := `select count(*) as n, count(distinct id) as d, sum(id) as s, count(name) as names, sum(price) as price, sum(score) as score,
		min("at") as first, max("at") as last, sum(nested['x']) as x, count(region) as regions, count(distinct day) as days from t`
	want := map[string]string{
		"n": fmt.Sprint(n), "d": fmt.Sprint(n), "s": fmt.Sprint(n * (n - 1) / 2), "names": fmt.Sprint(n - (n+2)/3),
		"price": decimalText(big.NewInt(125*n*(n-1)/2), 2), "first": micros(startMicros), "last": micros(startMicros + n - 1),
		"x": fmt.Sprint(-n * (n - 1) / 2), "days": fmt.Sprint(min(n/10, 4)), "regions": fmt.Sprint(n - (n/10+1)/3*10),
	}
	d := r.DeltaRS(t, dir, readers.Query(sql), readers.Txns("app/sink/orders@id/0", "nobody"))
	duck := r.DuckDB(t, dir, sql)
	for reader, row := range map[string]readers.Row{"delta-rs": d.Rows[0], "DuckDB": duck.Rows[0]} {
		for column, value := range want {
			if got := row.Text(column); got != value {
				t.Errorf("%s: %s is %s, want %s", reader, column, got, value)
			}
		}
	}
	// Skipping by statistics and by partition values must find what is there.
	wheres := []struct {
		where string
		want  int64
	}{
		{"id = 7", 1}, {"name = 'näme 007'", 1}, {"price = 8.75", 1}, {"score >= 2.0 and score < 2.5", 2}, {"name is null and id < 10", 4},
		{"region is null", (n/10 + 1) / 3 * 10}, {"region = 'süd/west %41 {x}'", n / 10 / 3 * 10}, {"day = date '2024-10-04'", (n/10 + 3) / 4 * 10},
		{`"at" = timestamp '2024-01-02 03:04:05.678908Z'`, 1},
	}
	var parts []string
	for i, c := range wheres {
		parts = append(parts, fmt.Sprintf("select %d as i, count(*) as n from t where %s", i, c.where))
	}
	sql = strings.Join(parts, " union all ") + " order by i"
	for reader, rows := range map[string][]readers.Row{
		"DuckDB":   r.DuckDB(t, dir, strings.ReplaceAll(sql, "timestamp '", "timestamptz '")).Rows,
		"delta-rs": r.DeltaRS(t, dir, readers.Query(sql)).Rows,
	} {
		for i, row := range rows {
			if got := row.Int(t, "n"); got != wheres[i].want {
				t.Errorf("%s: %s finds %d rows, want %d", reader, wheres[i].where, got, wheres[i].want)
			}
		}
	}
	if d.Count != n || d.Name != "orders" || d.Description != `All orders, "raw"` || d.Comment("id") != "the row's number" ||
		d.Field("id", "ods.key") != true || d.Field("name", "ods.sensitivity") != "internal" || !slices.Equal(d.PartitionColumns, []string{"day", "region"}) {
		t.Errorf("delta-rs sees: %+v", d)
	}
	var schema StructType
	if parsed, err := ParseSchema(string(d.Schema)); err != nil || !parsed.Equal(wideSchema) {
		t.Errorf("delta-rs sees the schema %s, %v, not %s", d.Schema, err, &schema)
	}
	return d
}

func micros(n int64) string { return time.UnixMicro(n).UTC().Format("2006-01-02T15:04:05.000000Z") }

// TestOthersReadOurTable reads a table in all states of its log: commits only, behind checkpoints, after clean-up.
func TestOthersReadOurTable(t *testing.T) {
	r := readers.Open(t)
	dir, table := wideTable(t, map[string]string{"delta.checkpointInterval": "4", "delta.logRetentionDuration": "interval 1 days", "owner": "team"})
	landWide(t, table, 3)
	d := checkWide(t, r, dir, 30)
	if d.Version != 3 || d.Txn["app/sink/orders@id/0"] != 30 || len(d.Txn) != 1 || d.Configuration["owner"] != "team" || d.MinReader != 1 || d.MinWriter != 2 {
		t.Errorf("delta-rs sees: %+v", d)
	}
	if h := d.History[0]; h["operation"] != "STREAMING UPDATE" || h["engineInfo"] != "Tributary" {
		t.Errorf("history: %v", h)
	}
	landWide(t, table, 6)
	if d := checkWide(t, r, dir, 90); d.Version != 9 || d.Txn["app/sink/orders@id/0"] != 90 {
		t.Errorf("behind a checkpoint: version %d, txn %v", d.Version, d.Txn)
	}
	// Three days later, everything before the newest checkpoint goes.
	later := mustOpen(t, table.Store(), Options{Now: func() time.Time { return time.Now().Add(72 * time.Hour) }})
	landWide(t, later, 3)
	if got := names(t, table.Store(), ".json"); got[0] != "12.json" {
		t.Errorf("commits left: %v", got)
	}
	if d := checkWide(t, r, dir, 120); d.Version != 12 || d.Txn["app/sink/orders@id/0"] != 120 {
		t.Errorf("after clean-up: version %d, txn %v", d.Version, d.Txn)
	}
}

// TestOthersWriteOurTable has delta-rs append to, checkpoint, compact and comment our table between our commits.
func TestOthersWriteOurTable(t *testing.T) {
	r := readers.Open(t)
	dir, table := wideTable(t, map[string]string{"delta.checkpointInterval": "100"})
	landWide(t, table, 4)
	r.Python(t, dir, `
d = deltalake.DeltaTable(table)
rows = deltalake.QueryBuilder().register("t", d).execute("select id + 40 as id, name, price, score, at, nested, day, region from t where id < 10")
rows = pa.table(rows.read_all() if hasattr(rows, "read_all") else rows)
deltalake.write_deltalake(table, rows, mode="append")
deltalake.DeltaTable(table).create_checkpoint()
`, nil)
	files, rows := counts(t, mustSnapshot(t, table))
	if files != 5 || rows != 50 {
		t.Fatalf("after an append by delta-rs: %d files, %d rows", files, rows)
	}
	if h := table.Head(); h.Version != 4 { // the snapshot doesn't move the head
		t.Errorf("head at %d", h.Version)
	}
	l := mustCommit(t, table, Commit{Moves: []Move{move("other", -1, 1)}})
	if l.Version != 6 || l.Attempts != 2 || table.Head().NumFiles != 5 {
		t.Errorf("landed %+v, head %+v", l, table.Head())
	}
	// From delta-rs's checkpoint, without our checksums.
	for _, name := range names(t, table.Store(), ".crc") {
		_ = table.Store().Delete(t.Context(), logDir+strings.Repeat("0", 24-len(name))+name)
	}
	again := mustOpen(t, table.Store(), Options{})
	if h := again.Head(); h.Version != 6 || h.Txns["app/sink/orders@id/0"].Version != 40 || !h.Metadata.Schema.Equal(wideSchema) {
		t.Errorf("from the checkpoint of delta-rs: %+v", h)
	}
	var metrics map[string]any
	r.Python(t, dir, `
out = deltalake.DeltaTable(table).optimize.compact()
deltalake.DeltaTable(table).alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "10"})
`, &metrics)
	if metrics["numFilesRemoved"] == json.Number("0") {
		t.Errorf("nothing was compacted: %v", metrics)
	}
	// Our writer goes on: it is asked about the changed metadata, and lands.
	asked := 0
	l = mustCommit(t, again, Commit{Moves: []Move{move("other", 1, 2)}, Metadata: func(m *Metadata) (*Metadata, error) {
		asked++
		return m, nil
	}})
	if l.MetadataChanged || asked != 2 || again.Head().Metadata.Configuration["delta.dataSkippingNumIndexedCols"] != "10" {
		t.Errorf("landed %+v after %d questions, configuration %v", l, asked, again.Head().Metadata.Configuration)
	}
	if _, rows := counts(t, mustSnapshot(t, again)); rows != 50 {
		t.Errorf("after compaction: %d rows", rows)
	}
	if _, _, err := again.checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := r.DeltaRS(t, dir); d.Count != 50 || d.Version != l.Version {
		t.Errorf("delta-rs sees %d rows at version %d", d.Count, d.Version)
	}
	if n := r.DuckDB(t, dir, "select count(*) as n from t").Rows[0].Int(t, "n"); n != 50 {
		t.Errorf("DuckDB sees %d rows", n)
	}
}
