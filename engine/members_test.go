package engine

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
)

// checkMembers asks two instances who shares the work, and how large the stores are that they have: 20 values, 400 records.
func checkMembers(t *testing.T, i1, i2 *instance) {
	t.Helper()
	if i1.Instance() == "" || i1.Instance() == i2.Instance() {
		t.Errorf("the instances are %q and %q", i1.Instance(), i2.Instance())
	}
	entries := map[string]int64{}
	for _, i := range []*instance{i1, i2} {
		members, err := i.Members(t.Context())
		if err != nil || len(members) != 2 {
			t.Fatalf("members %+v, %v", members, err)
		}
		tasks := map[string]bool{}
		for _, m := range members {
			if m.Here != (m.Endpoint == i.HTTPAddr()) {
				t.Errorf("%+v, asked at %s", m, i.HTTPAddr())
			}
			for _, name := range m.Tasks {
				tasks[name] = true
			}
		}
		for _, task := range i.Stats().Tasks {
			if task.Name != "global" && !tasks[task.Name] {
				t.Errorf("nobody has task %s: %+v", task.Name, members)
			}
			if task.Processed > 0 && task.Name != "global" && time.Since(task.LastCommit) > time.Hour {
				t.Errorf("task %s was committed %v", task.Name, task.LastCommit)
			}
		}
		sizes, err := i.StoreSizes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sizes {
			entries[s.Store] += s.Entries
		}
	}
	want := map[string]int64{"counts": 20, "sessions": 20, "versions": 20, "rates": 4}
	for store, n := range want {
		if entries[store] != n {
			t.Errorf("store %s has %d entries, want %d; all: %v", store, entries[store], n, entries)
		}
	}
}

// What Handle adds is served beside the engine's own, before Run as well, where nothing is known yet.
func TestHandle(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "handle")
	plan := counts(a.name)
	add := Handle("GET /mine/", func(e *Engine) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := e.Members(r.Context())
			sizes, failed := e.StoreSizes(r.Context())
			fmt.Fprint(w, e.Plan().ApplicationID(), " ", e.Instance() != "", " ", err != nil, " ", len(sizes), " ", failed)
		})
	})
	e, err := New(plan, Brokers(a.c.Addrs...), add, add) // the later one wins
	if err != nil {
		t.Fatal(err)
	}
	if got := served(t, e.Handler(), "/mine/"); got != "handle false true 1 <nil>" {
		t.Errorf("before Run: %q", got)
	}
	if e, err = New(plan, Brokers(a.c.Addrs...), add, Handle("GET /mine/", nil)); err != nil {
		t.Fatal(err)
	}
	if got := served(t, e.Handler(), "/mine/"); !strings.Contains(got, "not found") {
		t.Errorf("what was taken back answers %q", got)
	}
	a.create("in", 1)
	a.create("out", 1)
	i := a.startServing(plan, "i", add)
	i.await(t, "runs", func(s Stats) bool { return s.State == Running && len(s.Tasks) == 2 })
	eventually(t, "the group is known", func() bool {
		_, body := i.get(t, "/mine/x")
		return body == "handle true false 1 <nil>"
	})
}

// served is what a handler answers.
func served(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	if w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("a browser may guess what the answer of %s is", path)
	}
	return w.Body.String()
}
