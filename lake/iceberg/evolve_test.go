package iceberg_test

import (
	"fmt"
	"testing"

	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/icebergreaders"
)

const schemaV1 = `{"type": "record", "name": "o", "doc": "orders", "fields": [
	{"name": "id", "type": "string", "doc": "the key", "ods.pii": false},
	{"name": "where", "type": {"type": "record", "name": "w", "fields": [{"name": "city", "type": "string", "ods.pii": true}]}}]}`

const schemaV2 = `{"type": "record", "name": "o", "doc": "all orders", "fields": [
	{"name": "id", "type": "string", "doc": "the order's key", "ods.pii": true},
	{"name": "where", "type": {"type": "record", "name": "w", "fields": [{"name": "city", "type": "string", "ods.pii": true}, {"name": "zip", "type": ["null", "string"]}]}},
	{"name": "note", "type": ["null", "string"], "doc": "free text"}]}`

func TestColumnsCommentsAndTagsEvolve(t *testing.T) {
	type w1 struct {
		City string `lake:"city"`
	}
	type o1 struct {
		ID    string `lake:"id"`
		Where w1     `lake:"where"`
	}
	type w2 struct {
		City string  `lake:"city"`
		Zip  *string `lake:"zip"`
	}
	type o2 struct {
		ID    string  `lake:"id"`
		Where w2      `lake:"where"`
		Note  *string `lake:"note"`
	}
	p := newPlace(t)
	first := openSink[string, o1](t, iceberg.Table("db.t", p.catalog(), iceberg.AvroSchema(schemaV1), iceberg.SchemaVersion(1)))
	landRows(t, first, 0, o1{"a", w1{"Rome"}})
	note, zip := "hello", "1000"
	second := openSink[string, o2](t, iceberg.Table("db.t", p.catalog(), iceberg.AvroSchema(schemaV2), iceberg.SchemaVersion(2)))
	landRows(t, second, 1, o2{"b", w2{"Bern", &zip}, &note})
	landRows(t, first, 2, o1{"c", w1{"Oslo"}}) // an old instance goes on
	tbl := icebergreaders.Open(t).Table(t, p.readers(), "db.t")
	want := "[map[id:a note:<nil> where:map[city:Rome zip:<nil>]] map[id:b note:hello where:map[city:Bern zip:1000]] map[id:c note:<nil> where:map[city:Oslo zip:<nil>]]]"
	if got := fmt.Sprint(tbl.DuckDB("select * from t order by id")); got != want {
		t.Errorf("DuckDB reads %s,\nwant %s", got, want)
	}
	info := tbl.Info()
	if got := fmt.Sprint(info.Columns[0].Doc, "|", info.Columns[2].Doc, "|", info.Properties["comment"]); got != "the order's key|free text|all orders" {
		t.Errorf("comments are %s", got)
	}
	if got := info.Properties["tributary.tag.id.ods.pii"] + info.Properties["tributary.tag.where.city.ods.pii"]; got != "truetrue" {
		t.Errorf("tags are %v", info.Properties)
	}
	// Another start of the old instance changes nothing, and of the new one neither.
	openSink[string, o1](t, iceberg.Table("db.t", p.catalog(), iceberg.AvroSchema(schemaV1), iceberg.SchemaVersion(1)))
	openSink[string, o2](t, iceberg.Table("db.t", p.catalog(), iceberg.AvroSchema(schemaV2), iceberg.SchemaVersion(2)))
	if after := tbl.Info(); after.Metadata != info.Metadata {
		t.Errorf("equal declarations made a commit: %s, then %s", info.Metadata, after.Metadata)
	}
}

func TestChangesThatCannotBeMadeAreRefused(t *testing.T) {
	type is struct {
		A int64 `lake:"a"`
	}
	p := newPlace(t)
	landRows(t, openSink[string, is](t, iceberg.Table("db.t", p.catalog())), 0, is{1})
	type text struct {
		A string `lake:"a"`
	}
	_, err := tryOpen[string, text](iceberg.Table("db.t", p.catalog()))
	wantRefused(t, err, "column a", "long", "string")
	type upper struct {
		A int64 `lake:"A"`
	}
	_, err = tryOpen[string, upper](iceberg.Table("db.t", p.catalog()))
	wantRefused(t, err, "case")
	type nested struct {
		A struct{ B int64 } `lake:"a"`
	}
	_, err = tryOpen[string, nested](iceberg.Table("db.t", p.catalog()))
	wantRefused(t, err, "column a")
	// Numbers that grow are fine in both directions.
	type small struct {
		A int32 `lake:"a"`
		F *float32
	}
	landRows(t, openSink[string, small](t, iceberg.Table("db.t", p.catalog())), 1, small{A: 2})
	type wide struct {
		A int64 `lake:"a"`
		F *float64
	}
	f := 0.5
	landRows(t, openSink[string, wide](t, iceberg.Table("db.t", p.catalog())), 2, wide{3, &f})
	tbl := icebergreaders.Open(t).Table(t, p.readers(), "db.t")
	for name, rows := range map[string][]icebergreaders.Row{"PyIceberg": tbl.Rows("a >= 2 and a < 100"), "DuckDB": tbl.DuckDB("select * from t where a >= 2")} {
		if len(rows) != 2 {
			t.Errorf("%s finds %v", name, rows)
		}
	}
}
