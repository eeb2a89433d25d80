package lake

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/avro"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

// The matrix: tables with what this package can write, and tables that all sides have written in turn, each read by delta-rs, by DuckDB
// and by Spark with Delta's own implementation. They must agree with one another and with what was landed on everything that they can
// tell. Spark is slow to start, so that all of it is one test with one session.

// matrixApp is the progress of partition 0 of the test sinks.
const matrixApp = "app/orders-sink/orders@01020300-0000-0000-0000-000000000000/0"

// matrixRow is a row of a partitioned table with comments, tags and a NOT NULL column.
type matrixRow struct {
	N      int64      `lake:"n,notnull,ods.key=true,comment=the row's number"`
	Region *string    `lake:"region,partition"`
	Day    Date       `lake:"day,partition"`
	Name   *string    `lake:"name,ods.pii=true,ods.sensitivity=high,comment=a name: ä, \"quoted\""`
	Price  *big.Rat   `lake:"price,decimal(12,2)"`
	Score  float64    `lake:"score"`
	Seen   time.Time  `lake:"seen"`
	Inner  matrixPart `lake:"part"`
}

type matrixPart struct {
	X int64 `lake:"x"`
}

// matrixRow2 is a later declaration of the same table: a column more, one inside another, and another comment.
type matrixRow2 struct {
	N      int64       `lake:"n,notnull,ods.key=true,comment=the number"`
	Region *string     `lake:"region,partition"`
	Day    Date        `lake:"day,partition"`
	Name   *string     `lake:"name,ods.pii=true,ods.sensitivity=high,comment=a name: ä, \"quoted\""`
	Price  *big.Rat    `lake:"price,decimal(12,2)"`
	Score  float64     `lake:"score"`
	Seen   time.Time   `lake:"seen"`
	Inner  matrixPart2 `lake:"part"`
	Note   *string     `lake:"note,comment=what is new"`
}

type matrixPart2 struct {
	X int64   `lake:"x"`
	Y *string `lake:"y,ods.pii=false"`
}

// matrixStart is the time of row 0: its microseconds are cut in statistics.
var matrixStart = time.UnixMicro(1780000000298999).UTC()

func matrixRegion(n int64) *string {
	return []*string{p("north"), nil, p("süd/west %41 {x}")}[n%3]
}

func matrixName(n int64) *string {
	if n%4 == 0 {
		return nil
	}
	return p(fmt.Sprintf("näme %03d", n))
}

func matrixRows(from, n int64) (out []matrixRow) {
	for i := from; i < from+n; i++ {
		out = append(out, matrixRow{N: i, Region: matrixRegion(i), Day: Date(20000 + i%2), Name: matrixName(i), Price: big.NewRat(i*125, 100), Score: float64(i) / 4,
			Seen: matrixStart.Add(time.Duration(i) * time.Microsecond), Inner: matrixPart{-i}})
	}
	return out
}

func matrixRows2(from, n int64) (out []matrixRow2) {
	for _, r := range matrixRows(from, n) {
		out = append(out, matrixRow2{N: r.N, Region: r.Region, Day: r.Day, Name: r.Name, Price: r.Price, Score: r.Score, Seen: r.Seen,
			Inner: matrixPart2{r.Inner.X, p("deep")}, Note: p("new")})
	}
	return out
}

// matrix is all readers.
type matrix struct {
	clients *readers.Readers
	spark   *readers.Spark // nil: it can't be had
}

// query asks everyone but some. Where dialects differ, the text has {seen N} for the literal of row N's time.
func (m *matrix) query(t *testing.T, dir, sql string, but ...string) map[string][]readers.Row {
	t.Helper()
	literal := func(form string) string {
		out := sql
		for {
			before, rest, ok := strings.Cut(out, "{seen ")
			if !ok {
				return out
			}
			number, rest, _ := strings.Cut(rest, "}")
			var n int64
			if _, err := fmt.Sscan(number, &n); err != nil {
				t.Fatal(err)
			}
			out = before + fmt.Sprintf(form, matrixStart.Add(time.Duration(n)*time.Microsecond).Format("2006-01-02 15:04:05.000000")) + rest
		}
	}
	out := map[string][]readers.Row{"DuckDB": m.clients.DuckDB(t, dir, literal("timestamptz '%s+00'")).Rows}
	if !slices.Contains(but, "delta-rs") {
		out["delta-rs"] = m.clients.DeltaRS(t, dir, readers.Query(literal("timestamp '%sZ'"))).Rows
	}
	if m.spark != nil {
		out["Spark"] = m.spark.Query(t, dir, literal("timestamp '%sZ'"))
	}
	return out
}

