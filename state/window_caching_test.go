package state_test

import (
	"slices"
	"testing"

	"github.com/tributary-io/tributary/state"
)

// TestCachedWindowsOutliveRetention: a window store that coalesces its updates shows rows beyond retention until their segment has expired, in memory
// and on disk; one that doesn't hides them at once.
func TestCachedWindowsOutliveRetention(t *testing.T) {
	for _, spec := range []state.Spec{
		{Name: "st", Kind: state.TimestampedWindow, RetentionMs: 10, SegmentIntervalMs: 100, Caching: true},
		{Name: "st", Kind: state.TimestampedWindow, RetentionMs: 10, SegmentIntervalMs: 100, Caching: true, InMemory: true},
		{Name: "st", Kind: state.TimestampedWindow, RetentionMs: 10, SegmentIntervalMs: 100},
	} {
		db, err := state.OpenMemory([]state.Spec{spec}, state.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := db.WindowBytes("st")
		if err != nil {
			t.Fatal(err)
		}
		show := func() (starts []int64) {
			it, err := s.All(state.Forward)
			if err != nil {
				t.Fatal(err)
			}
			for it.Next() {
				starts = append(starts, it.Start())
			}
			if err := it.Close(); err != nil {
				t.Fatal(err)
			}
			return starts
		}
		for _, at := range []struct {
			start          int64
			cached, hidden []int64
		}{
			{start: 5, cached: []int64{5}, hidden: []int64{5}},
			{start: 50, cached: []int64{5, 50}, hidden: []int64{50}},
			{start: 130, cached: []int64{130}, hidden: []int64{130}}, // the first segment ends at 100
		} {
			if _, err := s.Put([]byte("k"), []byte("v"), at.start, at.start); err != nil {
				t.Fatal(err)
			}
			want := at.hidden
			if spec.Caching {
				want = at.cached
			}
			if got := show(); !slices.Equal(got, want) {
				t.Errorf("%+v at %d: shows %v, want %v", spec, at.start, got, want)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
