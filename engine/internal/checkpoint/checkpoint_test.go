package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// contents are the files of the tests' checkpoint.
func contents() map[string][]byte {
	return map[string][]byte{
		"000004.sst": bytes.Repeat([]byte("table "), 200_000), "000002.log": bytes.Repeat([]byte("log "), 1000), "marker.manifest.000001": {}, "MANIFEST-000001": []byte("manifest"),
	}
}

type desk struct {
	*Desk
	server *httptest.Server
	origin *HTTPOrigin
	dir    string
}

// newDesk serves checkpoints of task 1_2, through between.
func newDesk(t *testing.T, idle time.Duration, between func(http.Handler) http.Handler) *desk {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "checkpoints")
	d, err := NewDesk(DeskConfig{Dir: dir, Fresh: time.Hour, Idle: idle, Log: slog.New(slog.DiscardHandler), Take: func(task, dir string) (*Manifest, error) {
		if task != "1_2" {
			return nil, &NotHereError{task}
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
		for name, data := range contents() {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				return nil, err
			}
		}
		return &Manifest{Application: "app", Task: task, Offsets: map[string]int64{"s": 7}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /checkpoints/{task}", d.ServeManifest)
	mux.HandleFunc("GET /checkpoints/{task}/{id}", d.ServeWhole)
	mux.HandleFunc("GET /checkpoints/{task}/{id}/{file}", d.ServeFile)
	mux.HandleFunc("DELETE /checkpoints/{task}/{id}", d.Release)
	var handler http.Handler = mux
	if between != nil {
		handler = between(mux)
	}
	s := httptest.NewServer(handler)
	t.Cleanup(func() {
		s.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the desk has left %s", dir)
		}
	})
	client := s.Client()
	return &desk{d, s, &HTTPOrigin{Client: client, Base: s.URL, Task: "1_2"}, dir}
}

func (d *desk) checkpoints(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func quick(progress *atomic.Int64) FetchConfig {
	return FetchConfig{AtOnce: 2, Attempts: 3, Pause: time.Millisecond, Stall: 30 * time.Second, Sums: 30 * time.Second, Progress: func(n int64) { progress.Add(n) }}
}

func check(t *testing.T, dir string) {
	t.Helper()
	for name, want := range contents() {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
		}
	}
}

func TestCheckpointIsFetched(t *testing.T) {
	d := newDesk(t, time.Minute, nil)
	m, err := d.origin.Manifest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m.Task != "1_2" || m.Offsets["s"] != 7 || len(m.Files) != 4 || m.Bytes() != 1_204_008 {
		t.Errorf("got %+v", m)
	}
	other, err := d.origin.Manifest(t.Context())
	if err != nil || other.ID != m.ID {
		t.Errorf("another one who asks gets %v, %v: want the same checkpoint", other, err)
	}
	into := filepath.Join(t.TempDir(), "into")
	var progress atomic.Int64
	if err := Fetch(t.Context(), d.origin, m, into, quick(&progress)); err != nil {
		t.Fatal(err)
	}
	check(t, into)
	if progress.Load() != m.Bytes() || d.Sent.Load() != m.Bytes() {
		t.Errorf("progress of %d bytes, %d sent, want %d", progress.Load(), d.Sent.Load(), m.Bytes())
	}
	d.origin.Done(t.Context(), m)
	if n := d.checkpoints(t); n != 1 {
		t.Errorf("%d checkpoints while one still needs it, want 1", n)
	}
	d.origin.Done(t.Context(), m)
	if n := d.checkpoints(t); n != 0 {
		t.Errorf("%d checkpoints after the last has it, want none", n)
	}
	if err := Fetch(t.Context(), d.origin, m, into, quick(&progress)); !errors.Is(err, errGone) {
		t.Errorf("fetch of one that is gone: %v", err)
	}
}

// Instances of the version before wait for the checksums, and give them at once.
func TestFormerVersionsGiveAndTake(t *testing.T) {
	var mu sync.Mutex
	var queries []string
	d := newDesk(t, time.Minute, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			queries = append(queries, r.URL.RawQuery)
			mu.Unlock()
			r.URL.RawQuery = ""
			next.ServeHTTP(w, r)
		})
	})
	m, err := d.origin.Manifest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if len(queries) != 1 || queries[0] != "sums=later" {
		t.Errorf("asked with %q", queries)
	}
	mu.Unlock()
	for _, f := range m.Files {
		if f.Size > 0 && f.CRC32C == 0 {
			t.Errorf("%s has no checksum, and nobody said that it would come later", f.Name)
		}
	}
	whole, err := d.origin.Whole(t.Context(), m)
	if err != nil || whole != m || m.SumsLater {
		t.Errorf("got %+v, %v: want the manifest as it is", whole, err)
	}
	into := t.TempDir()
	if err := Fetch(t.Context(), d.origin, m, into, quick(new(atomic.Int64))); err != nil {
		t.Fatal(err)
	}
	check(t, into)
}

