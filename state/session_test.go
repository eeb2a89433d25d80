package state_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tributary-io/tributary/state"
)

// A store in memory finds the sessions that ended within a span even if retention hides them, as long as their segment lives: they are still to be sent. One that is built
// from the changelog finds the same, and neither what was deleted nor what was refused.
func TestHiddenSessionsAfterARestore(t *testing.T) {
	const hides = 20
	for name, c := range map[string]struct {
		writes func(s state.SessionBytes)
		want   []string
	}{
		"kept": {func(s state.SessionBytes) {
			putSession(t, s, "v", 35, 42, false)
			putSession(t, s, "v", 60, 62, false) // hides it
		}, []string{"35-42"}},
		"removed": {func(s state.SessionBytes) {
			putSession(t, s, "v", 35, 42, false)
			putSession(t, s, "v", 60, 62, false)
			must(t, s.Remove([]byte("k"), 35, 42))
		}, nil},
		"set to null": {func(s state.SessionBytes) {
			putSession(t, s, "v", 35, 42, false)
			putSession(t, s, "v", 60, 62, false)
			putSession(t, s, "", 35, 42, true)
		}, nil},
		"refused before what moved the time is gone": {func(s state.SessionBytes) {
			putSession(t, s, "v", 60, 62, false)
			putSession(t, s, "v", 35, 42, true)
			must(t, s.Remove([]byte("k"), 60, 62))
		}, nil},
	} {
		for _, policy := range []state.Policy{state.EveryWrite, state.LastPerKeyPerCommit} {
			t.Run(fmt.Sprint(name, "/policy ", policy), func(t *testing.T) {
				open := func() *state.DB {
					db, err := state.OpenMemory([]state.Spec{{Name: "st", Kind: state.Session, RetentionMs: hides, SegmentIntervalMs: 7, InMemory: true, Logged: true}},
						state.Options{Policy: policy, Log: quiet})
					must(t, err)
					db.Bind(&state.Context{})
					return db
				}
				db := open()
				defer db.Close()
				s, err := db.SessionBytes("st")
				must(t, err)
				c.writes(s)
				if got := endedBy(t, s, 50); !slices.Equal(got, c.want) {
					t.Errorf("found %v, want %v", got, c.want)
				}
				gen, err := db.Seal()
				must(t, err)
				var log []state.RestoreRecord
				for rec := range gen.Changelog() {
					log = append(log, state.RestoreRecord{Key: slices.Clone(rec.Key), Value: slices.Clone(rec.Value), Timestamp: rec.Timestamp})
				}
				restored := open()
				defer restored.Close()
				must(t, restored.Restore("st", log, int64(len(log))))
				s, err = restored.SessionBytes("st")
				must(t, err)
				if got := endedBy(t, s, 50); !slices.Equal(got, c.want) {
					t.Errorf("restored, it finds %v, want %v", got, c.want)
				}
			})
		}
	}
}

// putSession puts a session of key k; an empty value is null.
func putSession(t *testing.T, s state.SessionBytes, value string, start, end int64, expired bool) {
	t.Helper()
	var v []byte
	if value != "" {
		v = []byte(value)
	}
	if got, err := s.Put([]byte("k"), v, start, end); err != nil || got != expired {
		t.Errorf("put %d-%d: expired %t, %v", start, end, got, err)
	}
}

func endedBy(t *testing.T, s state.SessionBytes, to int64) (found []string) {
	t.Helper()
	it, err := s.FindEnded(0, to)
	must(t, err)
	for it.Next() {
		found = append(found, fmt.Sprint(it.Start(), "-", it.End()))
	}
	must(t, it.Close())
	return found
}
