package state_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/state"
)

type kvEntry struct {
	value string
	ts    int64
}

type kvModel struct {
	entries map[string]kvEntry
	timed   bool
}

func (m *kvModel) clone() model { return &kvModel{maps.Clone(m.entries), m.timed} }

func (m *kvModel) ts(ts int64) int64 {
	if !m.timed {
		return 0
	}
	return ts
}

func (m *kvModel) write(t *rapid.T, db *state.DB) {
	s, err := db.KeyValueBytes("st")
	fatal(t, err)
	key, value, ts := drawKey.Draw(t, "key"), drawValue(t), int64(rapid.IntRange(0, 99).Draw(t, "ts"))
	before, had := m.entries[key]
	switch rapid.IntRange(0, 3).Draw(t, "op") {
	case 0:
		old, oldTS, ok, err := s.Delete([]byte(key), []byte("x"))
		fatal(t, err)
		if ok != had || ok && (string(old) != "x"+before.value || oldTS != before.ts) {
			t.Fatalf("delete %q gave %q %d %v, want %v %v", key, old, oldTS, ok, before, had)
		}
		delete(m.entries, key)
	case 1:
		old, oldTS, ok, err := s.PutIfAbsent([]byte(key), value, ts, nil)
		fatal(t, err)
		if ok != had || ok && (string(old) != before.value || oldTS != before.ts) {
			t.Fatalf("putIfAbsent %q gave %q %d %v, want %v %v", key, old, oldTS, ok, before, had)
		}
		if !had && value != nil {
			m.entries[key] = kvEntry{string(value), m.ts(ts)}
		}
	default:
		fatal(t, s.Put([]byte(key), value, ts))
		if value == nil {
			delete(m.entries, key)
		} else {
			m.entries[key] = kvEntry{string(value), m.ts(ts)}
		}
	}
}

func (m *kvModel) check(t *rapid.T, stores state.Stores) {
	s, err := stores.KeyValueBytes("st")
	fatal(t, err)
	key := drawKey.Draw(t, "key")
	got, ts, ok, err := s.Get([]byte(key), []byte("dst"))
	fatal(t, err)
	if want, had := m.entries[key]; ok != had || ok && (string(got) != "dst"+want.value || ts != want.ts) {
		t.Fatalf("get %q gave %q %d %v, want %v %v", key, got, ts, ok, want, had)
	}
	from, to := drawBound(t, "from"), drawBound(t, "to")
	it, err := s.Range(from, to)
	fatal(t, err)
	equal(t, fmt.Sprintf("range %q %q", from, to), m.scan(from, to), drainKV(t, it))
	it, err = s.ReverseRange(from, to)
	fatal(t, err)
	equal(t, fmt.Sprintf("reverse range %q %q", from, to), reversed(m.scan(from, to), state.Backward), drainKV(t, it))
	it, err = s.Prefix([]byte(key))
	fatal(t, err)
	equal(t, fmt.Sprintf("prefix %q", key), m.prefix(key), drainKV(t, it))
	n, err := s.ApproximateNumEntries()
	fatal(t, err)
	if n != int64(len(m.entries)) && countsExactly(stores) {
		t.Fatalf("%d entries, want %d", n, len(m.entries))
	}
}

// countsExactly tells that a store of few entries knows their number: in place of a database it says what RocksDB would.
func countsExactly(stores state.Stores) bool {
	db, isDB := stores.(*state.DB)
	spec, _ := stores.Spec("st")
	return !isDB || spec.InMemory || db.OnDisk()
}

func (m *kvModel) scan(from, to []byte) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(m.entries)) {
		if inBounds(k, from, to) {
			out = append(out, fmt.Sprintf("%q=%q@%d", k, m.entries[k].value, m.entries[k].ts))
		}
	}
	return out
}

func (m *kvModel) prefix(p string) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(m.entries)) {
		if len(k) >= len(p) && k[:len(p)] == p {
			out = append(out, fmt.Sprintf("%q=%q@%d", k, m.entries[k].value, m.entries[k].ts))
		}
	}
	return out
}

func drainKV(t *rapid.T, it state.KeyValueIterator) (out []string) {
	for it.Next() {
		out = append(out, fmt.Sprintf("%q=%q@%d", it.Key(), it.Value(), it.Timestamp()))
	}
	fatal(t, it.Close())
	return out
}

func TestKeyValueModel(t *testing.T) {
	for _, kind := range []state.Kind{state.KeyValue, state.TimestampedKeyValue} {
		for _, inMemory := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/in memory %v", kind, inMemory), func(t *testing.T) {
				checkModel(t, state.Spec{Kind: kind, InMemory: inMemory}, func() model {
					return &kvModel{map[string]kvEntry{}, kind == state.TimestampedKeyValue}
				})
			})
		}
	}
}
