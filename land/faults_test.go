package land

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tributary-io/tributary/lake"
)

// refusing makes a table with a constraint that can't be checked, in the place of a stream's.
func (w *world) refusing(t *testing.T, s *Stream) (mend func()) {
	t.Helper()
	log := filepath.Join(w.cfg.TablePlace(s), "_delta_log")
	first := `{"protocol":{"minReaderVersion":1,"minWriterVersion":3}}
{"metaData":{"id":"5f1a4d20-2d5a-4c7d-9c5e-0d7f5f6a1b2c","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":[],"configuration":{"delta.constraints.positive":"id > 0"},"createdTime":1}}
`
	if err := os.MkdirAll(log, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(log, "00000000000000000000.json"), []byte(first), 0o644); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(w.cfg.TablePlace(s)); err != nil {
			t.Error(err)
		}
	}
}

// TestFaultsOfOneStreamStayWithIt has three streams that can't land: one whose declared schema is incompatible with its subject, one whose table
// has a constraint, and one with a row that doesn't fit and must not be left out. A fourth lands, everybody who looks is told why the others
// don't, and they land when the faults are mended, each row once.
func TestFaultsOfOneStreamStayWithIt(t *testing.T) {
	w := newWorld(t, nil, "")
	well, alien, bound, strict := testStream(t, "ods.shop.well", small), testStream(t, "ods.shop.alien", small), testStream(t, "ods.shop.bound", small), testStream(t, "ods.shop.strict", small)
	strict.StopOnBadRows = true
	a, err := newAdmin(w.cfg.Registry)
	if err != nil {
		t.Fatal(err)
	}
	const other = `{"type":"record","name":"Small","fields":[{"name":"id","type":{"type":"array","items":"int"}}]}`
	if _, err := a.register(t.Context(), "ods.shop.alien-value", other, sr.CompatFull); err != nil {
		t.Fatal(err)
	}
	mend := w.refusing(t, &bound)
	w.cfg.Streams, w.cfg.Observe = []Stream{well, alien, bound, strict}, 100*time.Millisecond
	sink, stop := w.start(t)
	defer http.DefaultClient.CloseIdleConnections()
	ask := asking(t, sink.Handler())
	id := w.id(t, &well)
	w.emit(t, well.Topic, smallValue(id, 1), smallValue(id, 2))
	w.emit(t, bound.Topic, smallValue(id, 1), smallValue(id, 2))
	w.emit(t, strict.Topic, smallValue(id, 0), smallValue(id, 1), smallValue(id, 2), []byte("bad"), smallValue(id, 4), smallValue(id, 5))
	eventually(t, "what has no fault has landed", func() bool { return len(w.rows(t, &well)) == 2 && len(w.rows(t, &strict)) == 4 })

	said := map[string]string{alien.Topic: "register the declared schema", bound.Topic: "constraint", strict.Topic: "starts with byte"}
	var code int
	var ready, catalogue, metrics string
	defer func() {
		if t.Failed() {
			t.Logf("/readyz answered %d:\n%s\n/catalogue %s", code, ready, catalogue)
		}
	}()
	eventually(t, "all who look are told why", func() bool {
		code, ready = ask("/readyz")
		_, catalogue = ask("/catalogue")
		_, metrics = ask("/metrics")
		for topic, why := range said {
			line := lineWith(ready, topic+": parked since ")
			if !strings.Contains(line, why) || !strings.Contains(metrics, `tributary_stream_waiting_seconds{topic="`+topic+`"}`) {
				return false
			}
		}
		return code == http.StatusOK && strings.Contains(ready, "3 of 4 streams wait") && strings.Count(catalogue, `"waits_for"`) == 3
	})
	eventually(t, "the observer's table says why", func() bool { return w.observed(t, bound.Topic) })

	mend()
	if err := a.setLevel(t.Context(), "ods.shop.alien-value", sr.CompatNone); err != nil {
		t.Fatal(err)
	}
	alien.Compatibility = sr.CompatNone // nobody sets it back: the declaration is changed with a restart
	stop()
	w.cfg.Streams = []Stream{well, alien, bound, strict}
	w.cfg.Streams[3].StopOnBadRows = false
	w.emit(t, alien.Topic, smallValue(id, 1))
	_, stop = w.start(t)
	eventually(t, "landed", func() bool {
		return len(w.rows(t, &alien)) == 1 && len(w.rows(t, &bound)) == 2 && len(w.rows(t, &strict)) == 5 && len(w.rows(t, &well)) == 2
	})
	stop()
}

