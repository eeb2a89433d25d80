package state_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/state"
)

// buffered is a change in the model of a suppress buffer. Values are nil or text.
type buffered struct {
	time            int64
	prior, old, new []byte
	ctx             state.Context
}

func (b buffered) String() string {
	return fmt.Sprintf("%d %s/%s/%s %v", b.time, text(b.prior), text(b.old), text(b.new), b.ctx)
}

func text(b []byte) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%q", b)
}

func drawContext(t *rapid.T) state.Context {
	c := state.Context{
		Timestamp: int64(rapid.IntRange(0, 99).Draw(t, "timestamp")), Offset: int64(rapid.IntRange(-1, 9).Draw(t, "offset")),
		Topic: rapid.SampledFrom([]string{"", "topic"}).Draw(t, "topic"), Partition: int32(rapid.IntRange(-1, 2).Draw(t, "partition")),
	}
	for range rapid.IntRange(0, 2).Draw(t, "headers") {
		c.Headers = append(c.Headers, state.Header{Key: "h", Value: drawValue(t)})
	}
	return c
}

type suppressModel struct{ changes map[string]buffered }

func (m *suppressModel) clone() model { return &suppressModel{maps.Clone(m.changes)} }

func (m *suppressModel) write(t *rapid.T, db *state.DB) {
	s, err := db.ChangeBuffer("st")
	fatal(t, err)
	if rapid.IntRange(0, 3).Draw(t, "evict") == 0 {
		m.evict(t, s)
		return
	}
	key, old, new := drawKey.Draw(t, "key"), drawValue(t), drawValue(t)
	at := int64(rapid.IntRange(0, 20).Draw(t, "time"))
	ctx := drawContext(t)
	fatal(t, s.Put(at, []byte(key), old, new, &ctx))
	b := buffered{at, old, old, new, ctx}
	if before, ok := m.changes[key]; ok {
		b.time, b.prior = before.time, before.prior
	}
	m.changes[key] = b
	m.checkSize(t, s)
}

func (m *suppressModel) sorted() []string {
	return slices.SortedFunc(maps.Keys(m.changes), func(a, b string) int {
		return cmp.Or(cmp.Compare(m.changes[a].time, m.changes[b].time), cmp.Compare(a, b))
	})
}

func (m *suppressModel) evict(t *rapid.T, s state.ChangeBuffer) {
	left := rapid.IntRange(0, 3).Draw(t, "how many")
	want := m.sorted()[:min(left, len(m.changes))]
	var got []string
	fatal(t, s.EvictWhile(func() bool { left--; return left >= -1 && len(got) < len(want) }, func(e *state.BufferedChange) error {
		if s.MinTime() != e.Time {
			t.Fatalf("min time %d when evicting %d", s.MinTime(), e.Time)
		}
		b := buffered{e.Time, e.Prior, e.Old, e.New, e.Context}
		if w := m.changes[string(e.Key)]; b.String() != w.String() {
			t.Fatalf("evicted %q: %v, want %v", e.Key, b, w)
		}
		got = append(got, string(e.Key))
		return nil
	}))
	equal(t, "evicted", slices.Clip(want), got)
	for _, k := range got {
		delete(m.changes, k)
	}
	m.checkSize(t, s)
}

func (m *suppressModel) checkSize(t *rapid.T, s state.ChangeBuffer) {
	first := int64(math.MaxInt64)
	var size int64
	for k, b := range m.changes {
		first = min(first, b.time)
		n := 8 + len(k) + len(b.prior) + len(b.new) + 8 + 8 + len(b.ctx.Topic) + 4
		if !bytes.Equal(b.old, b.prior) {
			n += len(b.old)
		}
		for _, h := range b.ctx.Headers {
			n += len(h.Key) + len(h.Value)
		}
		size += int64(n)
	}
	if s.NumRecords() != int64(len(m.changes)) || s.MinTime() != first || s.Bytes() != size {
		t.Fatalf("%d records, min time %d, %d bytes; want %d, %d, %d", s.NumRecords(), s.MinTime(), s.Bytes(), len(m.changes), first, size)
	}
}

