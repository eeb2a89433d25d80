package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkFetch brings a checkpoint of 256 MB, as many files as Pebble makes of it, over the loopback interface, in turn with copying the same
// files one after the other, each synced.
func BenchmarkFetch(b *testing.B) {
	const files, size = 64, 4 << 20
	state := filepath.Join(b.TempDir(), "state")
	writeRandom(b, state, files, size)
	d, err := NewDesk(DeskConfig{
		Dir: filepath.Join(b.TempDir(), "checkpoints"), Idle: time.Minute, Log: slog.New(slog.DiscardHandler),
		Take: func(task, dir string) (*Manifest, error) { return &Manifest{Task: task}, linkAll(state, dir) },
	})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /checkpoints/{task}", d.ServeManifest)
	mux.HandleFunc("GET /checkpoints/{task}/{id}", d.ServeWhole)
	mux.HandleFunc("GET /checkpoints/{task}/{id}/{file}", d.ServeFile)
	mux.HandleFunc("DELETE /checkpoints/{task}/{id}", d.Release)
	server := httptest.NewServer(mux)
	defer server.Close()
	origin := &HTTPOrigin{Client: server.Client(), Base: server.URL, Task: "0_0"}
	cfg := FetchConfig{AtOnce: 3, Attempts: 1, Stall: time.Minute, Sums: time.Minute, Progress: func(int64) {}}

	into := filepath.Join(b.TempDir(), "into")
	var fetching, copying time.Duration
	b.SetBytes(files * size)
	for b.Loop() {
		began := time.Now()
		m, err := origin.Manifest(b.Context())
		if err == nil {
			err = Fetch(b.Context(), origin, m, into, cfg)
		}
		if err != nil {
			b.Fatal(err)
		}
		fetching += time.Since(began)
		origin.Done(b.Context(), m)
		if err := os.RemoveAll(into); err != nil {
			b.Fatal(err)
		}
		began = time.Now()
		if err := copyAll(state, into); err != nil {
			b.Fatal(err)
		}
		copying += time.Since(began)
		if err := os.RemoveAll(into); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(fetching.Seconds()/float64(b.N), "s/fetch")
	b.ReportMetric(copying.Seconds()/float64(b.N), "s/copy")
	b.ReportMetric(fetching.Seconds()/copying.Seconds(), "fetch/copy")
}

func writeRandom(b *testing.B, dir string, files, size int) {
	b.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{1})
	data := make([]byte, size)
	for i := range files {
		_, _ = random.Read(data) // never fails
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.sst", i)), data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

func linkAll(from, to string) error {
	return each(from, to, os.Link)
}

func copyAll(from, to string) error {
	return each(from, to, func(from, to string) error {
		in, err := os.Open(from)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := os.Create(to)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return errors.Join(err, out.Sync(), out.Close())
	})
}

// each makes to and calls f with each file's place in both directories.
func each(from, to string, f func(from, to string) error) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if err := f(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
