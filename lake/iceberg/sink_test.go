package iceberg_test

import (
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/icebergreaders"
	"github.com/tributary-io/tributary/lake/sink"
)

// everything has a column of each kind.
type everything struct {
	Flag    bool           `lake:"flag"`
	I8      int8           `lake:"i8"`
	I16     int16          `lake:"i16"`
	I32     int32          `lake:"i32"`
	I64     int64          `lake:"i64"`
	F32     float32        `lake:"f32"`
	F64     float64        `lake:"f64"`
	Text    string         `lake:"text"`
	Raw     []byte         `lake:"raw"`
	Day     lake.Date      `lake:"day"`
	Moment  time.Time      `lake:"moment"`
	Price   *big.Rat       `lake:"price,decimal(12,3)"`
	Tags    []string       `lake:"tags"`
	Small   []int8         `lake:"small"`
	Attrs   map[string]int `lake:"attrs"`
	Inner   *inner         `lake:"inner"`
	Missing *int64         `lake:"missing"`
}

type inner struct {
	A int16             `lake:"a"`
	B []map[string]bool `lake:"b"`
}

func TestEveryTypeIsReadByOthers(t *testing.T) {
	p := newPlace(t)
	w := openSink[string, everything](t, iceberg.Table("db.all", p.catalog(), iceberg.KeyColumn("k"), iceberg.SourceColumns(), iceberg.Comment("of everything")))
	at := time.Date(1969, 7, 20, 20, 17, 40, 123456000, time.UTC)
	row := everything{true, -8, -16, -32, -64, 1.5, 2.25, "grüße", []byte{0, 255}, lake.Date(-165), at, big.NewRat(-1234567, 1000),
		[]string{"a", ""}, []int8{-1, 2}, map[string]int{"x": 1}, &inner{7, []map[string]bool{{"y": true}}}, nil}
	landRows(t, w, 0, row, everything{Price: big.NewRat(0, 1)})
	tbl := icebergreaders.Open(t).Table(t, p.readers(), "db.all")
	want := map[string]string{"k": "k0", "flag": "true", "i8": "-8", "i16": "-16", "i32": "-32", "i64": "-64", "f32": "1.5", "f64": "2.25", "text": "grüße",
		"raw": "00ff", "day": "1969-07-20", "moment": "1969-07-20T20:17:40.123456Z", "price": "-1234.567", "tags": "[a ]", "small": "[-1 2]",
		"missing": "<nil>", "_kafka_partition": "0", "_kafka_offset": "0", "_kafka_timestamp": "2026-05-28T20:26:40.123000Z"}
	for name, rows := range map[string][]icebergreaders.Row{"PyIceberg": tbl.Rows("i64 = -64"), "DuckDB": tbl.DuckDB(`select * from t where i64 = -64`)} {
		if len(rows) != 1 {
			t.Fatalf("%s: %d rows, want 1", name, len(rows))
		}
		for column, text := range want {
			if got := fmt.Sprint(rows[0][column]); got != text {
				t.Errorf("%s: column %s is %s, want %s", name, column, got, text)
			}
		}
		if got := fmt.Sprint(rows[0]["inner"]); !strings.Contains(got, "a:7") || !strings.Contains(got, "y") {
			t.Errorf("%s: inner is %s", name, got)
		}
	}
	if info := tbl.Info(); info.Properties["comment"] != "of everything" {
		t.Errorf("the table's comment is %q", info.Properties["comment"])
	}
}

// TestPlaceAndColumnsByOptions has a table lie where it is told to, name its columns, and keep a row of a null.
func TestPlaceAndColumnsByOptions(t *testing.T) {
	p, elsewhere := newPlace(t), t.TempDir()
	w := openSink[string, int64](t, iceberg.Table("db.people", p.catalog(), iceberg.Location(elsewhere), iceberg.KeyColumn("country"), iceberg.ValueColumn("people"), iceberg.LandTombstones()))
	b := w.NewBatch()
	defer b.Release()
	people := int64(83)
	for i, key := range []string{"de", "su"} {
		var value any
		if key == "de" {
			value = &people
		}
		if err := b.Append(&key, value, &sink.Meta{Topic: "orders", Offset: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 2)}); err != nil {
		t.Fatal(err)
	}
	rows := icebergreaders.Open(t).Table(t, p.readers(), "db.people").DuckDB(`select country, people from t order by country`)
	if got := fmt.Sprint(rows); got != "[map[country:de people:83] map[country:su people:<nil>]]" {
		t.Errorf("landed %s", got)
	}
	if files, err := filepath.Glob(elsewhere + "/data/*.parquet"); err != nil || len(files) != 1 {
		t.Errorf("where the files should be there are %v, %v", files, err)
	}
}

