package engine

import (
	"fmt"
	"maps"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves /metrics (Prometheus), /healthz (200 while the instance lives), /readyz (200 while it runs all tasks that it was given),
// with the option Queries its stores under /stores, with ShipCheckpoints checkpoints for other instances under /checkpoints, and what Handle adds.
func (e *Engine) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { e.answer(w, State.Alive) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { e.answer(w, State.Ready) })
	if e.cfg.serveQueries {
		e.serveStores(mux)
	}
	if e.cfg.ship {
		e.serveCheckpoints(mux)
	}
	for pattern, handler := range e.cfg.added {
		if handler != nil {
			mux.Handle(pattern, handler(e))
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff") // answers hold what users have stored
		mux.ServeHTTP(w, r)
	})
}

// Handle adds to what HTTP and Handler serve, under a pattern of http.ServeMux; the page of package console comes so. handler is called for each
// Handler; nil takes back what was given for the same pattern before. What it makes may ask the instance at any time, also before Run and after it.
func Handle(pattern string, handler func(*Engine) http.Handler) Option {
	return func(c *config) {
		c.added = maps.Clone(c.added)
		if c.added == nil {
			c.added = map[string]func(*Engine) http.Handler{}
		}
		c.added[pattern] = handler
	}
}

func (e *Engine) answer(w http.ResponseWriter, good func(State) bool) {
	s, since := e.states.get()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !good(s) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintf(w, "%s since %s\n", s, since.UTC().Format("2006-01-02T15:04:05Z"))
	if reason := e.states.reason(); reason != "" {
		fmt.Fprintln(w, reason)
	}
}

// HTTPAddr is the address that HTTP listens on, once it does; empty without HTTP. With port 0 it tells the port.
func (e *Engine) HTTPAddr() string {
	addr, _ := e.httpAddr.Load().(string)
	return addr
}
