package azurestore

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/object/storetest"
)

// someKey is a key of the right form.
const someKey = "a2V5"

// withKey makes the account's key the only credential of the environment.
func withKey(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"} {
		t.Setenv(name, "")
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT_KEY", someKey)
}

// serve starts a fake and returns the place of a folder in it.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	withKey(t)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return "az://container/some/folder?account=account&endpoint=" + url.QueryEscape(server.URL+"/account")
}

func openFake(t *testing.T, f *storetest.Fake) object.Store {
	t.Helper()
	return storetest.Open(t, serve(t, &fakeAzure{Fake: f}))
}

func TestStore(t *testing.T) { storetest.Contract(t, openFake(t, &storetest.Fake{})) }

func TestFaults(t *testing.T) {
	storetest.Faults(t, func(f *storetest.Fake) object.Store { return openFake(t, f) }, 500, 503, 408)
}

func TestLostReplies(t *testing.T) {
	f := &storetest.Fake{}
	storetest.LostReplies(t, f, openFake(t, f))
}

func TestSink(t *testing.T) { storetest.Sink(t, serve(t, &fakeAzure{Fake: &storetest.Fake{}})) }

func TestReopened(t *testing.T) {
	c := &storetest.Callers{Handler: &fakeAzure{Fake: &storetest.Fake{}}}
	c.Reopened(t, serve(t, c))
}

// TestRepeats has the service fail once: the client repeats what may be repeated, and no conditional put.
func TestRepeats(t *testing.T) {
	var left, seen atomic.Int32
	inner := &fakeAzure{Fake: &storetest.Fake{}}
	s := storetest.Open(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		if left.Add(-1) >= 0 {
			azureError(w, http.StatusServiceUnavailable, "ServerBusy")
			return
		}
		inner.ServeHTTP(w, r)
	})))
	left.Store(1)
	if err := s.Put(t.Context(), "a", []byte("x")); err != nil || seen.Load() != 2 {
		t.Errorf("a put was sent %d times: %v", seen.Load(), err)
	}
	left.Store(1)
	seen.Store(0)
	if err := s.PutIfAbsent(t.Context(), "b", []byte("x")); err == nil || seen.Load() != 1 {
		t.Errorf("a conditional put was sent %d times: %v", seen.Load(), err)
	}
}

func TestURLs(t *testing.T) {
	withKey(t)
	for place, want := range map[string]address{
		"az://c/a/b?account=n":                             {"n", "c", "a/b", "https://n.blob.core.windows.net", true},
		"abfss://c@n.dfs.core.windows.net/a/":              {"n", "c", "a", "https://n.blob.core.windows.net", true},
		"abfs://c@n.dfs.core.chinacloudapi.cn":             {"n", "c", "", "https://n.blob.core.chinacloudapi.cn", true},
		"az://c/a?account=n&endpoint=http://127.0.0.1:1/n": {"n", "c", "a", "http://127.0.0.1:1/n", true},
	} {
		u, err := url.Parse(place)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parse(u); err != nil || got != want {
			t.Errorf("%s: %+v, %v", place, got, err)
		}
		storetest.Open(t, place)
	}
	for place, want := range map[string]string{
		"az:///a?account=n":             "names no container",
		"az://c/a":                      "no storage account is named",
		"az://c/a?account=n&sig=secret": "unknown parameter",
		"az://c@n/a":                    "write az://container/folder",
		"abfss://c/a":                   "write abfss://container@account",
		"abfss://c:secret@n.dfs.core.windows.net/a":   "belong into the environment",
		"az://c/a?endpoint=http://127.0.0.1:1/n":      "there is a key",
		"abfss://c@n.blob.core.windows.net/x?account": "write abfss://container@account",
	} {
		if _, err := object.Open(t.Context(), place); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") && !strings.Contains(place, "sig") {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// TestCredentials opens a store by each kind of credentials.
func TestCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=https;AccountName=n;AccountKey=" + someKey + ";EndpointSuffix=core.windows.net",
		"AZURE_STORAGE_KEY":               someKey,
		"AZURE_STORAGE_SAS_TOKEN":         "?sv=2025-01-05&sig=secret",
		"AZURE_STORAGE_ACCOUNT_NAME":      "n", // and the usual chain, which isn't asked before the first request
	} {
		withKey(t)
		t.Setenv("AZURE_STORAGE_ACCOUNT_KEY", "")
		t.Setenv("AZURE_STORAGE_ACCOUNT", "n")
		t.Setenv(name, value)
		s := storetest.Open(t, "az://c/a").(*Store)
		if at, err := url.Parse(s.container.URL()); err != nil || at.Host != "n.blob.core.windows.net" || at.Path != "/c" || s.String() != "az://c/a" {
			t.Errorf("%s: %s at %s", name, s, s.container.URL())
		}
	}
	withKey(t)
	t.Setenv("AZURE_STORAGE_ACCOUNT", "n")
	t.Setenv("AZURE_STORAGE_ACCOUNT_KEY", "no base64")
	if _, err := object.Open(t.Context(), "az://c/a"); err == nil || strings.Contains(err.Error(), "no base64") {
		t.Errorf("a bad key: %v", err)
	}
}

// TestConnectionString has a connection string of another account than the URL's: data must not go where the URL doesn't point.
func TestConnectionString(t *testing.T) {
	withKey(t)
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "DefaultEndpointsProtocol=https;AccountName=n;AccountKey="+someKey+";EndpointSuffix=core.windows.net")
	for place, fits := range map[string]bool{"az://c/a": true, "abfss://c@n.dfs.core.windows.net/a": true, "az://c/a?account=n": true,
		"abfss://c@other.dfs.core.windows.net/a": false, "az://c/a?account=other": false, "az://c/a?endpoint=http://127.0.0.1:1/n": false} {
		_, err := object.Open(t.Context(), place)
		if fits != (err == nil) || !fits && !strings.Contains(err.Error(), "AZURE_STORAGE_CONNECTION_STRING") {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// containerVariable names a folder of a container that may be written, such as az://test/folder?endpoint=http://127.0.0.1:10000/devstoreaccount1&account=devstoreaccount1;
// `make object-stores` sets it to one in an emulator.
const containerVariable = "TRIBUTARY_TEST_AZURE"

// TestContainer runs everything against Azure or an emulator.
func TestContainer(t *testing.T) {
	place := storetest.Place(t, containerVariable, "az://container/folder")
	s := storetest.Open(t, place.String()).(*Store)
	if _, err := s.container.Create(t.Context(), nil); err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		t.Fatal(err)
	}
	storetest.Real(t, place)
}
