package state_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/state"
)

// versionRow is a version with an end, or (to == from) a tombstone that nothing preceded.
type versionRow struct {
	from, to int64
	value    string
	null     bool
}

type versionedKey struct {
	latest *versionRow // to is not set
	older  []versionRow
}

type versionedModel struct {
	spec       state.Spec
	keys       map[string]versionedKey
	streamTime int64
}

func (m *versionedModel) clone() model {
	c := &versionedModel{spec: m.spec, keys: map[string]versionedKey{}, streamTime: m.streamTime}
	for k, v := range m.keys {
		c.keys[k] = versionedKey{v.latest, slices.Clone(v.older)}
	}
	return c
}

func (m *versionedModel) write(t *rapid.T, db *state.DB) {
	s, err := db.VersionedBytes("st")
	fatal(t, err)
	key, value, ts := drawKey.Draw(t, "key"), drawValue(t), int64(rapid.IntRange(0, 60).Draw(t, "ts"))
	if value == nil && rapid.Bool().Draw(t, "delete") {
		before := m.asOf(key, ts)
		if ts < m.streamTime-m.spec.HistoryMs {
			before = nil
		}
		m.put(key, nil, ts)
		v, ok, err := s.Delete([]byte(key), ts, nil)
		fatal(t, err)
		equal(t, "delete", before, versionStrings(v, ok))
		return
	}
	want := m.put(key, value, ts)
	got, err := s.Put([]byte(key), value, ts)
	fatal(t, err)
	if got != want {
		t.Fatalf("put %q at %d gave %d, want %d", key, ts, got, want)
	}
}

func versionStrings(v state.BytesVersion, ok bool) []string {
	if !ok {
		return nil
	}
	return []string{fmt.Sprintf("%q@%d-%d", v.Value, v.ValidFrom, v.ValidTo)}
}

func (m *versionedModel) put(key string, value []byte, ts int64) int64 {
	if ts < m.streamTime-m.spec.HistoryMs {
		return state.VersionNotPut
	}
	m.streamTime = max(m.streamTime, ts)
	e := m.keys[key]
	defer func() { m.keys[key] = e }()
	fresh := &versionRow{from: ts, value: string(value), null: value == nil}
	if e.latest != nil && ts >= e.latest.from {
		if ts > e.latest.from {
			e.older = append(e.older, versionRow{e.latest.from, ts, e.latest.value, false})
		}
		if e.latest = fresh; value == nil {
			e.latest = nil
		}
		return state.LatestVersion
	}
	for i, v := range e.older {
		if v.from <= ts && ts < v.to {
			split := versionRow{ts, v.to, string(value), value == nil}
			e.older[i].to = ts
			if v.from == ts {
				e.older = slices.Delete(e.older, i, i+1)
			}
			e.older = append(e.older, split)
			return v.to
		}
	}
	next := state.LatestVersion
	if e.latest != nil {
		next = e.latest.from
	}
	for _, v := range e.older {
		if v.to > ts && (next == state.LatestVersion || v.from < next) {
			next = v.from
		}
	}
	switch {
	case next != state.LatestVersion:
		e.older = append(e.older, versionRow{ts, next, string(value), value == nil})
	case value != nil:
		e.latest = fresh
	case !slices.ContainsFunc(e.older, func(v versionRow) bool { return v.to == ts && m.live(v) }):
		e.older = append(e.older, versionRow{ts, ts, "", true})
	}
	return next
}

// live tells whether the segment of a version is still there.
func (m *versionedModel) live(v versionRow) bool {
	return v.to/m.spec.SegmentMs() >= (m.streamTime-m.spec.HistoryMs)/m.spec.SegmentMs()
}

func (m *versionedModel) asOf(key string, ts int64) []string {
	e := m.keys[key]
	if e.latest != nil && e.latest.from <= ts {
		return []string{fmt.Sprintf("%q@%d-%d", e.latest.value, e.latest.from, state.LatestVersion)}
	}
	if ts < m.streamTime-m.spec.HistoryMs {
		return nil
	}
	for _, v := range e.older {
		if v.from <= ts && ts < v.to && !v.null {
			return []string{fmt.Sprintf("%q@%d-%d", v.value, v.from, v.to)}
		}
	}
	return nil
}

func (m *versionedModel) history(key string, from, to int64) (out []string) {
	e := m.keys[key]
	older := slices.Clone(e.older)
	slices.SortFunc(older, func(a, b versionRow) int { return cmp.Compare(a.from, b.from) })
	if to >= m.streamTime-m.spec.HistoryMs {
		for _, v := range older {
			if !v.null && v.from <= to && v.to > from && m.live(v) {
				out = append(out, fmt.Sprintf("%q@%d-%d", v.value, v.from, v.to))
			}
		}
	}
	if e.latest != nil && e.latest.from <= to {
		out = append(out, fmt.Sprintf("%q@%d-%d", e.latest.value, e.latest.from, state.LatestVersion))
	}
	return out
}

func (m *versionedModel) check(t *rapid.T, stores state.Stores) {
	s, err := stores.VersionedBytes("st")
	fatal(t, err)
	if s.StreamTime() != m.streamTime {
		t.Fatalf("stream time %d, want %d", s.StreamTime(), m.streamTime)
	}
	asOf := int64(rapid.IntRange(0, 70).Draw(t, "as of"))
	from, to := int64(rapid.IntRange(0, 60).Draw(t, "from")), int64(rapid.IntRange(0, 70).Draw(t, "to"))
	dir := state.Direction(rapid.Bool().Draw(t, "backward"))
	for key := range maps.Keys(m.keys) {
		v, ok, err := s.GetAsOf([]byte(key), asOf, nil)
		fatal(t, err)
		equal(t, fmt.Sprintf("get %q as of %d", key, asOf), m.asOf(key, asOf), versionStrings(v, ok))
		v, ok, err = s.Get([]byte(key), nil)
		fatal(t, err)
		var want []string
		if l := m.keys[key].latest; l != nil {
			want = []string{fmt.Sprintf("%q@%d-%d", l.value, l.from, state.LatestVersion)}
		}
		equal(t, fmt.Sprintf("get %q", key), want, versionStrings(v, ok))
		m.checkHistory(t, s, key, from, to, dir)
	}
}

func (m *versionedModel) checkHistory(t *rapid.T, s state.VersionedBytes, key string, from, to int64, dir state.Direction) {
	it, err := s.History([]byte(key), from, to, dir)
	fatal(t, err)
	var got []string
	for it.Next() {
		got = append(got, versionStrings(it.Version(), true)...)
	}
	fatal(t, it.Close())
	equal(t, fmt.Sprintf("history %q %d-%d", key, from, to), reversed(m.history(key, from, to), dir), got)
}

func TestVersionedModel(t *testing.T) {
	for name, spec := range map[string]state.Spec{
		"short segments": {Kind: state.Versioned, HistoryMs: 20, SegmentIntervalMs: 5},
		"many segments":  {Kind: state.Versioned, HistoryMs: 50, SegmentIntervalMs: 1},
		"one segment":    {Kind: state.Versioned, HistoryMs: 40},
	} {
		t.Run(name, func(t *testing.T) {
			checkModel(t, spec, func() model {
				return &versionedModel{spec: spec, keys: map[string]versionedKey{}, streamTime: -1}
			})
		})
	}
}
