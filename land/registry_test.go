package land

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/serde"
)

func TestRegistryIsAskedAgain(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		switch {
		case r.URL.Path == "/schemas/ids/404":
			w.WriteHeader(http.StatusNotFound)
			w.Write([]byte(`{"error_code":40403,"message":"Schema not found"}`))
		case r.URL.Path == "/schemas/ids/500" || asked.Add(1) < 3:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.Write([]byte(`{"schema":"\"string\""}`))
		}
	}))
	defer server.Close()
	reg, err := serde.NewRegistry(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	ctx, cancel := context.WithCancel(t.Context())
	out := newOutage(time.Now)
	source := &writers{"t", newLookups(ctx, reg, out)}
	var got lake.WriterSchema
	var notYet *sink.NotYetError
	eventually(t, "answered", func() bool {
		got, err = source.SchemaByID(1)
		if err != nil && (!errors.As(err, &notYet) || len(out.holds()) != 1) {
			t.Errorf("while there is no answer: %v, %v wait", err, out.holds())
		}
		return err == nil
	})
	if got.Schema != `"string"` || len(out.holds()) != 0 {
		t.Errorf("after errors: %v, and %v wait", got, out.holds())
	}
	if _, err := source.SchemaByID(404); !errors.Is(err, lake.ErrUnknownSchema) {
		t.Errorf("an unknown schema: %v", err)
	}
	cancel()
	if _, err := source.SchemaByID(500); !errors.As(err, &notYet) || errors.Is(err, lake.ErrUnknownSchema) {
		t.Errorf("at the end: %v", err)
	}
	source.close()
}

func TestSubjectsGetSchemaAndLevel(t *testing.T) {
	r, err := embedded.StartRegistry(embedded.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	subjects(t, r.URL())
}

// subjects registers, registers again, and is refused what the level forbids.
func subjects(t *testing.T, url string) {
	a, err := newAdmin(url)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for range 2 {
		if v, err := a.register(ctx, "x-value", small, sr.CompatFull); err != nil || v != 1 {
			t.Fatalf("version %d, %v", v, err)
		}
	}
	if got := a.client.Compatibility(ctx, "x-value"); got[0].Err != nil || got[0].Level != sr.CompatFull {
		t.Errorf("level %+v", got)
	}
	if _, err := a.register(ctx, "x-value", `{"type":"record","name":"Small","fields":[{"name":"id","type":"string"}]}`, sr.CompatFull); err == nil {
		t.Error("an incompatible schema was registered")
	}
	schema, version, err := a.latest(ctx, "x-value")
	if err != nil || version != 1 || schema == "" {
		t.Errorf("latest: %q %d %v", schema, version, err)
	}
	if err := a.remove(ctx, "x-value"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.latest(ctx, "x-value"); !isNotFound(err) {
		t.Errorf("after it was removed: %v", err)
	}
}
