package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/tributary-io/tributary/internal/filelock"
)

// RegistryConfig says how StartRegistry runs the registry. The zero value is in memory on a free port.
type RegistryConfig struct {
	Dir  string // keeps the schemas over restarts; empty means in memory
	Port int    // on 127.0.0.1; 0 chooses a free one
}

// Registry is a running embedded schema registry, compatible with Confluent's HTTP interface as far as srfake is. It judges the compatibility of
// Avro schemas.
type Registry struct {
	server   *http.Server
	listener net.Listener
	served   chan struct{}
	journal  *journal // nil in memory
	lock     *filelock.Lock
}

// StartRegistry starts a registry. With a directory, what was registered before is there again under the same ids.
func StartRegistry(cfg RegistryConfig) (_ *Registry, err error) {
	r := &Registry{served: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("embedded registry: %w", err), r.release())
		}
	}()
	handler := srfake.NewRegistry().Handler()
	var outer http.Handler = &judging{next: handler} // but not what the journal repeats: that was judged before
	if cfg.Dir != "" {
		if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
			return nil, fmt.Errorf("make data directory: %w", err)
		}
		if r.lock, err = filelock.TryLock(filepath.Join(cfg.Dir, "registry.lock")); err != nil {
			return nil, fmt.Errorf("data directory %s is in use: %w", cfg.Dir, err)
		}
		if r.journal, err = openJournal(filepath.Join(cfg.Dir, "registry.jsonl"), handler); err != nil {
			return nil, err
		}
		outer = &journalled{next: outer, journal: r.journal}
	}
	r.listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", cfg.Port))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	r.server = &http.Server{Handler: outer, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(r.served)
		r.server.Serve(r.listener) // always ends with an error; Close is the only reason
	}()
	return r, nil
}

// URL is the registry's base URL.
func (r *Registry) URL() string { return "http://" + r.listener.Addr().String() }

// Close stops the registry. Everything answered is in its directory.
func (r *Registry) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := r.server.Shutdown(ctx)
	if err != nil {
		err = r.server.Close() // connections kept open by clients don't hold us up
	}
	<-r.served
	return errors.Join(err, r.release())
}

func (r *Registry) release() error {
	var errs []error
	if r.journal != nil {
		errs = append(errs, r.journal.close())
	}
	if r.lock != nil {
		errs = append(errs, r.lock.Release())
	}
	return errors.Join(errs...)
}

// journalled passes requests on, and writes down each that changed something before its answer goes out. Changes are made one
// at a time: the journal's order is the order in which ids were given.
type journalled struct {
	next    http.Handler
	journal *journal
	mu      sync.Mutex
}

func (j *journalled) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !changes(req) {
		j.next.ServeHTTP(w, req)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, "read request: "+err.Error(), http.StatusBadRequest)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	entry := journalEntry{Method: req.Method, URI: req.URL.RequestURI(), Body: string(body)}
	req.Body = io.NopCloser(bytes.NewReader(body))
	answer := newAnswer()
	j.next.ServeHTTP(answer, req)
	if answer.ok() {
		if err := j.journal.append(entry); err != nil {
			http.Error(w, `{"error_code":50001,"message":"journal: `+err.Error()+`"}`, http.StatusInternalServerError)
			return
		}
	}
	answer.copyTo(w)
}

// changes reports whether a request may change the registry. A POST elsewhere than to a subject's versions is a question
// (look-up, compatibility).
func changes(req *http.Request) bool {
	switch req.Method {
	case http.MethodPut, http.MethodDelete:
		return true
	case http.MethodPost:
		return filepath.Base(req.URL.Path) == "versions" && !bytes.Contains([]byte(req.URL.Path), []byte("/compatibility/"))
	}
	return false
}
