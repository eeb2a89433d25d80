package state_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/state"
)

type sessionEntry struct {
	key        string
	start, end int64
	value      string
}

type sessionModel struct {
	spec       state.Spec
	entries    []sessionEntry
	streamTime int64
}

func (m *sessionModel) clone() model {
	c := *m
	c.entries = slices.Clone(m.entries)
	return &c
}

func (m *sessionModel) segment(ts int64) int64 { return ts / m.spec.SegmentMs() }

func (m *sessionModel) expired(end int64) bool {
	if m.spec.InMemory {
		return end <= m.streamTime-m.spec.RetentionMs
	}
	return m.segment(end) < m.segment(m.streamTime-m.spec.RetentionMs)
}

func (m *sessionModel) write(t *rapid.T, db *state.DB) {
	s, err := db.SessionBytes("st")
	fatal(t, err)
	key, value := drawKey.Draw(t, "key"), drawValue(t)
	start := int64(rapid.IntRange(0, 60).Draw(t, "start"))
	end := start + int64(rapid.IntRange(0, 8).Draw(t, "length"))
	if len(m.entries) > 0 && rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
		e := rapid.SampledFrom(m.entries).Draw(t, "entry")
		fatal(t, s.Remove([]byte(e.key), e.start, e.end))
		m.remove(e.key, e.start, e.end)
		return
	}
	expired, err := s.Put([]byte(key), value, start, end)
	fatal(t, err)
	m.streamTime = max(m.streamTime, end)
	if expired != m.expired(end) {
		t.Fatalf("put %q %d-%d: expired %v, stream time %d", key, start, end, expired, m.streamTime)
	}
	if expired && value != nil {
		return
	}
	m.remove(key, start, end)
	if value != nil {
		m.entries = append(m.entries, sessionEntry{key, start, end, string(value)})
	}
}

func (m *sessionModel) remove(key string, start, end int64) {
	m.entries = slices.DeleteFunc(m.entries, func(e sessionEntry) bool { return e.key == key && e.start == start && e.end == end })
}

const (
	keyOrder    = "key"
	timeOrder   = "time" // as time-ordered persistent stores: end, start, key
	memoryOrder = "memory"
)

// visible tells whether retention doesn't hide a session, kept whether it is in a segment that is still there.
func (m *sessionModel) visible(e sessionEntry) bool { return e.end > m.streamTime-m.spec.RetentionMs }
func (m *sessionModel) kept(e sessionEntry) bool {
	return m.segment(e.end) >= m.segment(m.streamTime-m.spec.RetentionMs)
}

func (m *sessionModel) order(order string, match func(sessionEntry) bool) (out []string) {
	var found []sessionEntry
	for _, e := range m.entries {
		if match(e) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b sessionEntry) int {
		byKey, byStart, byEnd := cmp.Compare(a.key, b.key), cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)
		switch order {
		case timeOrder:
			return cmp.Or(byEnd, byStart, byKey)
		case memoryOrder:
			return cmp.Or(byEnd, byKey, -byStart)
		}
		return cmp.Or(cmp.Compare(m.segment(a.end), m.segment(b.end)), byKey, byEnd, byStart)
	})
	for _, e := range found {
		out = append(out, fmt.Sprintf("%q@%d-%d=%q", e.key, e.start, e.end, e.value))
	}
	return out
}

func (m *sessionModel) check(t *rapid.T, stores state.Stores) {
	s, err := stores.SessionBytes("st")
	fatal(t, err)
	dir := state.Direction(rapid.Bool().Draw(t, "backward"))
	key := drawKey.Draw(t, "key")
	earliest, latest := int64(rapid.IntRange(-5, 70).Draw(t, "earliest end")), int64(rapid.IntRange(-5, 70).Draw(t, "latest start"))
	ofKey, ofRange, ended := keyOrder, keyOrder, keyOrder
	if m.spec.InMemory {
		ofKey, ofRange, ended = memoryOrder, memoryOrder, memoryOrder
	} else if m.spec.TimeOrdered {
		ended = timeOrder
	}

	it, err := s.Fetch([]byte(key), dir)
	m.compare(t, fmt.Sprintf("fetch %q", key), ofKey, dir, it, err, func(e sessionEntry) bool { return m.visible(e) && e.key == key })
	it, err = s.Find([]byte(key), earliest, latest, dir)
	m.compare(t, fmt.Sprintf("find %q %d %d", key, earliest, latest), ofKey, dir, it, err,
		func(e sessionEntry) bool {
			return m.visible(e) && e.key == key && e.end >= earliest && e.start <= latest
		})
	low, high := drawBound(t, "low"), drawBound(t, "high")
	it, err = s.FindRange(low, high, earliest, latest, dir)
	m.compare(t, fmt.Sprintf("findRange %q %q %d %d", low, high, earliest, latest), ofRange, dir, it, err,
		func(e sessionEntry) bool {
			return m.visible(e) && inBounds(e.key, low, high) && e.end >= earliest && e.start <= latest
		})
	it, err = s.FetchRange(low, high, dir)
	m.compare(t, fmt.Sprintf("fetchRange %q %q", low, high), ofRange, dir, it, err,
		func(e sessionEntry) bool { return m.visible(e) && inBounds(e.key, low, high) })
	it, err = s.FindEnded(earliest, latest)
	m.compare(t, fmt.Sprintf("findEnded %d %d", earliest, latest), ended, state.Forward, it, err,
		func(e sessionEntry) bool { return m.kept(e) && e.end >= earliest && e.end <= latest })

	v, ok, err := s.Get([]byte(key), latest, earliest, nil)
	fatal(t, err)
	var got []string
	if ok {
		got = []string{fmt.Sprintf("%q@%d-%d=%q", key, latest, earliest, v)}
	}
	equal(t, "get", m.order(keyOrder, func(e sessionEntry) bool {
		return m.visible(e) && e.key == key && e.start == latest && e.end == earliest
	}), got)
}

func (m *sessionModel) compare(t *rapid.T, what, order string, dir state.Direction, it state.SessionIterator, err error, match func(sessionEntry) bool) {
	fatal(t, err)
	var got []string
	for it.Next() {
		got = append(got, fmt.Sprintf("%q@%d-%d=%q", it.Key(), it.Start(), it.End(), it.Value()))
	}
	fatal(t, it.Close())
	equal(t, what, reversed(m.order(order, match), dir), got)
}

func TestSessionModel(t *testing.T) {
	for name, spec := range map[string]state.Spec{
		"key-ordered":  {Kind: state.Session, RetentionMs: 20, SegmentIntervalMs: 7},
		"time-ordered": {Kind: state.Session, RetentionMs: 20, SegmentIntervalMs: 7, TimeOrdered: true},
		"in memory":    {Kind: state.Session, RetentionMs: 20, SegmentIntervalMs: 7, InMemory: true},
	} {
		t.Run(name, func(t *testing.T) {
			checkModel(t, spec, func() model { return &sessionModel{spec: spec, streamTime: -1} })
		})
	}
}