func (m *suppressModel) check(t *rapid.T, stores state.Stores) {
	db, ok := stores.(*state.DB)
	if !ok {
		return // buffers are not shown to queries
	}
	s, err := db.ChangeBuffer("st")
	fatal(t, err)
	m.checkSize(t, s)
	key := drawKey.Draw(t, "key")
	prior, ok, err := s.Prior([]byte(key), nil)
	fatal(t, err)
	want, has := m.changes[key]
	if ok != has || text(prior) != text(want.prior) {
		t.Fatalf("prior of %q: %q %v, want %v %v", key, prior, ok, want, has)
	}
}

func TestSuppressModel(t *testing.T) {
	checkModel(t, state.Spec{Kind: state.SuppressBuffer}, func() model { return &suppressModel{map[string]buffered{}} })
}

type recordEntry struct {
	key string
	ts  int64
	n   int
	val string
	ctx state.Context
}

type recordBufferModel struct {
	records    []recordEntry
	streamTime int64
	n          int
}

const modelGrace = 5

func (m *recordBufferModel) clone() model {
	return &recordBufferModel{slices.Clone(m.records), m.streamTime, m.n}
}

func (m *recordBufferModel) write(t *rapid.T, db *state.DB) {
	s, err := db.RecordBuffer("st")
	fatal(t, err)
	if rapid.IntRange(0, 3).Draw(t, "evict") == 0 {
		m.evict(t, s)
		return
	}
	// One length of keys: with several, the order within one time depends on the sequence numbers behind them.
	key := rapid.StringMatching("[ab]").Draw(t, "key")
	ts, ctx := int64(rapid.IntRange(0, 30).Draw(t, "ts")), drawContext(t)
	value := []byte(rapid.StringMatching("[a-z]{0,3}").Draw(t, "value"))
	ok, err := s.Put([]byte(key), value, ts, &ctx)
	fatal(t, err)
	if want := ts >= m.streamTime-modelGrace; ok != want {
		t.Fatalf("put at %d, stream time %d: %v", ts, m.streamTime, ok)
	}
	if ok {
		m.n++
		m.streamTime = max(m.streamTime, ts)
		m.records = append(m.records, recordEntry{key, ts, m.n, string(value), ctx})
	}
}

func (m *recordBufferModel) evict(t *rapid.T, s state.RecordBuffer) {
	var want, got []string
	slices.SortFunc(m.records, func(a, b recordEntry) int {
		return cmp.Or(cmp.Compare(a.ts, b.ts), cmp.Compare(a.key, b.key), cmp.Compare(a.n, b.n))
	})
	m.records = slices.DeleteFunc(m.records, func(e recordEntry) bool {
		if e.ts > m.streamTime-modelGrace {
			return false
		}
		want = append(want, fmt.Sprintf("%q %q %v", e.key, e.val, e.ctx))
		return true
	})
	fatal(t, s.Evict(func(r *state.BufferedRecord) error {
		got = append(got, fmt.Sprintf("%q %q %v", r.Key, r.Value, r.Context))
		return nil
	}))
	equal(t, "evicted", want, got)
}

func (m *recordBufferModel) check(t *rapid.T, stores state.Stores) {
	db, ok := stores.(*state.DB)
	if !ok {
		return
	}
	s, err := db.RecordBuffer("st")
	fatal(t, err)
	var size int64
	for _, e := range m.records {
		size += int64(1 + 8 + 4 + len(e.key) + len(e.val) + 8 + 8 + 4 + len(e.ctx.Topic))
		for _, h := range e.ctx.Headers {
			size += int64(len(h.Key) + len(h.Value))
		}
	}
	if s.NumRecords() != int64(len(m.records)) || s.Bytes() != size || s.StreamTime() != m.streamTime {
		t.Fatalf("%d records, %d bytes, stream time %d; want %d, %d, %d", s.NumRecords(), s.Bytes(), s.StreamTime(), len(m.records), size, m.streamTime)
	}
}

func TestRecordBufferModel(t *testing.T) {
	checkModel(t, state.Spec{Kind: state.JoinBuffer, GraceMs: modelGrace}, func() model { return &recordBufferModel{streamTime: -1} })
}