// agree checks that all give the same rows, and returns them.
func (m *matrix) agree(t *testing.T, dir, sql string) []readers.Row {
	t.Helper()
	all := m.query(t, dir, sql)
	want := all["delta-rs"]
	for who, rows := range all {
		if len(rows) != len(want) {
			t.Errorf("%s reads %d rows, delta-rs %d", who, len(rows), len(want))
			continue
		}
		for i, row := range rows {
			for column, v := range want[i] {
				if a, b := fmt.Sprint(v), fmt.Sprint(row[column]); a != b && !sameNumber(a, b) {
					t.Errorf("%s: row %d: %s is %v, by delta-rs %v", who, i, column, b, a)
				}
			}
			if len(row) != len(want[i]) {
				t.Errorf("%s: row %d has the columns %v, by delta-rs %v", who, i, slices.Sorted(maps.Keys(row)), slices.Sorted(maps.Keys(want[i])))
			}
		}
	}
	return want
}

// metadata compares what delta-rs, Spark and our own reader say of the table itself.
func (m *matrix) metadata(t *testing.T, dir string, rows int64, next int64) {
	t.Helper()
	info, err := Show(ctx, dir, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if info.Rows != rows {
		t.Errorf("our own reader counts %d rows, want %d", info.Rows, rows)
	}
	var history []string
	for _, c := range info.History {
		history = append(history, fmt.Sprint(c.Version, " ", c.Operation))
	}
	said := map[string]*readers.Table{"delta-rs": m.clients.DeltaRS(t, dir, readers.Txns(matrixApp))}
	if m.spark != nil {
		said["Spark"] = m.spark.Read(t, dir, readers.Txns(matrixApp))
	}
	schema := schemaInLog(t, dir)
	for who, d := range said {
		if d.Version != info.Version || d.Count != rows || int64(d.Files) != info.Files || d.Txn[matrixApp] != next || d.Description != info.Description {
			t.Errorf("%s: version %d, %d rows, %d files, txn %v, description %q; we see version %d, %d rows, %d files, progress %d, description %q",
				who, d.Version, d.Count, d.Files, d.Txn, d.Description, info.Version, rows, info.Files, next, info.Description)
		}
		if d.MinReader != info.MinReaderVersion || d.MinWriter != info.MinWriterVersion {
			t.Errorf("%s: protocol (%d,%d), we see (%d,%d)", who, d.MinReader, d.MinWriter, info.MinReaderVersion, info.MinWriterVersion)
		}
		if info.MinWriterVersion >= 7 && !slices.Equal(d.Features, info.Features) {
			t.Errorf("%s: features %v, we see %v", who, d.Features, info.Features)
		}
		if !slices.Equal(d.PartitionColumns, info.PartitionColumns) && len(d.PartitionColumns)+len(info.PartitionColumns) > 0 {
			t.Errorf("%s: partition columns %v, we see %v", who, d.PartitionColumns, info.PartitionColumns)
		}
		if diff := cmp.Diff(info.Properties, d.Configuration); diff != "" {
			t.Errorf("%s: properties: %s", who, diff)
		}
		var got any
		if err := json.Unmarshal(d.Schema, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(schema, got); diff != "" {
			t.Errorf("%s: schema, with comments and tags: %s", who, diff)
		}
		var theirs []string
		for _, h := range d.History {
			theirs = append(theirs, fmt.Sprint(h["version"], " ", h["operation"]))
		}
		if !slices.Equal(history, theirs) {
			t.Errorf("%s: history %q, we see %q", who, theirs, history)
		}
	}
}

// schemaInLog is the newest schema text of a log.
func schemaInLog(t *testing.T, dir string) (schema any) {
	t.Helper()
	store, err := object.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	for info, err := range store.List(ctx, "_delta_log/", "") {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(info.Name, ".json") {
			continue
		}
		data, err := store.Get(ctx, info.Name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var a struct {
				MetaData *struct{ SchemaString string }
			}
			if json.Unmarshal([]byte(line), &a) == nil && a.MetaData != nil {
				schema = nil
				if err := json.Unmarshal([]byte(a.MetaData.SchemaString), &schema); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return schema
}

// checkRows checks rows 0..n-1 in whatever way they were landed: each value, sums and nulls.
func (m *matrix) checkRows(t *testing.T, dir string, n int64) {
	t.Helper()
	rows := m.agree(t, dir, "select n, region, day, name, price, score, seen, part['x'] as x from t order by n")
	if len(rows) != int(n) {
		t.Fatalf("%d rows, want %d", len(rows), n)
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	for i, row := range rows {
		k := int64(i)
		want := fmt.Sprint(k, text(matrixRegion(k)), time.Unix(86400*(20000+k%2), 0).UTC().Format("2006-01-02"), text(matrixName(k)), big.NewRat(k*125, 100).FloatString(2),
			matrixStart.Add(time.Duration(k)*time.Microsecond).Format("2006-01-02T15:04:05.000000Z"), -k)
		if got := fmt.Sprint(row.Int(t, "n"), row.Text("region"), row.Text("day"), row.Text("name"), row.Text("price"), row.Text("seen"), row.Int(t, "x")); got != want {
			t.Errorf("row %d is %s, want %s", i, got, want)
		}
		if !sameNumber(row.Text("score"), fmt.Sprint(float64(k)/4)) {
			t.Errorf("row %d: score %s", i, row.Text("score"))
		}
	}
	sums := m.agree(t, dir, "select count(*) as n, sum(n) as s, sum(price) as price, sum(score) as score, count(name) as names, count(region) as regions, min(seen) as first, max(seen) as last from t")
	if got, want := sums[0].Text("price"), big.NewRat(125*n*(n-1)/2, 100).FloatString(2); got != want || sums[0].Int(t, "s") != n*(n-1)/2 {
		t.Errorf("sums are %v", sums[0])
	}
}

// checkSkipping asks for what statistics and partition values let readers skip: rows at their edges must be found.
func (m *matrix) checkSkipping(t *testing.T, dir string, n int64) {
	t.Helper()
	wheres := []struct {
		where string
		want  int64
	}{
		{"n = 3", 1}, {"name = 'näme 003'", 1}, {"price = 3.75", 1}, {"score >= 0.5 and score < 1.0", 2}, {"name is null", (n + 3) / 4}, {"part['x'] = -5", 1},
		{"region is null", (n + 1) / 3}, {"region = 'süd/west %41 {x}'", n / 3}, {"day = date '2024-10-05'", n / 2}, {"seen = {seen 5}", 1}, {"seen > {seen 4}", n - 5},
	}
	var parts []string
	for i, c := range wheres {
		parts = append(parts, fmt.Sprintf("select %d as i, count(*) as n from t where %s", i, c.where))
	}
	for i, row := range m.agree(t, dir, strings.Join(parts, " union all ")+" order by i") {
		if got := row.Int(t, "n"); got != wheres[i].want {
			t.Errorf("%s finds %d rows, want %d", wheres[i].where, got, wheres[i].want)
		}
	}
}

func TestReadersAgree(t *testing.T) {
	m := &matrix{clients: readers.Open(t)}
	t.Run("with Spark", func(t *testing.T) {
		m.spark = readers.OpenSpark(t)
		m.run(t)
	})
	if m.spark == nil { // it was skipped, loudly: the others can agree without it
		t.Run("without Spark", m.run)
	}
}

func (m *matrix) run(t *testing.T) {
	t.Run("every Avro type", m.everyAvroType)
	t.Run("partitioned, evolved, checkpointed", m.evolved)
	t.Run("in-commit timestamps, append only", m.features)
	t.Run("others write ours", m.othersWriteOurs)
	t.Run("we write others'", m.weWriteOthers)
	t.Run("current state", m.currentState)
	t.Run("V2 checkpoints", m.checkpointsV2)
	t.Run("column mapping", m.columnMapping)
	t.Run("current state, column mapping", m.mappedState)
	t.Run("type widening", m.typeWidening)
	t.Run("emptied and landed anew", m.truncated)
}

func (m *matrix) everyAvroType(t *testing.T) {
	dir, _ := localStore(t)
	w := openSink[[]byte, []byte](t, Delta(dir, AvroValue(everyAvroType, nil)))
	schema := avro.MustParse(everyAvroType)
	b := w.NewBatch()
	defer b.Release()
	for i, v := range everyAvroRows() {
		data, err := schema.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Append(nil, &data, meta(int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 2)}); err != nil {
		t.Fatal(err)
	}
	m.agree(t, dir, "select * from t order by n")
	m.metadata(t, dir, 2, 2)
}

func (m *matrix) evolved(t *testing.T) {
	dir, _ := localStore(t)
	opts := []Option{Comment("all orders"), Properties(map[string]string{"delta.checkpointInterval": "2", "ods.owner": "team"})}
	first, err := tryOpen[string, matrixRow](Delta(dir, opts...), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	land(t, first, 0, matrixRows(0, 5)...)
	land(t, first, 5, matrixRows(5, 3)...)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := tryOpen[string, matrixRow2](Delta(dir, opts...), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	land(t, second, 8, matrixRows2(8, 4)...)
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	m.checkRows(t, dir, 12)
	m.checkSkipping(t, dir, 12)
	m.metadata(t, dir, 12, 12)
	late := m.agree(t, dir, "select count(note) as notes, count(part['y']) as deep from t")
	if late[0].Int(t, "notes") != 4 || late[0].Int(t, "deep") != 4 {
		t.Errorf("of the columns that came later there are %v", late[0])
	}
}

func (m *matrix) features(t *testing.T) {
	dir, _ := localStore(t)
	w := openSink[string, matrixRow](t, Delta(dir, Properties(map[string]string{"delta.enableInCommitTimestamps": "true", "delta.appendOnly": "true"})))
	land(t, w, 0, matrixRows(0, 6)...)
	land(t, w, 6, matrixRows(6, 3)...)
	m.checkRows(t, dir, 9)
	m.metadata(t, dir, 9, 9)
}

// othersWriteOurs lets delta-rs and Spark append to, compact and checkpoint our table between our batches, and during one.
func (m *matrix) othersWriteOurs(t *testing.T) {
	dir, _ := localStore(t)
	w := openSink[string, matrixRow](t, Delta(dir, Properties(map[string]string{"delta.checkpointInterval": "3"})))
	land(t, w, 0, matrixRows(0, 5)...)
	open := func(from int64, rows ...matrixRow) sink.Batch {
		b := w.NewBatch()
		for i := range rows {
			if err := b.Append(nil, &rows[i], meta(from+int64(i))); err != nil {
				t.Fatal(err)
			}
		}
		return b
	}
	commit := func(b sink.Batch, from, to int64) {
		t.Helper()
		defer b.Release()
		if _, err := w.Commit(ctx, b, []sink.Move{move(0, from, to)}); err != nil {
			t.Fatal(err)
		}
	}
	b := open(5, matrixRows(5, 4)...)
	m.clients.Python(t, dir, `
d = deltalake.DeltaTable(table)
rows = deltalake.QueryBuilder().register("t", d).execute("""select cast(9 as bigint) as n, region, date '2024-10-05' as day, 'näme 009' as name,
    cast(11.25 as decimal(12,2)) as price, cast(2.25 as double) as score, seen + interval '9 microseconds' as seen,
    named_struct('x', cast(-9 as bigint)) as part from t where n = 0""")
deltalake.write_deltalake(d, pa.table(rows), mode="append")
d = deltalake.DeltaTable(table)
d.optimize.compact()
d.create_checkpoint()
`, nil)
	commit(b, 5, 9)
	m.agree(t, dir, "select * from t order by n")
	next, n := int64(9), int64(10)
	if m.spark != nil {
		b = open(9, matrixRows(11, 2)...)
		m.spark.Python(t, dir, `
one = spark.sql("""SELECT 10L AS n, 'x' AS region, DATE'2024-10-04' AS day, 'näme 010' AS name, CAST(12.50 AS DECIMAL(12,2)) AS price, 2.5D AS score,
    TIMESTAMP_MICROS(1780000000298999 + 10) AS seen, NAMED_STRUCT('x', -10L) AS part""").withColumn("region", __import__("pyspark").sql.functions.lit(None).cast("string"))
one.write.format("delta").mode("append").save(table)
spark.sql("OPTIMIZE delta.`+"`%s`"+`" % table)
log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table)
log.checkpoint()
spark.sql("COMMENT ON TABLE delta.`+"`%s`"+` IS 'by Spark'" % table)
`, nil)
		commit(b, 9, 11)
		next, n = 11, 13
	}
	// A sink that starts anew reads the same progress from what they left, and its own checkpoint covers theirs.
	if err := w.(*writer).table.Maintain(ctx); err != nil {
		t.Fatal(err)
	}
	again := openSink[string, matrixRow](t, Delta(dir))
	got, err := again.Progress(ctx, []sink.Partition{part(0)})
	if err != nil || got[part(0)] != next {
		t.Fatalf("progress after all that: %v, %v", got, err)
	}
	land(t, again, next, matrixRows(n, 3)...)
	m.checkRows(t, dir, n+3)
	m.checkSkipping(t, dir, n+3)
	m.metadata(t, dir, n+3, next+3)
}

// weWriteOthers lands in tables that delta-rs and Spark have made, and lets them go on.
func (m *matrix) weWriteOthers(t *testing.T) {
	type row struct {
		N    int64   `json:"n"`
		Name *string `json:"name"`
	}
	makers := map[string]func(dir string){"delta-rs": func(dir string) {
		m.clients.Python(t, dir, `
rows = pa.table({"n": pa.array([0, 1], pa.int64()), "name": ["theirs", None]})
deltalake.write_deltalake(table, rows, partition_by=["name"], configuration={"delta.checkpointInterval": "3"})
`, nil)
	}}
	more := map[string]func(dir string){"delta-rs": func(dir string) {
		m.clients.Python(t, dir, `
deltalake.write_deltalake(table, pa.table({"n": pa.array([90], pa.int64()), "name": ["more"]}), mode="append")
deltalake.DeltaTable(table).optimize.compact()
`, nil)
	}}
	if m.spark != nil {
		makers["Spark"] = func(dir string) {
			m.spark.Python(t, dir, "spark.sql(\"CREATE TABLE delta.`%s` (n BIGINT COMMENT 'theirs', name STRING) USING delta PARTITIONED BY (name) TBLPROPERTIES ('delta.checkpointInterval'='3', 'delta.enableDeletionVectors'='false')\" % table)\n"+
				"spark.sql(\"INSERT INTO delta.`%s` VALUES (0, 'theirs'), (1, NULL)\" % table)", nil)
		}
		more["Spark"] = func(dir string) {
			m.spark.Python(t, dir, "spark.sql(\"INSERT INTO delta.`%s` VALUES (90, 'more')\" % table)\nspark.sql(\"OPTIMIZE delta.`%s`\" % table)\nspark.sql(\"DELETE FROM delta.`%s` WHERE n = 1\" % table)\n"+
				"spark.sql(\"INSERT INTO delta.`%s` VALUES (1, NULL)\" % table)", nil)
		}
	}
	for who, make := range makers {
		dir := t.TempDir() + "/made by " + who
		make(dir)
		w := openSink[string, row](t, Delta(dir, PartitionBy("name")))
		for i := range int64(4) { // past the checkpoint interval
			land(t, w, i, row{N: 10 + i, Name: p(fmt.Sprint("ours", i%2))})
		}
		more[who](dir)
		land(t, w, 4, row{N: 14})
		rows := m.agree(t, dir, "select n, name from t order by n")
		var got []string
		for _, r := range rows {
			got = append(got, fmt.Sprint(r.Int(t, "n"), r.Text("name")))
		}
		if want := "[0theirs 1 10ours0 11ours1 12ours0 13ours1 14 90more]"; fmt.Sprint(got) != want {
			t.Errorf("made by %s: %v, want %s", who, got, want)
		}
		m.metadata(t, dir, 8, 5)
	}
}
