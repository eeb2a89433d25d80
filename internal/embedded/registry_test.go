package embedded

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
)

func startRegistry(t *testing.T, dir string) (*Registry, *sr.Client) {
	t.Helper()
	r, err := StartRegistry(RegistryConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c, err := sr.NewClient(sr.URLs(r.URL()))
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

func schema(text string) sr.Schema { return sr.Schema{Schema: text} }

func TestSchemasOutliveTheRegistry(t *testing.T) {
	dir := t.TempDir()
	r, c := startRegistry(t, dir)
	ctx := t.Context()
	a, err := c.CreateSchema(ctx, "a-value", schema(`"string"`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.CreateSchema(ctx, "b-value", schema(`"long"`))
	if err != nil {
		t.Fatal(err)
	}
	if res := c.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, "a-value"); res[0].Err != nil {
		t.Fatal(res[0].Err)
	}
	if _, err := c.DeleteSubject(ctx, "b-value", sr.SoftDelete); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}

	r, c = startRegistry(t, dir)
	defer r.Close()
	if got, err := c.SchemaByID(ctx, a.ID); err != nil || got.Schema != `"string"` {
		t.Fatalf("schema %d: got %q, %v", a.ID, got.Schema, err)
	}
	if got := c.Compatibility(ctx, "a-value"); got[0].Level != sr.CompatFull {
		t.Errorf("compatibility: got %v", got[0])
	}
	if subjects, err := c.Subjects(ctx); err != nil || strings.Join(subjects, ",") != "a-value" {
		t.Errorf("subjects: got %v, %v", subjects, err)
	}
	next, err := c.CreateSchema(ctx, "c-value", schema(`"int"`))
	if err != nil || next.ID <= b.ID {
		t.Errorf("the next id is %d (%v), want one after %d", next.ID, err, b.ID)
	}
}

func TestCutJournalLineIsDropped(t *testing.T) {
	dir := t.TempDir()
	r, c := startRegistry(t, dir)
	if _, err := c.CreateSchema(t.Context(), "a-value", schema(`"string"`)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	path := filepath.Join(dir, "registry.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, `{"method":"POST","uri":"/subj`...), 0o644); err != nil {
		t.Fatal(err)
	}
	r, c = startRegistry(t, dir)
	if _, err := c.CreateSchema(t.Context(), "b-value", schema(`"long"`)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	r, c = startRegistry(t, dir)
	defer r.Close()
	if subjects, err := c.Subjects(t.Context()); err != nil || strings.Join(subjects, ",") != "a-value,b-value" {
		t.Fatalf("subjects: got %v, %v", subjects, err)
	}
}

func TestBrokenJournalIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "registry.jsonl"), []byte("nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := StartRegistry(RegistryConfig{Dir: dir}); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Fatalf("got %v, want an error that names the line", err)
	}
	os.WriteFile(filepath.Join(dir, "registry.jsonl"), nil, 0o644)
	r, _ := startRegistry(t, dir) // the lock was released
	r.Close()
}

// Schemas are refused as Confluent's registry refuses them, and a registry that starts again judges by what it kept.
func TestLevelsDecideAboutSchemas(t *testing.T) {
	record := func(fields string) sr.Schema {
		return schema(`{"type":"record","name":"R","fields":[{"name":"id","type":"long"}` + fields + `]}`)
	}
	optional := record(`,{"name":"note","type":["null","string"],"default":null}`)
	required := record(`,{"name":"must","type":"string"}`)
	for _, c := range []struct {
		level    sr.CompatibilityLevel
		versions []sr.Schema // the last one is judged
		refused  bool
	}{
		{sr.CompatBackward, []sr.Schema{record(""), optional}, false},
		{sr.CompatBackward, []sr.Schema{record(""), required}, true},
		{sr.CompatBackward, []sr.Schema{required, record("")}, false},
		{sr.CompatForward, []sr.Schema{record(""), required}, false},
		{sr.CompatForward, []sr.Schema{required, record("")}, true},
		{sr.CompatFull, []sr.Schema{record(""), optional}, false},
		{sr.CompatFull, []sr.Schema{record(""), required}, true},
		{sr.CompatFull, []sr.Schema{required, record("")}, true},
		{sr.CompatBackward, []sr.Schema{required, record(""), required}, true},
		{sr.CompatForward, []sr.Schema{record(""), required, schema(`"string"`)}, true},
		{sr.CompatBackwardTransitive, []sr.Schema{schema(`"int"`), schema(`"long"`), schema(`"int"`)}, true},
		{sr.CompatNone, []sr.Schema{record(""), schema(`"string"`)}, false},
	} {
		dir := t.TempDir()
		r, client := startRegistry(t, dir)
		ctx := t.Context()
		last := len(c.versions) - 1
		for i, s := range c.versions[:last] {
			if _, err := client.CreateSchema(ctx, "a b-value", s); err != nil {
				t.Fatalf("%v version %d: %v", c.level, i+1, err)
			}
			if i == 0 {
				if set := client.SetCompatibility(ctx, sr.SetCompatibility{Level: c.level}, "a b-value"); set[0].Err != nil {
					t.Fatal(set[0].Err)
				}
			}
		}
		r.Close()
		r, client = startRegistry(t, dir)
		_, err := client.CreateSchema(ctx, "a b-value", c.versions[last])
		var re *sr.ResponseError
		if refused := errors.As(err, &re) && re.StatusCode == http.StatusConflict; refused != c.refused || (err != nil) != c.refused {
			t.Errorf("%v, %v: refused is %t, want %t (%v)", c.level, c.versions, refused, c.refused, err)
		}
		r.Close()
	}
}
