package storetest

import (
	"net/http"
	"sync"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
)

// Callers are the connections by which requests come to a server.
type Callers struct {
	http.Handler // of the server

	mu   sync.Mutex
	seen map[string]bool // addresses
}

func (c *Callers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[r.RemoteAddr] = true
	c.mu.Unlock()
	c.Handler.ServeHTTP(w, r)
}

// Reopened opens the store at a place of the server again and again, as a program does that watches how far a table has come: all have few connections
// together.
func (c *Callers) Reopened(t *testing.T, place string) {
	t.Helper()
	const times, most = 50, 5
	for range times {
		s, err := object.Open(t.Context(), place)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), "x", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.Count(); n > most {
		t.Errorf("a store that is opened %d times has %d connections, want at most %d", times, n, most)
	}
}

// Count is how many connections there were.
func (c *Callers) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}
