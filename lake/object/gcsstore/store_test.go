package gcsstore

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/object/storetest"
)

// serve starts a fake and returns the place of a folder in it.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return "gs://bucket/some/folder?anonymous=true&endpoint=" + url.QueryEscape(server.URL)
}

func openFake(t *testing.T, f *storetest.Fake) object.Store {
	t.Helper()
	s := storetest.Open(t, serve(t, &fakeGCS{Fake: f}))
	s.(*Store).pause = time.Millisecond
	return s
}

func TestStore(t *testing.T) { storetest.Contract(t, openFake(t, &storetest.Fake{})) }

func TestFaults(t *testing.T) {
	storetest.Faults(t, func(f *storetest.Fake) object.Store { return openFake(t, f) }, 500, 503, 408)
}

func TestLostReplies(t *testing.T) {
	f := &storetest.Fake{}
	storetest.LostReplies(t, f, openFake(t, f))
}

func TestSink(t *testing.T) { storetest.Sink(t, serve(t, &fakeGCS{Fake: &storetest.Fake{}})) }

func TestReopened(t *testing.T) {
	c := &storetest.Callers{Handler: &fakeGCS{Fake: &storetest.Fake{}}}
	c.Reopened(t, serve(t, c))
}

// failing answers so many requests with an error before it lets them through.
type failing struct {
	inner http.Handler
	left  atomic.Int32
	seen  atomic.Int32
}

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.seen.Add(1)
	if f.left.Add(-1) >= 0 {
		gcsError(w, http.StatusServiceUnavailable)
		return
	}
	f.inner.ServeHTTP(w, r)
}

// TestRepeats has the service fail for a while: what may be repeated is, and only so often.
func TestRepeats(t *testing.T) {
	ctx := t.Context()
	f := &failing{inner: &fakeGCS{Fake: &storetest.Fake{}}}
	s := storetest.Open(t, serve(t, f)).(*Store)
	s.pause = time.Millisecond
	large := make([]byte, partSize+1)
	for what, do := range map[string]func() error{
		"put":  func() error { return s.Put(ctx, "a", []byte("x")) },
		"get":  func() error { _, err := s.Get(ctx, "b"); return err },
		"stat": func() error { _, err := s.Stat(ctx, "b"); return err },
		"list": func() (err error) {
			for _, err = range s.List(ctx, "b", "") {
			}
			return err
		},
		"delete": func() error { return s.Delete(ctx, "c") },
		"create": func() error {
			w, err := s.Create(ctx, "d")
			if err != nil {
				return err
			}
			if _, err := w.Write(large); err != nil {
				return err
			}
			return w.Close()
		},
	} {
		f.left.Store(0)
		if err := s.Put(ctx, "b", nil); err != nil {
			t.Fatal(err)
		}
		f.left.Store(2)
		if err := do(); err != nil {
			t.Errorf("%s after two failures: %v", what, err)
		}
	}
	f.left.Store(1000)
	f.seen.Store(0)
	if err := s.Put(ctx, "a", nil); err == nil || f.seen.Load() != repeats+1 {
		t.Errorf("a service that is down was asked %d times: %v", f.seen.Load(), err)
	}
	f.seen.Store(0)
	if err := s.PutIfAbsent(ctx, "new", nil); err == nil || f.seen.Load() != 1 {
		t.Errorf("a conditional put was sent %d times: %v", f.seen.Load(), err)
	}
}

func TestURLs(t *testing.T) {
	for place, want := range map[string]string{
		"gs:///folder":                "names no bucket",
		"gs://bucket/folder?region=x": `unknown parameter "region"`,
	} {
		if _, err := object.Open(t.Context(), place); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", place, err)
		}
	}
	t.Setenv(emulatorVariable, "127.0.0.1:1")
	s := storetest.Open(t, "gs://bucket/a//folder/").(*Store)
	if s.prefix != "a//folder/" || s.String() != "gs://bucket/a//folder/" {
		t.Errorf("prefix %q of %s", s.prefix, s)
	}
}

// bucketVariable names a folder of a bucket that may be written, such as gs://bucket/test?endpoint=http://127.0.0.1:4443&anonymous=true;
// `make object-stores` sets it to one in an emulator.
const bucketVariable = "TRIBUTARY_TEST_GCS"

// TestBucket runs everything against Google Cloud Storage or an emulator.
func TestBucket(t *testing.T) {
	storetest.Real(t, storetest.Place(t, bucketVariable, "gs://bucket/folder"))
}