func lineWith(text, prefix string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return ""
}

// observed tells whether the observer's table says that a stream waits.
func (w *world) observed(t *testing.T, topic string) bool {
	t.Helper()
	for row, err := range lake.ReadRows(t.Context(), w.cfg.place(ObserverTable)) {
		if err != nil {
			return false // not yet made, or just written
		}
		if why, _ := row["waits_for"].(string); row["topic"] == topic && why != "" {
			return true
		}
	}
	return false
}

// TestFaultsHeal mends what is wrong while the instance runs: a subject that could not be registered, and a table that had a constraint.
func TestFaultsHeal(t *testing.T) {
	w := newWorld(t, nil, "")
	well, late, bound := testStream(t, "ods.heal.well", small), testStream(t, "ods.heal.late", small), testStream(t, "ods.heal.bound", small)
	var away atomic.Bool
	away.Store(true)
	registry, err := url.Parse(w.cfg.Registry)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(registry)
	pass.Transport = &http.Transport{DisableKeepAlives: true}
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away.Load() && strings.Contains(r.URL.Path, late.Topic) {
			rw.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		pass.ServeHTTP(rw, r)
	}))
	defer proxy.Close()
	w.cfg.Registry = proxy.URL
	mend := w.refusing(t, &bound)
	w.cfg.Streams = []Stream{well, late, bound}
	sink, _ := w.start(t)
	ask := asking(t, sink.Handler())
	eventually(t, "two are parked", func() bool { _, text := ask("/readyz"); return strings.Contains(text, "2 of 3 streams wait") })
	id := w.id(t, &well)
	for _, s := range []*Stream{&late, &bound} {
		w.emit(t, s.Topic, smallValue(id, 1), smallValue(id, 2), smallValue(id, 3))
	}
	away.Store(false)
	mend()
	for _, s := range []*Stream{&late, &bound} {
		eventually(t, "landed "+s.Topic, func() bool { return len(w.rows(t, s)) == 3 })
	}
	eventually(t, "nothing waits", func() bool {
		code, text := ask("/readyz")
		return code == http.StatusOK && !strings.Contains(text, "wait")
	})
}

// TestUntilLandedTellsFaults lands what it can, and ends with the faults of the rest. Where nothing can be prepared, the start fails.
func TestUntilLandedTellsFaults(t *testing.T) {
	w := newWorld(t, nil, "")
	well, bound := testStream(t, "ods.until.well", small), testStream(t, "ods.until.bound", small)
	w.refusing(t, &bound)
	w.cfg.Streams = []Stream{bound}
	s, err := Open(t.Context(), w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RunUntilLanded(t.Context()); err == nil || !strings.Contains(err.Error(), "constraint") {
		t.Errorf("with nothing that can land: %v", err)
	}
	s.Close()
	w.cfg.Streams = []Stream{well, bound}
	if s, err = Open(t.Context(), w.cfg); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := w.id(t, &well)
	w.emit(t, well.Topic, smallValue(id, 1))
	w.emit(t, bound.Topic, smallValue(id, 1))
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	if err := s.RunUntilLanded(ctx); err == nil || !strings.Contains(err.Error(), bound.Topic+" has not landed") || strings.Contains(err.Error(), well.Topic) {
		t.Errorf("ended with %v", err)
	}
	if n := len(w.rows(t, &well)); n != 1 {
		t.Errorf("%d rows of the other stream", n)
	}
	w.cfg.Client = []kgo.Opt{}
	w.cfg.Streams[0].Cleanup, w.cfg.Streams[1].Cleanup = "x", "y"
	if _, err := Open(t.Context(), w.cfg); err == nil || strings.Count(err.Error(), "cleanup is") != 2 {
		t.Errorf("a configuration with mistakes: %v", err)
	}
	w.cfg.Streams[0].Cleanup, w.cfg.Streams[1].Cleanup = well.Cleanup, bound.Cleanup
	for i := range w.cfg.Streams {
		w.cfg.Streams[i].Schema = `{"type":"record","name":"R","fields":[{"name":"a","type":"long"},{"name":"A","type":"long"}]}`
	}
	if _, err := Open(t.Context(), w.cfg); err == nil || !strings.Contains(err.Error(), "stream "+well.Topic) || !strings.Contains(err.Error(), "stream "+bound.Topic) {
		t.Errorf("two schemas that make no table: %v", err)
	}
}