// Without the checksums a checkpoint isn't whole, even if all files have come.
func TestChecksumsMustCome(t *testing.T) {
	for what, f := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no disk", http.StatusInternalServerError) },
		"those of another checkpoint": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"version":1,"id":"other","files":[{"name":"000004.sst","size":1200000}]}`)
		},
	} {
		var id atomic.Value
		d := newDesk(t, time.Minute, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if at, ok := id.Load().(string); ok && r.URL.Path == "/checkpoints/1_2/"+at {
					f(w, r)
					return
				}
				next.ServeHTTP(w, r)
			})
		})
		m, err := d.origin.Manifest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !m.SumsLater {
			t.Errorf("got %+v: want the checksums later", m)
		}
		id.Store(m.ID)
		if err := Fetch(t.Context(), d.origin, m, t.TempDir(), quick(new(atomic.Int64))); err == nil || !strings.Contains(err.Error(), "its checksums") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A request for the checksums that fails is made again, and one that hangs ends: the task that waits for them can be restored otherwise.
func TestChecksumsAreAskedForAgain(t *testing.T) {
	for what, c := range map[string]struct {
		fails http.HandlerFunc // the first time
		want  string
	}{
		"an error": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "later", http.StatusServiceUnavailable) }, ""},
		"silence":  {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
	} {
		t.Run(what, func(t *testing.T) {
			var asked atomic.Bool
			d := newDesk(t, time.Minute, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet && strings.Count(r.URL.Path, "/") == 3 && !asked.Swap(true) {
						c.fails(w, r)
						return
					}
					next.ServeHTTP(w, r)
				})
			})
			m, err := d.origin.Manifest(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			into, cfg := t.TempDir(), quick(new(atomic.Int64))
			if c.want != "" {
				cfg.Sums = 200 * time.Millisecond
			}
			err = Fetch(t.Context(), d.origin, m, into, cfg)
			switch {
			case !asked.Load():
				t.Error("nobody asked for the checksums")
			case c.want != "":
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			case err != nil:
				t.Error(err)
			default:
				check(t, into)
			}
		})
	}
}

func TestForgottenCheckpointsGo(t *testing.T) {
	d := newDesk(t, 20*time.Millisecond, nil)
	if _, err := d.origin.Manifest(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); d.checkpoints(t) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the checkpoint stays")
		}
	}
}

func TestOnlyWhatIsThereIsServed(t *testing.T) {
	d := newDesk(t, time.Minute, nil)
	m, err := d.origin.Manifest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&HTTPOrigin{Client: d.server.Client(), Base: d.server.URL, Task: "9_9"}).Manifest(t.Context()); err == nil || !strings.Contains(err.Error(), "isn't here") {
		t.Errorf("another task: %v", err)
	}
	for _, path := range []string{"1_2/" + m.ID + "/..%2f..%2fsecret", "1_2/" + m.ID + "/other", "1_2/wrong/000004.sst", "1_3/" + m.ID + "/000004.sst"} {
		resp, err := d.server.Client().Get(d.server.URL + "/checkpoints/" + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusGone {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}

// harm does something to the answers with files, by their number from 1.
func harm(f func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		var n atomic.Int64
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ".sst") {
				f(n.Add(1), w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func partly(w http.ResponseWriter, n int) {
	w.Write(contents()["000004.sst"][:n])
	w.(http.Flusher).Flush()
}

func TestWhatBreaksIsGoneOnWith(t *testing.T) {
	var from atomic.Value
	d := newDesk(t, time.Minute, harm(func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if n == 1 {
			partly(w, 300_000)
			panic(http.ErrAbortHandler)
		}
		from.Store(r.Header.Get("Range"))
		next.ServeHTTP(w, r)
	}))
	m, err := d.origin.Manifest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	var progress atomic.Int64
	if err := Fetch(t.Context(), d.origin, m, into, quick(&progress)); err != nil {
		t.Fatal(err)
	}
	check(t, into)
	var at int
	if fmt.Sscanf(fmt.Sprint(from.Load()), "bytes=%d-", &at); at == 0 || at > 300_000 {
		t.Errorf("the second attempt asks for %v, want what was missing", from.Load())
	}
}

func TestDamageIsFound(t *testing.T) {
	for what, times := range map[string]int64{"once: fetched again": 1, "always: given up": 99} {
		d := newDesk(t, time.Minute, harm(func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler) {
			if n > times {
				next.ServeHTTP(w, r)
				return
			}
			data := contents()["000004.sst"]
			data[77_777] ^= 1
			w.Write(data)
		}))
		m, err := d.origin.Manifest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		into := t.TempDir()
		var progress atomic.Int64
		err = Fetch(t.Context(), d.origin, m, into, quick(&progress))
		var damaged *DamagedError
		switch {
		case times == 1 && err == nil:
			check(t, into)
			if progress.Load() != m.Bytes() {
				t.Errorf("progress of %d bytes, want %d", progress.Load(), m.Bytes())
			}
		case times > 1 && errors.As(err, &damaged):
		default:
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestOneThatStallsOrLiesIsGivenUp(t *testing.T) {
	for what, f := range map[string]func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler){
		"nothing comes": func(_ int64, w http.ResponseWriter, r *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"truncated": func(n int64, w http.ResponseWriter, r *http.Request, _ http.Handler) {
			if r.Header.Get("Range") != "" {
				w.WriteHeader(http.StatusPartialContent)
				return
			}
			partly(w, 1000)
		},
		"too long": func(_ int64, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Write(append(contents()["000004.sst"], 'x'))
		},
		"an error": func(_ int64, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusInternalServerError)
		},
	} {
		d := newDesk(t, time.Minute, harm(f))
		m, err := d.origin.Manifest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cfg := quick(new(atomic.Int64))
		cfg.Stall = 50 * time.Millisecond
		if err := Fetch(t.Context(), d.origin, m, t.TempDir(), cfg); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	d := newDesk(t, time.Minute, harm(func(_ int64, w http.ResponseWriter, r *http.Request, _ http.Handler) {
		partly(w, 100)
		<-r.Context().Done()
	}))
	m, err := d.origin.Manifest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cfg := quick(new(atomic.Int64))
	cfg.Progress = func(int64) { cancel() }
	if err := Fetch(ctx, d.origin, m, t.TempDir(), cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The format is read by other versions of an application.
func TestManifestFormatIsStable(t *testing.T) {
	const want = `{"version":1,"id":"ab","application":"app","task":"1_2","signature":"00ff","topics":{"app-s-changelog":"0123"},"offsets":{"s":7},"taken":"2026-11-29T22:00:00Z","files":[{"name":"000004.sst","size":9,"crc32c":3}]}`
	m, err := Parse([]byte(want))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(m)
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"id":"ab","files":[{"name":"x","size":1}]}`))
	f.Add([]byte(`{"version":1,"id":"ab","files":[{"name":"../x","size":1}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if file.Name != filepath.Base(file.Name) || file.Name == ".." || file.Size < 0 {
				t.Fatalf("took file %+v", file)
			}
		}
	})
}

var _ io.ReaderFrom = (*countingWriter)(nil)
