package s3store

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/object/storetest"
)

// serve starts a fake and returns the place of a folder in it.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	return "s3://bucket/some/folder?use_path_style=true&region=us-east-1&endpoint=" + url.QueryEscape(server.URL)
}

func openFake(t *testing.T, f *storetest.Fake) object.Store {
	t.Helper()
	return storetest.Open(t, serve(t, &fakeS3{Fake: f}))
}

func TestStore(t *testing.T) { storetest.Contract(t, openFake(t, &storetest.Fake{})) }

func TestFaults(t *testing.T) {
	storetest.Faults(t, func(f *storetest.Fake) object.Store { return openFake(t, f) }, 409)
}

func TestLostReplies(t *testing.T) {
	f := &storetest.Fake{}
	storetest.LostReplies(t, f, openFake(t, f))
}

func TestSink(t *testing.T) { storetest.Sink(t, serve(t, &fakeS3{Fake: &storetest.Fake{}})) }

func TestReopened(t *testing.T) {
	c := &storetest.Callers{Handler: &fakeS3{Fake: &storetest.Fake{}}}
	c.Reopened(t, serve(t, c))
}

// TestGateway runs everything against a gateway that was not written here: see storetest.Gateway.
func TestGateway(t *testing.T) { storetest.Real(t, storetest.Gateway(t)) }

// TestWhatIsMissingIsNamed: the SDK's own words for a missing region or missing credentials don't say what to do.
func TestWhatIsMissingIsNamed(t *testing.T) {
	for name, none := range map[string]string{"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_MAX_ATTEMPTS": "1", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, none)
	}
	get := func(place string) string {
		u, err := url.Parse(place)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Get(context.Background(), "x")
		if err == nil {
			t.Fatal("got an object from nowhere")
		}
		return err.Error()
	}
	if got := get("s3://bucket/folder"); !strings.Contains(got, "set AWS_REGION") {
		t.Errorf("without a region: %s", got)
	}
	if got := get("s3://bucket/folder?region=eu-central-1"); !strings.Contains(got, "set AWS_ACCESS_KEY_ID") {
		t.Errorf("without credentials: %s", got)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	if got := get("s3://bucket/folder?region=eu-central-1&endpoint=http://host.invalid:9000"); !strings.Contains(got, "use_path_style=true") {
		t.Errorf("a host for each bucket: %s", got)
	}
}