func TestPartitionsPruneForOthers(t *testing.T) {
	type event struct {
		ID     string    `lake:"id"`
		At     time.Time `lake:"at"`
		Day    lake.Date `lake:"event_date"`
		N      int64     `lake:"n"`
		Seen   time.Time `lake:"seen"`
		Bought lake.Date `lake:"bought"`
	}
	p := newPlace(t)
	w := openSink[string, event](t, iceberg.Table("db.events", p.catalog(),
		iceberg.PartitionBy(iceberg.Identity("event_date"), iceberg.Hour("at"), iceberg.Bucket(4, "id"), iceberg.Truncate(100, "n"), iceberg.Month("seen"), iceberg.Year("bought"))))
	var rows []event
	from := time.Date(2025, 12, 31, 22, 0, 0, 0, time.UTC)
	for i := range 200 {
		at := from.Add(time.Duration(i) * 90 * time.Second)
		rows = append(rows, event{fmt.Sprint("id", i), at, lake.Date(at.Unix() / 86400), int64(i), at, lake.Date(at.Unix() / 86400)})
	}
	c := landRows(t, w, 0, rows...)
	if c.Files < 10 || c.Rows != 200 || c.Bytes == 0 || c.Attempts != 1 || c.Version != 1 {
		t.Errorf("the commit says %+v", c)
	}
	tbl := icebergreaders.Open(t).Table(t, p.readers(), "db.events")
	info := tbl.Info()
	if got := fmt.Sprint(info.Spec); got != "[{event_date identity} {at_hour hour} {id_bucket bucket[4]} {n_trunc truncate[100]} {seen_month month} {bought_year year}]" {
		t.Errorf("the partition spec is %s", got)
	}
	if info.Files != c.Files {
		t.Errorf("%d files, the commit says %d", info.Files, c.Files)
	}
	for filter, want := range map[string]int{"": 200, "id = 'id77'": 1, "event_date = '2026-01-01'": 120, "at < '2025-12-31T23:00:00+00:00'": 40, "n >= 150": 50, "at >= '2026-01-01T00:00:00+00:00' and n < 100": 20} {
		if got := len(tbl.Rows(filter)); got != want {
			t.Errorf("PyIceberg finds %d rows where %q, want %d", got, filter, want)
		}
	}
	if got := icebergreaders.Int(t, tbl.DuckDB(`select count(*) as n from t where event_date = '2026-01-01' and id <> 'id199'`)[0], "n"); got != 119 {
		t.Errorf("DuckDB finds %d rows, want 119", got)
	}
}

// TestLargeBatch splits a partition's rows into further files where one would pass the target size, each with bounds of its own.
func TestLargeBatch(t *testing.T) {
	p := newPlace(t)
	s := iceberg.Table("db.t", p.catalog(), iceberg.Compression("uncompressed", 0), iceberg.PartitionBy(iceberg.Identity("p")),
		iceberg.Properties(map[string]string{"write.target-file-size-bytes": "40000"}))
	iceberg.RowGroups(s, 8<<10)
	w := openSink[string, numbered](t, s)
	small := numbered{P: 7, O: 5000, S: "of another partition"}
	rows := []numbered{small}
	for o := range int64(4000) {
		rows = append(rows, numbered{1, o, fmt.Sprintf("row %08d", o)})
	}
	c := landRows(t, w, 0, rows...)
	files := p.files(t, ".parquet")
	if c.Files < 4 || c.Files != len(files) || c.Version != 1 {
		t.Fatalf("%+v, and %d files", c, len(files))
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Size() > 80_000 {
			t.Errorf("%s has %d bytes, %v", name, info.Size(), err)
		}
	}
	tbl := icebergreaders.Open(t).Table(t, p.readers(), "db.t")
	for filter, want := range map[string]int{"": 4001, "o >= 3990 and p = 1": 10, "S = 'row 00001234'": 1, "p = 7": 1} {
		if got := len(tbl.Rows(filter)); got != want {
			t.Errorf("PyIceberg finds %d rows where %q, want %d", got, filter, want)
		}
	}
	if got := icebergreaders.Int(t, tbl.DuckDB("select count(*) as n from t where o between 10 and 3000")[0], "n"); got != 2991 {
		t.Errorf("DuckDB finds %d rows", got)
	}
}

