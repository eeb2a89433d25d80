package storetest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Gateway is a new folder behind an S3 gateway that was not written here and that other processes reach: the one that TRIBUTARY_TEST_S3 names by an
// URL, such as s3://bucket/test?endpoint=http://127.0.0.1:39070&use_path_style=true&region=us-east-1, else one in memory that ends with the test.
func Gateway(t *testing.T) *url.URL {
	t.Helper()
	if os.Getenv("TRIBUTARY_TEST_S3") != "" {
		return Place(t, "TRIBUTARY_TEST_S3", "s3://bucket/folder?endpoint=…")
	}
	server := httptest.NewServer(S3(t))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	return &url.URL{Scheme: "s3", Host: "bucket", Path: "/folder", RawQuery: url.Values{"endpoint": {server.URL}, "use_path_style": {"true"}, "region": {"us-east-1"}}.Encode()}
}

// S3 is such a gateway in memory, with a bucket named bucket.
func S3(t *testing.T) http.Handler {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	return partsWithoutChecksum(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
}

// partsWithoutChecksum leaves out of answers with a part of an object the checksum of the whole, which gofakes3 gives there, and which clients take
// for the part's.
func partsWithoutChecksum(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			w = &partWriter{w}
		}
		inner.ServeHTTP(w, r)
	})
}

type partWriter struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *partWriter) WriteHeader(status int) {
	maps.DeleteFunc(w.Header(), func(name string, _ []string) bool { return strings.HasPrefix(strings.ToLower(name), "x-amz-checksum-") })
	w.ResponseWriter.WriteHeader(status)
}
