package state_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/state"
)

const (
	hour = int64(time.Hour / time.Millisecond)
	day  = 24 * hour
)

// markedStore is a windowed store with a changelog of which only the end is known.
type markedStore struct {
	t    *testing.T
	db   *state.DB
	spec state.Spec
	next int64
}

// at commits a record of a window at a time, and gives how far the changelog has expired.
func (m *markedStore) at(ts int64) int64 {
	m.t.Helper()
	m.db.Bind(&state.Context{Timestamp: ts})
	if m.spec.Kind == state.Session {
		s, err := m.db.SessionBytes(m.spec.Name)
		must(m.t, err)
		_, err = s.Put([]byte("k"), []byte("v"), ts, ts)
		must(m.t, err)
	} else {
		s, err := m.db.WindowBytes(m.spec.Name)
		must(m.t, err)
		_, err = s.Put([]byte("k"), []byte("v"), ts, ts)
		must(m.t, err)
	}
	gen, err := m.db.Seal()
	must(m.t, err)
	m.next++
	must(m.t, gen.Apply([]int64{m.next}, nil))
	return m.expired()
}

func (m *markedStore) expired() int64 {
	before, ok := m.db.ExpiredBefore(m.spec.Name)
	if ok != (before > 0) {
		m.t.Errorf("expired before %d, %v", before, ok)
	}
	return before
}

// Of a store with a retention of 8 days, segments of 4 and marks every 27 hours, a changelog record has expired a day after its segment has.
func TestExpiredBefore(t *testing.T) {
	start := 400 * day // begins a segment
	for _, kind := range []state.Kind{state.Window, state.TimestampedWindow, state.Session} {
		for _, b := range backends {
			t.Run(fmt.Sprint(kind, "/", b.name), func(t *testing.T) {
				spec := state.Spec{Name: "s", Kind: kind, RetentionMs: 8 * day, Logged: true}
				m := &markedStore{t: t, db: b.open(t, []state.Spec{spec}, state.Options{}), spec: spec}
				if n := m.expired(); n != 0 {
					t.Fatalf("of an empty store %d", n)
				}
				var got []int64
				for _, after := range []int64{
					0,                    // 1: the first mark
					26 * hour,            // 2: too early for another
					27 * hour,            // 3: a mark
					8 * day,              // 4
					13*day - 1, 13 * day, // 5, 6: the first segment has expired for a day
					13 * day, 12 * day, // 7, 8: time stands, or is late
					17 * day, // 9: the segment of 8 days is still there
					1000 * day, 2000 * day,
				} {
					got = append(got, m.at(start+after))
				}
				want := []int64{0, 0, 0, 0, 0, 3, 3, 3, 3, 9, 10}
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

// What is known of the changelog is in the database: whoever opens it goes on from there, and whoever restores finds it out anew.
func TestExpiredBeforeOutlastsTheProcess(t *testing.T) {
	spec := state.Spec{Name: "s", Kind: state.Window, RetentionMs: hour, Logged: true}
	dir := t.TempDir()
	m := &markedStore{t: t, db: openPebble(t, dir, []state.Spec{spec}, state.Options{}), spec: spec}
	m.at(0)
	if n := m.at(25*hour + hour); n != 1 {
		t.Fatalf("expired before %d, want 1", n)
	}
	m.at(40 * hour)
	must(t, m.db.Close())
	m.db = openPebble(t, dir, []state.Spec{spec}, state.Options{})
	if n := m.expired(); n != 1 {
		t.Errorf("after it was opened again: before %d, want 1", n)
	}
	if n := m.at(60 * hour); n != 2 {
		t.Errorf("a mark of before the restart: before %d, want 2", n)
	}
}

func TestExpiredBeforeOfWhatIsRestored(t *testing.T) {
	spec := state.Spec{Name: "s", Kind: state.Window, RetentionMs: hour, Logged: true}
	records := func(ts int64) []state.RestoreRecord {
		return []state.RestoreRecord{{Key: state.AppendWindowKey(nil, []byte("k"), ts, 0), Value: []byte("v"), Timestamp: ts}}
	}
	for _, bulk := range []int64{1, 1 << 30} { // a table for each batch, or all in one
		for _, b := range backends {
			t.Run(fmt.Sprint(b.name, "/", bulk), func(t *testing.T) {
				m := &markedStore{t: t, db: b.open(t, []state.Spec{spec}, state.Options{}), spec: spec}
				m.db.SetBulkBytes(bulk)
				must(t, m.db.BeginRestore("s"))
				must(t, m.db.Restore("s", records(0), 10))
				must(t, m.db.Restore("s", records(26*hour), 20))
				must(t, m.db.EndRestore("s"))
				want := int64(10)
				if b.name == "pebble" && bulk > 1 {
					want = 0 // where in the table time went on isn't known
				}
				if n := m.expired(); n != want {
					t.Errorf("expired before %d, want %d", n, want)
				}
				m.next = 20
				if n := m.at(60 * hour); n != 20 {
					t.Errorf("later: expired before %d, want 20", n)
				}
			})
		}
	}
}

func TestPurged(t *testing.T) {
	for name, c := range map[string]struct {
		spec state.Spec
		want bool
	}{
		"windows":                    {state.Spec{Kind: state.Window, Logged: true}, true},
		"sessions":                   {state.Spec{Kind: state.Session, Logged: true}, true},
		"without a changelog":        {state.Spec{Kind: state.Window}, false},
		"keys":                       {state.Spec{Kind: state.KeyValue, Logged: true}, false},
		"versions":                   {state.Spec{Kind: state.Versioned, Logged: true}, false},
		"another setting":            {state.Spec{Kind: state.Window, Logged: true, TopicConfig: map[string]string{"segment.ms": "1"}}, true},
		"a retention of its own":     {state.Spec{Kind: state.Window, Logged: true, TopicConfig: map[string]string{"retention.ms": "1"}}, false},
		"a policy that only shrinks": {state.Spec{Kind: state.Window, Logged: true, TopicConfig: map[string]string{"cleanup.policy": "compact"}}, false},
	} {
		if got := c.spec.Purged(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
