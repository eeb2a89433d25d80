package state_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/state"
)

type windowEntry struct {
	key   string
	start int64
	seq   int
	value string
	ts    int64
}

type windowModel struct {
	spec       state.Spec
	entries    []windowEntry
	streamTime int64
	seq        int
}

func (m *windowModel) clone() model {
	c := *m
	c.entries = slices.Clone(m.entries)
	return &c
}

func (m *windowModel) visibleFrom() int64 {
	if m.spec.TimeOrdered {
		return m.streamTime - m.spec.RetentionMs
	}
	return m.streamTime - m.spec.RetentionMs + 1
}

func (m *windowModel) segment(ts int64) int64 { return ts / m.spec.SegmentMs() }

func (m *windowModel) expired(start int64) bool {
	if m.spec.InMemory {
		return start <= m.streamTime-m.spec.RetentionMs
	}
	return m.segment(start) < m.segment(m.streamTime-m.spec.RetentionMs)
}

func (m *windowModel) write(t *rapid.T, db *state.DB) {
	s, err := db.WindowBytes("st")
	fatal(t, err)
	key, value := drawKey.Draw(t, "key"), drawValue(t)
	start, ts := int64(rapid.IntRange(0, 60).Draw(t, "start")), int64(rapid.IntRange(0, 99).Draw(t, "ts"))
	expired, err := s.Put([]byte(key), value, start, ts)
	fatal(t, err)
	if !m.put(key, value, start, ts) == expired {
		return
	}
	t.Fatalf("put %q at %d: expired %v, stream time %d", key, start, expired, m.streamTime)
}

// put is false if the window is refused.
func (m *windowModel) put(key string, value []byte, start, ts int64) bool {
	if m.spec.RetainDuplicates && value == nil {
		if m.spec.InMemory {
			m.streamTime = max(m.streamTime, start)
			return !m.expired(start)
		}
		return true
	}
	m.streamTime = max(m.streamTime, start)
	if m.expired(start) {
		return false
	}
	if m.spec.Kind == state.Window {
		ts = 0
	}
	if !m.spec.RetainDuplicates {
		m.entries = slices.DeleteFunc(m.entries, func(e windowEntry) bool { return e.key == key && e.start == start })
	}
	if value != nil {
		m.seq++
		m.entries = append(m.entries, windowEntry{key, start, m.seq, string(value), ts})
	}
	return true
}

// order gives the visible entries that match, in a store's order: by key within segments, or by time.
func (m *windowModel) order(byTime bool, match func(windowEntry) bool) (out []windowEntry) {
	for _, e := range m.entries {
		if e.start >= m.visibleFrom() && !m.expiredSegment(e.start) && match(e) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b windowEntry) int {
		if byTime {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.key, b.key), cmp.Compare(a.seq, b.seq))
		}
		return cmp.Or(cmp.Compare(m.segment(a.start), m.segment(b.start)), cmp.Compare(a.key, b.key),
			cmp.Compare(a.start, b.start), cmp.Compare(a.seq, b.seq))
	})
	return out
}

func (m *windowModel) expiredSegment(start int64) bool {
	return m.segment(start) < m.segment(m.streamTime-m.spec.RetentionMs)
}

func windowStrings(entries []windowEntry) (out []string) {
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%q@%d=%q@%d", e.key, e.start, e.value, e.ts))
	}
	return out
}

func (m *windowModel) check(t *rapid.T, stores state.Stores) {
	s, err := stores.WindowBytes("st")
	fatal(t, err)
	if s.StreamTime() != m.streamTime {
		t.Fatalf("stream time %d, want %d", s.StreamTime(), m.streamTime)
	}
	dir := state.Direction(rapid.Bool().Draw(t, "backward"))
	key := drawKey.Draw(t, "key")
	from, to := int64(rapid.IntRange(-5, 60).Draw(t, "from")), int64(rapid.IntRange(-5, 70).Draw(t, "to"))
	within := func(e windowEntry) bool { return e.start >= from && e.start <= to }
	byTime := m.spec.InMemory || m.spec.TimeOrdered

	it, err := s.All(dir)
	m.compare(t, "all", byTime, dir, it, err, func(windowEntry) bool { return true })
	it, err = s.FetchAll(from, to, dir)
	m.compare(t, fmt.Sprintf("fetchAll %d %d", from, to), byTime, dir, it, err, within)
	it, err = s.Fetch([]byte(key), from, to, dir)
	m.compare(t, fmt.Sprintf("fetch %q %d %d", key, from, to), true, dir, it, err,
		func(e windowEntry) bool { return within(e) && e.key == key })
	low, high := drawBound(t, "low"), drawBound(t, "high")
	it, err = s.FetchRange(low, high, from, to, dir)
	m.compare(t, fmt.Sprintf("fetchRange %q %q %d %d", low, high, from, to), m.spec.InMemory, dir, it, err,
		func(e windowEntry) bool { return within(e) && inBounds(e.key, low, high) })
	if !m.spec.RetainDuplicates {
		m.checkGet(t, s, key, to)
	}
}

func (m *windowModel) compare(t *rapid.T, what string, byTime bool, dir state.Direction, it state.WindowIterator, err error, match func(windowEntry) bool) {
	fatal(t, err)
	var got []string
	for it.Next() {
		got = append(got, fmt.Sprintf("%q@%d=%q@%d", it.Key(), it.Start(), it.Value(), it.Timestamp()))
	}
	fatal(t, it.Close())
	equal(t, what, reversed(windowStrings(m.order(byTime, match)), dir), got)
}

func (m *windowModel) checkGet(t *rapid.T, s state.WindowBytes, key string, start int64) {
	v, ts, ok, err := s.Get([]byte(key), start, nil)
	fatal(t, err)
	want := windowStrings(m.order(true, func(e windowEntry) bool { return e.key == key && e.start == start }))
	var got []string
	if ok {
		got = []string{fmt.Sprintf("%q@%d=%q@%d", key, start, v, ts)}
	}
	equal(t, fmt.Sprintf("get %q %d", key, start), want, got)
}

func TestWindowModel(t *testing.T) {
	for name, spec := range map[string]state.Spec{
		"key-ordered":       {Kind: state.TimestampedWindow, RetentionMs: 20, SegmentIntervalMs: 7},
		"plain":             {Kind: state.Window, RetentionMs: 20, SegmentIntervalMs: 7},
		"time-ordered":      {Kind: state.TimestampedWindow, RetentionMs: 20, SegmentIntervalMs: 7, TimeOrdered: true},
		"in memory":         {Kind: state.TimestampedWindow, RetentionMs: 20, SegmentIntervalMs: 7, InMemory: true},
		"duplicates":        {Kind: state.Window, RetentionMs: 20, SegmentIntervalMs: 7, RetainDuplicates: true},
		"duplicates memory": {Kind: state.Window, RetentionMs: 20, SegmentIntervalMs: 7, RetainDuplicates: true, InMemory: true},
		"many segments":     {Kind: state.Window, RetentionMs: 50, SegmentIntervalMs: 1},
		"long retention":    {Kind: state.Window, RetentionMs: 1 << 62},
	} {
		t.Run(name, func(t *testing.T) {
			checkModel(t, spec, func() model { return &windowModel{spec: spec, streamTime: -1} })
		})
	}
}
