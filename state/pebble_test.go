package state

import (
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// TestANewDatabaseBeginsInTheNewestFormat makes a database, and one in a directory that is there already: the first has gone through no older format.
func TestANewDatabaseBeginsInTheNewestFormat(t *testing.T) {
	res := NewResources(ResourceOptions{})
	defer res.Close()
	there := t.TempDir()
	for _, dir := range []string{filepath.Join(there, "new", "database"), there} {
		for range 2 { // made, and opened again
			db, err := OpenPebble(dir, []Spec{{Name: "st", Kind: KeyValue}}, res, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := db.pebble.db.FormatMajorVersion(); got != pebble.FormatNewest {
				t.Errorf("%s has format %d", dir, got)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		markers, err := filepath.Glob(filepath.Join(dir, "marker.format-version.*"))
		if err != nil || len(markers) != 1 {
			t.Fatalf("markers %v, %v", markers, err)
		}
		if want := "marker.format-version.000001." + pebble.FormatNewest.String(); dir != there && filepath.Base(markers[0]) != want {
			t.Errorf("%s is marked with %s, want %s", dir, markers[0], want)
		}
	}
}
