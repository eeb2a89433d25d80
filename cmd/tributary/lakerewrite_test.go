package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
)

// TestLakeRewrite drops a tag and a property that a schema has lost from a table that no `land` has made.
func TestLakeRewrite(t *testing.T) {
	dir := t.TempDir()
	place, schema := filepath.Join(dir, "table"), filepath.Join(dir, "orders.avsc")
	const before = `{"type":"record","name":"R","fields":[{"name":"id","type":"long","doc":"its number","pii":true}]}`
	table := lake.Delta(place, lake.AvroValue(before, nil), lake.Published(map[string]string{"shop.owner": "a", "other": "b"}))
	if err := table.Bind(reflect.TypeFor[[]byte](), reflect.TypeFor[[]byte]()); err != nil {
		t.Fatal(err)
	}
	w, err := table.Open(t.Context(), sink.Env{ApplicationID: "a", Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(schema, []byte(strings.Replace(before, `,"pii":true`, "", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"lake", "rewrite", place, "--schema", schema, "--drop-properties", "shop."}
	must(t, []string{"drop id: pii", "drop the property shop.owner", "Nothing was changed"}, args...)
	must(t, []string{"drop id: pii"}, append(args, "--execute")...)
	must(t, []string{"nothing that isn't declared"}, args...)
	info, err := lake.Show(t.Context(), place, 1)
	if err != nil {
		t.Fatal(err)
	}
	if c := info.Columns[0]; len(c.Tags) > 0 || c.Comment != "its number" || info.Properties["other"] != "b" || info.Properties["shop.owner"] != "" {
		t.Errorf("the table has %+v and %v", c, info.Properties)
	}
}
