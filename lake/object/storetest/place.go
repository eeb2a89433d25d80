package storetest

import (
	"net/url"
	"os"
	"testing"

	"github.com/google/uuid"
)

// Place is a new folder in the one that an environment variable names by its URL; the test is skipped where nobody has set it.
func Place(t *testing.T, variable, example string) *url.URL {
	t.Helper()
	place := os.Getenv(variable)
	if place == "" {
		t.Skipf("SKIPPED: no store of this kind to test with; set %s to %s, or run `make object-stores`, which starts emulators of Google's and of Azure's", variable, example)
	}
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	return u.JoinPath(uuid.NewString())
}

// Real runs everything against a store outside of the process, in folders beside place.
func Real(t *testing.T, place *url.URL) {
	t.Helper()
	u := *place
	Contract(t, Open(t, u.String()))
	u.Path += "-writers"
	Writers(t, Open(t, u.String()))
	u.Path += "-table"
	Sink(t, u.String())
}
