package offsetset

import (
	"testing"

	"pgregory.net/rapid"
)

// For any offsets added in any order, the set has them and no others, and says so after being written and read.
func TestSetHasWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Set{Below: rapid.Int64Range(0, 5).Draw(t, "below")}
		want := map[int64]bool{}
		for o := range s.Below {
			want[o] = true
		}
		for _, o := range rapid.SliceOf(rapid.Int64Range(0, 60)).Draw(t, "offsets") {
			s.Add(o)
			want[o] = true
		}
		back, err := Parse(s.Below, s.Text())
		if err != nil {
			t.Fatal(err)
		}
		for o := range int64(70) {
			if s.Has(o) != want[o] || back.Has(o) != want[o] {
				t.Fatalf("%d: the set says %v, read back %v, want %v (%d %q)", o, s.Has(o), back.Has(o), want[o], s.Below, s.Text())
			}
		}
		for i, r := range s.Ranges {
			if i > 0 && r.First <= s.Ranges[i-1].Last+1 || r.First <= s.Below {
				t.Fatalf("ranges touch: below %d, %v", s.Below, s.Ranges)
			}
		}
	})
}

// A set that is to fit keeps all that it has, and its highest gaps.
func TestFitFillsTheLowestGaps(t *testing.T) {
	var s Set
	for o := range int64(10_000) {
		s.Add(2*o + 1)
	}
	if s.Fit(1 << 20) {
		t.Error("cut though it fits")
	}
	if !s.Fit(1000) || len(s.Text()) > 1000 || len(s.Text()) < 900 {
		t.Fatalf("text of %d bytes", len(s.Text()))
	}
	for o := range int64(10_000) {
		if !s.Has(2*o + 1) {
			t.Fatalf("lacks %d", 2*o+1)
		}
	}
	if !s.Has(0) || s.Has(19_998) {
		t.Error("the wrong gaps were filled")
	}
}

func TestDamagedTextsAreRefused(t *testing.T) {
	for _, text := range []string{"x y", "-1", "1,,2", "1-1-1", "1y2p0ij32e8e7,1y2p0ij32e8e7"} {
		if _, err := Parse(0, text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if s, err := Parse(-1, "3"); err != nil || s.Has(0) || s.Has(3) {
		t.Errorf("no offset: %+v %v", s, err)
	}
}