type joinListModel struct{ lists map[string][]string }

func (m *joinListModel) clone() model {
	c := &joinListModel{map[string][]string{}}
	for k, l := range m.lists {
		c.lists[k] = slices.Clone(l)
	}
	return c
}

func (m *joinListModel) write(t *rapid.T, db *state.DB) {
	s, err := db.JoinList("st")
	fatal(t, err)
	left := rapid.Bool().Draw(t, "left")
	key := string(state.AppendJoinKey(nil, []byte(drawKey.Draw(t, "key")), int64(rapid.IntRange(0, 3).Draw(t, "ts")), left))
	switch rapid.IntRange(0, 4).Draw(t, "op") {
	case 0:
		fatal(t, s.Delete([]byte(key)))
		delete(m.lists, key)
	case 1:
		fatal(t, s.DeleteIfPresent([]byte(key)))
		delete(m.lists, key)
	default:
		value := state.AppendSideValue(nil, []byte(rapid.StringMatching("[a-z]{0,3}").Draw(t, "value")), left)
		fatal(t, s.Add([]byte(key), value))
		m.lists[key] = append(m.lists[key], string(value))
	}
}

func (m *joinListModel) check(t *rapid.T, stores state.Stores) {
	db, ok := stores.(*state.DB)
	if !ok {
		return
	}
	s, err := db.JoinList("st")
	fatal(t, err)
	it, err := s.All()
	fatal(t, err)
	var want, got []string
	for _, k := range slices.Sorted(maps.Keys(m.lists)) {
		for _, v := range m.lists[k] {
			want = append(want, fmt.Sprintf("%q=%q", k, v))
		}
	}
	for it.Next() {
		got = append(got, fmt.Sprintf("%q=%q", it.Key(), it.Value()))
	}
	fatal(t, it.Close())
	equal(t, "all", want, got)
}

func TestJoinListModel(t *testing.T) {
	checkModel(t, state.Spec{Kind: state.JoinList}, func() model { return &joinListModel{map[string][]string{}} })
}

type lruModel struct {
	kvModel
	order []string // oldest first
	max   int
}

func (m *lruModel) clone() model {
	return &lruModel{kvModel{maps.Clone(m.entries), m.timed}, slices.Clone(m.order), m.max}
}

func (m *lruModel) touch(key string) {
	m.order = slices.DeleteFunc(m.order, func(k string) bool { return k == key })
	if _, ok := m.entries[key]; ok {
		m.order = append(m.order, key)
	}
}

func TestLRU(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db, err := state.OpenMemory([]state.Spec{{Name: "st", Kind: state.KeyValue, InMemory: true, MaxEntries: 3, Logged: true}}, state.Options{Log: quiet})
		fatal(t, err)
		defer db.Close()
		s, err := db.KeyValueBytes("st")
		fatal(t, err)
		m := &lruModel{kvModel{map[string]kvEntry{}, false}, nil, 3}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				key, value := drawKey.Draw(t, "key"), drawValue(t)
				fatal(t, s.Put([]byte(key), value, 0))
				m.entries[key] = kvEntry{string(value), 0}
				if value == nil {
					delete(m.entries, key)
				}
				if m.touch(key); len(m.entries) > m.max {
					delete(m.entries, m.order[0])
					m.order = m.order[1:]
				}
			},
			"get": func(t *rapid.T) {
				key := drawKey.Draw(t, "key")
				_, _, ok, err := s.Get([]byte(key), nil)
				fatal(t, err)
				if _, want := m.entries[key]; ok != want {
					t.Fatalf("get %q: %v, want %v", key, ok, want)
				}
				m.touch(key)
			},
			"commit": func(t *rapid.T) {
				gen, err := db.Seal()
				fatal(t, err)
				fatal(t, gen.Apply(nil, nil))
			},
			"": func(t *rapid.T) {
				it, err := s.Range(nil, nil)
				fatal(t, err)
				equal(t, "range", m.scan(nil, nil), drainKV(t, it))
			},
		})
	})
}