func TestProgressStandsInTheTable(t *testing.T) {
	p := newPlace(t)
	w := openSink[string, numbered](t, iceberg.Table("db.t", p.catalog()))
	if got := progress(t, w, 0); got != sink.NoOffset {
		t.Errorf("progress of a new table is %d", got)
	}
	land(t, w, 0, 0, 10)
	b := w.NewBatch()
	defer b.Release()
	if err := b.Append(nil, nil, &sink.Meta{}); err != nil { // a tombstone
		t.Fatal(err)
	}
	c, err := w.Commit(ctx, b, []sink.Move{move(0, 10, 11), move(1, sink.NoOffset, 0), move(2, 5, 5),
		{Partition: part(3), From: sink.NoOffset, To: 9, Gap: sink.Gap{From: 0, To: 7, Reason: sink.GapRetention}}})
	if err != nil || c.Files != 0 || c.Version != 2 {
		t.Errorf("a commit of progress alone: %+v, %v", c, err)
	}
	again := openSink[string, numbered](t, iceberg.Table("db.t", p.catalog()))
	for n, want := range []int64{11, 0, sink.NoOffset} {
		if got := progress(t, again, int32(n)); got != want {
			t.Errorf("partition %d: progress %d, want %d", n, got, want)
		}
	}
	info := icebergreaders.Open(t).Table(t, p.readers(), "db.t").Info()
	if got := info.Properties["tributary.progress.app/orders-sink/orders@01020300-0000-0000-0000-000000000000/0"]; got != "11" {
		t.Errorf("the property is %q: %v", got, info.Properties)
	}
	if s := info.Snapshots[1].Summary; s["tributary.sources"] != "orders-0:10-11 orders-1:0-0 orders-2:5-5 orders-3:0-9" || s["tributary.skipped-tombstones"] != "1" || s["tributary.commit-id"] == "" ||
		s["tributary.gaps"] != "orders-3:0-7 (retention)" {
		t.Errorf("the snapshot's summary is %v", s)
	}
}

func TestMistakesAreFoundAtBuild(t *testing.T) {
	p := newPlace(t)
	for want, s := range map[string]sink.Sink{
		"lacks a namespace":             iceberg.Table("t", p.catalog()),
		"no column \"x\"":               iceberg.Table("db.t", p.catalog(), iceberg.PartitionBy(iceberg.Day("x"))),
		"day(p) doesn't work on column": iceberg.Table("db.t", p.catalog(), iceberg.PartitionBy(iceberg.Day("p"))),
		"duplicate partition name":      iceberg.Table("db.t", p.catalog(), iceberg.PartitionBy(iceberg.Bucket(2, "p"), iceberg.Bucket(4, "p"))),
		"Bucket(0, p)":                  iceberg.Table("db.t", p.catalog(), iceberg.PartitionBy(iceberg.Bucket(0, "p"))),
		"codec \"zip\"":                 iceberg.Table("db.t", p.catalog(), iceberg.Compression("zip", 0)),
		"versions start at 1":           iceberg.Table("db.t", p.catalog(), iceberg.SchemaVersion(0)),
	} {
		if err := s.Bind(reflect.TypeFor[string](), reflect.TypeFor[numbered]()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := tryOpen[string, numbered](iceberg.Table("db.t", iceberg.Catalog{})); err == nil {
		t.Error("a sink without a catalog opens")
	}
	if _, err := tryOpen[string, numbered](iceberg.Table("db.t", iceberg.Configured("x", map[string]string{"type": "nosuch"}))); err == nil || !strings.Contains(err.Error(), "imported") {
		t.Errorf("an unknown catalog type: %v", err)
	}
}

func TestBadRowLeavesNoTrace(t *testing.T) {
	p := newPlace(t)
	type priced struct {
		Price *big.Rat `lake:"price,decimal(4,2)"`
	}
	w := openSink[string, priced](t, iceberg.Table("db.t", p.catalog()))
	b := w.NewBatch()
	defer b.Release()
	key := "k"
	for i, rat := range []*big.Rat{big.NewRat(1, 4), big.NewRat(100000, 1), big.NewRat(1, 2)} {
		err := b.Append(&key, &priced{rat}, &sink.Meta{Offset: int64(i)})
		if (err != nil) != (i == 1) {
			t.Errorf("row %d: %v", i, err)
		}
	}
	if c, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 3)}); err != nil || c.Rows != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := b.Append(&key, &priced{big.NewRat(1, 4)}, &sink.Meta{}); err == nil {
		t.Error("a batch that was committed takes a row")
	}
}

func TestShowAndReadRows(t *testing.T) {
	p := newPlace(t)
	w := openSink[string, numbered](t, iceberg.Table("db.t", p.catalog()))
	land(t, w, 0, 0, 5)
	land(t, w, 1, 0, 3)
	info, err := iceberg.Show(ctx, "db.t", p.catalog())
	if err != nil {
		t.Fatal(err)
	}
	if info.Rows != 8 || len(info.Snapshots) != 2 || len(info.Progress) != 2 {
		t.Errorf("%+v", info)
	}
	if got := fmt.Sprint(info.Progress[0]); got != "{app orders-sink orders [1 2 3 0 0 0 0 0 0 0 0 0 0 0 0 0] 0 5}" {
		t.Errorf("progress is %s", got)
	}
	seen := map[string]bool{}
	for row, err := range iceberg.ReadRows(ctx, "db.t", p.catalog()) {
		if err != nil {
			t.Fatal(err)
		}
		seen[fmt.Sprintf("%v %v %v", row["p"], row["o"], row["S"])] = true
	}
	if len(seen) != 8 || !seen["1 2 row 2"] {
		t.Errorf("rows are %v", seen)
	}
	if _, err := iceberg.Show(ctx, "db.none", p.catalog()); err == nil {
		t.Error("a table that isn't there is shown")
	}
}
