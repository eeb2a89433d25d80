package lake

import (
	"fmt"
	"testing"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

const (
	taggedBefore = `{"type":"record","name":"R","doc":"rows","fields":[{"name":"id","type":"long","doc":"its number","pii":false,"unit":"1"},
 {"name":"who","type":["null",{"type":"record","name":"W","fields":[{"name":"name","type":"string","doc":"as given","pii":true}]}],"default":null}]}`
	taggedAfter = `{"type":"record","name":"R","doc":"rows","fields":[{"name":"id","type":"long","unit":"kg"},
 {"name":"who","type":["null",{"type":"record","name":"W","fields":[{"name":"name","type":"string","doc":"as spelled"}]}],"default":null}]}`
)

// landTagged opens a sink of a tagged schema and lands a row.
func landTagged(t *testing.T, place string, schema string, from int64, opts ...Option) sink.Sink {
	t.Helper()
	s := Delta(place, append(opts, AvroValue(schema, nil))...)
	w := openSink[[]byte, []byte](t, s)
	b := w.NewBatch()
	defer b.Release()
	row := []byte{2, 0}
	if err := b.Append(nil, &row, meta(max(from, 0))); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, from, max(from, 0)+1)}); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRewriteMetadata: what a declaration changes is published when a sink opens; what it drops stays until the table is rewritten, and foreign
// keys, columns and properties stay even then. Other readers see the same.
func TestRewriteMetadata(t *testing.T) {
	r := readers.Open(t)
	dir, store := localStore(t)
	landTagged(t, dir, taggedBefore, sink.NoOffset, Published(map[string]string{"ods.owner": "a@example.org", "ods.domain": "shop"}))
	if got := r.DeltaRS(t, dir).Configuration["ods.owner"]; got != "a@example.org" {
		t.Fatalf("delta-rs reads the owner %q", got)
	}
	foreign(t, store)
	s := landTagged(t, dir, taggedAfter, 1, Published(map[string]string{"ods.owner": "b@example.org"}))
	table := r.DeltaRS(t, dir)
	if table.Configuration["ods.owner"] != "b@example.org" || table.Configuration["ods.domain"] != "shop" {
		t.Errorf("after the change delta-rs reads %v", table.Configuration)
	}
	if fmt.Sprint(table.Field("id", "unit"), table.Field("id", "pii"), table.Comment("id")) != "kgfalseits number" {
		t.Errorf("after the change delta-rs reads %s", table.Schema)
	}
	before := table.Version
	looked, err := Rewrite(ctx, s, RewriteOptions{Properties: "ods."})
	want := "[id: comment id: pii who.name: pii] [ods.domain]"
	if err != nil || fmt.Sprint(looked.Tags, " ", looked.Properties) != want || looked.Done {
		t.Fatalf("a dry run says %+v, %v; want %s", looked, err, want)
	}
	if v := r.DeltaRS(t, dir).Version; v != before {
		t.Fatalf("a dry run made version %d", v)
	}
	done, err := Rewrite(ctx, s, RewriteOptions{Properties: "ods.", Execute: true})
	if err != nil || fmt.Sprint(done.Tags, " ", done.Properties) != want || !done.Done || done.Version != before+1 {
		t.Fatalf("rewritten: %+v, %v", done, err)
	}
	table = r.DeltaRS(t, dir)
	if _, ok := table.Configuration["ods.domain"]; ok || table.Configuration["ods.owner"] != "b@example.org" || table.Configuration["theirs"] != "stays" {
		t.Errorf("after the rewrite delta-rs reads %v", table.Configuration)
	}
	if fmt.Sprint(table.Field("id", "unit"), table.Field("id", "pii"), table.Comment("id"), table.Comment("foreign"), table.Count) != "kg<nil>theirs2" {
		t.Errorf("after the rewrite delta-rs reads %d rows and %s", table.Count, table.Schema)
	}
	if again, err := Rewrite(ctx, s, RewriteOptions{Properties: "ods.", Execute: true}); err != nil || len(again.Tags)+len(again.Properties) > 0 || again.Version != done.Version {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	landTagged(t, dir, taggedAfter, 2, Published(map[string]string{"ods.owner": "b@example.org"}))
	if v := r.DeltaRS(t, dir).Version; v != done.Version+1 {
		t.Errorf("equal metadata was published anew: version %d behind %d", v, done.Version)
	}
}

// foreign adds a column and a property as another engine does.
func foreign(t *testing.T, store object.Store) {
	t.Helper()
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = table.Commit(ctx, delta.Commit{Operation: "ADD COLUMNS", Metadata: func(m *delta.Metadata) (*delta.Metadata, error) {
		added := delta.Field{Name: "foreign", Type: delta.Long, Nullable: true}
		added.Metadata = added.Metadata.With("comment", "theirs")
		schema, err := delta.Evolve(m.Schema, &delta.StructType{Fields: append(append([]delta.Field{}, m.Schema.Fields...), added)})
		if err != nil {
			return nil, err
		}
		out := m.WithSchema(schema).Clone()
		if out.Configuration == nil {
			out.Configuration = map[string]string{}
		}
		out.Configuration["theirs"] = "stays"
		return out, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPublishedNames(t *testing.T) {
	s := Delta("x", Published(map[string]string{"delta.appendOnly": "true"}))
	if _, err := tryOpen[string, []byte](s, testEnv()); err == nil {
		t.Error("a property of the protocol was published")
	}
}
