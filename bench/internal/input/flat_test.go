package input

import (
	"testing"
	"time"
)

func TestFlatHasEachKeyFirst(t *testing.T) {
	f := Flat{Keys: 1000, Each: true, Records: 500, Span: time.Second}
	seen, n := map[string]bool{}, 0
	f.each(func(key, _ []byte, timestamp int64) {
		if timestamp < Base || timestamp >= Base+1000 {
			t.Fatalf("event time %d", timestamp-Base)
		}
		seen[string(key)] = true
		if n++; n == f.Keys && len(seen) != f.Keys {
			t.Fatalf("%d keys among the first %d records", len(seen), n)
		}
	})
	if n != f.Total() || len(seen) != f.Keys {
		t.Errorf("%d records of %d keys", n, len(seen))
	}
}
