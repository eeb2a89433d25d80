package dlq

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestNotesSayWhatWasReplayed: for any letters and any set of replayed ones, the note survives being written and read, and says of each
// letter what is true.
func TestNotesSayWhatWasReplayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SliceOfNDistinct(rapid.Int64Range(0, 300), 0, 60, rapid.ID).Draw(t, "letters")
		slices.Sort(letters)
		done := map[int64]bool{}
		for _, o := range letters {
			done[o] = rapid.Bool().Draw(t, "done")
		}
		n := note(letters, func(o int64) bool { return done[o] }, 301)
		text, err := n.metadata()
		if err != nil {
			t.Fatal(err)
		}
		back, err := parseReplayed(n.Below, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range letters {
			if back.Has(o) != done[o] {
				t.Fatalf("letter %d: the note %d %q says %v, want %v", o, n.Below, text, back.Has(o), done[o])
			}
		}
		if back.Has(302) {
			t.Fatal("a letter that comes later counts as replayed")
		}
	})
}

func TestNotesHaveALimit(t *testing.T) {
	var letters []int64
	for o := range int64(10_000) {
		letters = append(letters, o)
	}
	n := note(letters, func(o int64) bool { return o%2 == 1 }, 10_000)
	if _, err := n.metadata(); err == nil || !strings.Contains(err.Error(), "pieces") {
		t.Errorf("%v", err)
	}
	n = note(letters, func(o int64) bool { return o != 5000 }, 10_000)
	if text, err := n.metadata(); err != nil || n.Below != 5000 || len(text) > 20 {
		t.Errorf("%d %q %v", n.Below, text, err)
	}
}

func TestDamagedNotesAreRefused(t *testing.T) {
	for _, text := range []string{"x", metadataVersion, metadataVersion + "-1", metadataVersion + "1,,2", metadataVersion + "1-1-1", metadataVersion + "1y2p0ij32e8e7,1y2p0ij32e8e7"} {
		if _, err := parseReplayed(0, text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if r, err := parseReplayed(-1, ""); err != nil || r.Has(0) {
		t.Errorf("no offset: %+v %v", r, err)
	}
}

func FuzzNote(f *testing.F) {
	f.Add(int64(7), metadataVersion+"3-a,1")
	f.Fuzz(func(t *testing.T, offset int64, text string) {
		r, err := parseReplayed(offset, text)
		if err != nil {
			return
		}
		for i := 1; i < len(r.Ranges); i++ {
			if r.Ranges[i].First < r.Ranges[i-1].Last {
				t.Fatalf("%q gives ranges out of order: %v", text, r.Ranges)
			}
		}
	})
}
