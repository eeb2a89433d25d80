package s3store

import (
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/object/storetest"
)

// serve starts a fake and returns the place of a folder in it.
func serve(t *testing.T, f *storetest.Fake) string {
	t.Helper()
	server := httptest.NewServer(&fakeS3{Fake: f})
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	return "s3://bucket/some/folder?use_path_style=true&region=us-east-1&endpoint=" + url.QueryEscape(server.URL)
}

func openFake(t *testing.T, f *storetest.Fake) object.Store {
	t.Helper()
	return storetest.Open(t, serve(t, f))
}

func TestStore(t *testing.T) { storetest.Contract(t, openFake(t, &storetest.Fake{})) }

func TestFaults(t *testing.T) {
	storetest.Faults(t, func(f *storetest.Fake) object.Store { return openFake(t, f) }, 409)
}

func TestLostReplies(t *testing.T) {
	f := &storetest.Fake{}
	storetest.LostReplies(t, f, openFake(t, f))
}

func TestSink(t *testing.T) { storetest.Sink(t, serve(t, &storetest.Fake{})) }

// TestGateway runs everything against a gateway that was not written here: see storetest.Gateway.
func TestGateway(t *testing.T) { storetest.Real(t, storetest.Gateway(t)) }
