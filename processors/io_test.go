package processors_test

import (
	"encoding/base64"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

func load[K, V any](e *env, s processors.TopicSource[K, V], raw processors.RawRecord, partitionTime int64, out processors.Child) (int64, error) {
	e.t.Helper()
	source, err := s.NewSource(&rt{env: e, name: "source"}, []processors.Child{out})
	if err != nil {
		e.t.Fatal(err)
	}
	raw.Topic, raw.Offset = "in", 7
	h := source.NewHead("in")
	ts, err := h.Load(&raw, partitionTime)
	if err == nil {
		err = h.Process()
	}
	return ts, err
}

func TestSourceNullRule(t *testing.T) {
	e := newEnv(t)
	var plain tap[string, string]
	source := processors.TopicSource[string, string]{Key: serde.String, Value: serde.String}
	for what, raw := range map[string]processors.RawRecord{"key": {Value: []byte("v")}, "value": {Key: []byte("k")}} {
		_, err := load(e, source, raw, -1, plain.child("out"))
		var d *processors.DeserializationError
		if !errors.As(err, &d) || d.What != what || d.Topic != "in" || d.Offset != 7 || !strings.Contains(err.Error(), "declare the "+what+" as *string") {
			t.Errorf("null %s: %v", what, err)
		}
	}
	source.Table = true
	if _, err := load(e, source, processors.RawRecord{}, -1, plain.child("out")); err != nil {
		t.Error(err)
	}
	want(t, plain.take(), "null=null@0")
	var nullable tap[*string, *string]
	p := serde.Ptr(serde.String)
	if _, err := load(e, processors.TopicSource[*string, *string]{Key: p, Value: p}, processors.RawRecord{Key: []byte{}}, -1, nullable.child("out")); err != nil {
		t.Error(err)
	}
	want(t, nullable.take(), "=null@0")
}

func TestSourceErrors(t *testing.T) {
	e := newEnv(t)
	var out tap[string, int64]
	source := processors.TopicSource[string, int64]{Key: serde.String, Value: serde.Int64}
	_, err := load(e, source, processors.RawRecord{Key: []byte("k"), Value: []byte("short")}, -1, out.child("out"))
	var d *processors.DeserializationError
	if !errors.As(err, &d) || d.What != "value" || processors.IsFatal(err) {
		t.Errorf("bad bytes: %v", err)
	}
	source.Value = serde.Func(func(b []byte, _ int64) ([]byte, error) { return b, nil }, func([]byte) (int64, error) { panic("boom") })
	_, err = load(e, source, processors.RawRecord{Key: []byte("k"), Value: []byte("v")}, -1, out.child("out"))
	var p *processors.PanicError
	if !errors.As(err, &d) || !errors.As(err, &p) {
		t.Errorf("a serde that panics: %v", err)
	}
}

func TestTimestampExtractors(t *testing.T) {
	e := newEnv(t)
	e.now = e.now.Add(77 * 1e6)
	type source = processors.TopicSource[string, string]
	type extractor = processors.TimestampExtractor[string, string]
	fails := func(*processors.Record[string, string], *processors.RawRecord, int64) (int64, error) {
		return 0, errUser
	}
	panics := func(*processors.Record[string, string], *processors.RawRecord, int64) (int64, error) { panic("boom") }
	custom := func(r *processors.Record[string, string], raw *processors.RawRecord, partition int64) (int64, error) {
		return raw.Timestamp + partition + int64(len(r.Value)), nil
	}
	for _, c := range []struct {
		name      string
		extractor extractor
		wall      bool
		record    int64
		partition int64
		want      int64 // -9 for an error
	}{
		{"default", nil, false, 5, 9, 5},
		{"default, negative", nil, false, -1, 9, -9},
		{"skip", processors.LogAndSkip[string, string](), false, -3, 9, -3},
		{"partition time", processors.UsePartitionTime[string, string](), false, -3, 9, 9},
		{"partition time, none yet", processors.UsePartitionTime[string, string](), false, -3, -1, -9},
		{"partition time, valid", processors.UsePartitionTime[string, string](), false, 2, 9, 2},
		{"wall clock", nil, true, -1, 9, 77},
		{"custom", custom, false, 10, 20, 31},
		{"fails", fails, false, 1, 1, -9},
		{"panics", panics, false, 1, 1, -9},
	} {
		var out tap[string, string]
		s := source{Key: serde.String, Value: serde.String, Extractor: c.extractor, WallClock: c.wall}
		ts, err := load(e, s, processors.RawRecord{Key: []byte("k"), Value: []byte("v"), Timestamp: c.record}, c.partition, out.child("out"))
		var bad *processors.TimestampError
		if c.want == -9 {
			if !errors.As(err, &bad) || bad.Offset != 7 || !processors.IsFatal(err) {
				t.Errorf("%s: %d, %v", c.name, ts, err)
			}
			continue
		}
		if err != nil || ts != c.want {
			t.Errorf("%s: %d, %v; want %d", c.name, ts, err, c.want)
		}
	}
}

func TestSink(t *testing.T) {
	e := newEnv(t)
	p := serde.Ptr(serde.String)
	n := e.node("sink", processors.TopicSink[*string, *string]{Topic: "t", Key: p, Value: p})
	must(e, n, ptr("k"), ptr("v"), 5, processors.Header{Key: "h"})
	must(e, n, (*string)(nil), ptr(""), 6)
	dynamic := e.node("dynamic", processors.TopicSink[string, string]{
		TopicOf: func(r *processors.Record[string, string]) (string, error) { return r.Value, nil },
		Key:     serde.String, Value: serde.String,
		Partitioner: func(_ string, r *processors.Record[string, string], n int32) (int32, error) { return n - 1, nil },
	})
	must(e, dynamic, "k", "t1", 7)
	want(t, e.produced, "t/-1 k=v@5 h; t/-1 null=@6; t1/2 k=t1@7")
	if err := pipe(e, dynamic, "k", "", 8); err == nil {
		t.Error("an empty topic name was taken")
	}
}

func TestSinkErrors(t *testing.T) {
	e := newEnv(t)
	e.skip = true
	bad := serde.Func(func(b []byte, v string) ([]byte, error) {
		if v == "panic" {
			panic("boom")
		}
		return b, errUser
	}, func([]byte) (string, error) { return "", nil })
	n := e.node("sink", processors.TopicSink[string, string]{Topic: "t", Key: serde.String, Value: bad})
	must(e, n, "k", "v", 1)
	must(e, n, "k", "panic", 1)
	for _, err := range e.failures {
		var s *processors.SerializationError
		if !errors.As(err, &s) || s.What != "value" || s.Topic != "t" {
			t.Errorf("%v", err)
		}
	}
	out := e.node("partitioner", processors.TopicSink[string, string]{
		Topic: "t", Key: serde.String, Value: serde.String,
		Partitioner: func(string, *processors.Record[string, string], int32) (int32, error) { return 3, nil },
	})
	if err := pipe(e, out, "k", "v", 1); err == nil || processors.IsFatal(err) {
		t.Errorf("an error of a partitioner is for the sink's parent to handle, got %v", err)
	}
	if len(e.failures) != 2 || len(e.produced) != 0 {
		t.Errorf("failures %v, produced %v", e.failures, e.produced)
	}
}

func TestWindowedSinkPartitionsByTheKeyAlone(t *testing.T) {
	e := newEnv(t)
	keys := processors.TimeWindowedSerde(serde.String, 10)
	n := e.node("sink", processors.TopicSink[windowedKey, string]{
		Topic: "t", Key: keys, Value: serde.String, PartitionKey: processors.KeyWithoutWindow(keys, "t"),
	})
	for start := range int64(5) {
		must(e, n, windowedKey{Key: "key", Window: processors.Window{Start: start}}, "v", 1)
	}
	for _, line := range e.produced {
		if !strings.HasPrefix(line, e.produced[0][:4]) {
			t.Errorf("%q and %q: two windows of a key in two partitions", line, e.produced[0])
		}
	}
}

// The hashes are those of Kafka's own unit test of murmur2.
func TestPartitionOf(t *testing.T) {
	for key, hash := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829,
	} {
		for _, n := range []int32{1, 9, 1000} {
			if want := (hash & 0x7fffffff) % n; processors.PartitionOf([]byte(key), n) != want {
				t.Errorf("%q: %d, want %d", key, processors.PartitionOf([]byte(key), n), want)
			}
		}
	}
}

func TestLakeSinkRows(t *testing.T) {
	e := newEnv(t)
	e.ctx.BrokerTimestamp = 99
	forward := e.node("forward", processors.LakeForward[string, string]{Topic: "internal", Key: serde.String, Value: serde.String})
	must(e, forward, "k", "v", 5, processors.Header{Key: "h"})
	carried := append([]processors.Header(nil), e.headers...)
	if len(carried) != 2 || carried[1].Key != processors.CoordinatesHeader {
		t.Fatalf("headers %v", carried)
	}
	e.ctx.BrokerTimestamp = 1000
	table := e.node("lake", processors.LakeSink[string, string]{})
	must(e, table, "k", "v", 5, carried...)
	must(e, table, "k", "w", 6)
	if err := pipeRecord(e, table, &processors.Record[string, string]{Key: "k", ValueNull: true, Timestamp: 8}); err != nil {
		t.Fatal(err)
	}
	want(t, e.rows, "k=v in-0-0@5/99 1; k=w in-0-2@6/1000 0; k=null in-0-3@8/1000 0")
	// A record that carries coordinates keeps them.
	must(e, forward, "k", "v", 5, carried...)
	if c, err := processors.DecodeCoordinates(e.headers[1].Value); err != nil || c.BrokerTimestamp != 99 || len(e.headers) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLakeSinkErrors(t *testing.T) {
	e := newEnv(t)
	e.skip = true
	table := e.node("lake", processors.LakeSink[string, string]{})
	e.rowErr = &sink.RowError{Field: "f", Err: errUser}
	must(e, table, "k", "v", 1)
	must(e, table, "k", "v", 1, processors.Header{Key: processors.CoordinatesHeader, Value: []byte{9}})
	if len(e.failures) != 2 || !errors.Is(e.failures[1], processors.ErrCoordinates) {
		t.Errorf("failures %v", e.failures)
	}
	e.rowErr = &sink.RefusedError{Table: "t"}
	if err := pipe(e, table, "k", "v", 1); !processors.IsFatal(err) {
		t.Errorf("a table that can't be written must stop the task, whatever the handler says: %v", err)
	}
}

func TestCoordinatesFormat(t *testing.T) {
	c := processors.Coordinates{Topic: "orders", Partition: 3, Offset: 1 << 40, BrokerTimestamp: 1_700_000_000_000}
	b := c.Append(nil)
	if want := "AQZvcmRlcnMGgICAgIBAgKCr/vli"; base64.StdEncoding.EncodeToString(b) != want {
		t.Errorf("the format has changed: %s", base64.StdEncoding.EncodeToString(b))
	}
	if got, err := processors.DecodeCoordinates(b); err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzCoordinates(f *testing.F) {
	f.Add(processors.Coordinates{Topic: "t", Partition: -1, Offset: math.MaxInt64, BrokerTimestamp: -1}.Append(nil))
	f.Add([]byte{1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := processors.DecodeCoordinates(data)
		if err != nil {
			return
		}
		if again, err := processors.DecodeCoordinates(c.Append(nil)); err != nil || again != c {
			t.Fatalf("%+v, %v", again, err)
		}
	})
}

// The bytes were written by Kafka Streams 4.3.1.
func TestChangeSerdeWritesKafkasBytes(t *testing.T) {
	s := processors.ChangeSerde(serde.String)
	for text, c := range map[string]processors.Change[string]{
		"YTEB":     {New: "a1", OldNull: true, IsLatest: true},
		"BGEyYTEC": {New: "a2", Old: "a1", IsLatest: true},
		"YTIA":     {NewNull: true, Old: "a2", IsLatest: true},
	} {
		b, err := s.Append(nil, c)
		if err != nil || base64.StdEncoding.EncodeToString(b) != text {
			t.Errorf("%+v: %x, %v", c, b, err)
		}
		if got, err := s.Decode(b); err != nil || got != c {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if _, err := s.Append(nil, processors.Change[string]{NewNull: true, OldNull: true}); err == nil {
		t.Error("a change of nothing was written")
	}
	long := processors.Change[string]{New: strings.Repeat("n", 300), Old: "o", IsLatest: true}
	b, err := s.Append([]byte("before"), long)
	if err != nil || string(b[:6]) != "before" {
		t.Fatal(err)
	}
	if got, err := s.Decode(b[6:]); err != nil || got != long {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Decode([]byte("v\x00\x04")); err != nil || got.IsLatest || got.New != "v" {
		t.Errorf("a change that is not the latest: %+v, %v", got, err)
	}
}

func FuzzChangeSerde(f *testing.F) {
	for _, b := range []string{"a1\x01", "\x04a2a1\x02", "\x04a2a1\x00\x05", "\xff\xff\xff\x02", "\x02", ""} {
		f.Add([]byte(b))
	}
	s := processors.ChangeSerde(serde.String)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := s.Decode(data)
		if err != nil {
			return
		}
		b, err := s.Append(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		c.IsLatest = true
		if again, err := s.Decode(b); err != nil || again != c {
			t.Fatalf("%+v and %+v, %v", c, again, err)
		}
	})
}

func TestWindowedSerdes(t *testing.T) {
	key := windowedKey{Key: "k", Window: processors.Window{Start: 20, End: 30}}
	tests := map[string]serde.Serde[windowedKey]{
		"k\x00\x00\x00\x00\x00\x00\x00\x14":                                 processors.TimeWindowedSerde(serde.String, 10),
		"k\x00\x00\x00\x00\x00\x00\x00\x1e\x00\x00\x00\x00\x00\x00\x00\x14": processors.SessionWindowedSerde(serde.String),
	}
	for bytes, s := range tests {
		b, err := s.Append(nil, key)
		if err != nil || string(b) != bytes {
			t.Errorf("%x, %v", b, err)
		}
		if got, err := s.Decode(b); err != nil || got != key {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := s.Decode([]byte("short")); err == nil {
			t.Error("too few bytes were taken")
		}
	}
	w, err := processors.TimeWindowedSerde(serde.String, math.MaxInt64).Decode([]byte("k\x00\x00\x00\x00\x00\x00\x00\x14"))
	if err != nil || w.Window.End != math.MaxInt64 {
		t.Errorf("%+v, %v", w, err)
	}
	if serde.Aliases(processors.TimeWindowedSerde(serde.Int64, 1)) || !serde.Aliases(processors.SessionWindowedSerde(serde.String)) {
		t.Error("a windowed serde aliases as its key's serde does")
	}
}

func dedupNode(t testing.TB, d processors.Dedup[string, string], kind state.Kind) (*env, processors.Child, *tap[string, string]) {
	e := newEnv(t, state.Spec{Name: "s", Kind: kind, RetentionMs: d.WithinMs, Logged: true})
	d.Store = "s"
	d.ID = func(_, v string) (string, error) { return v, nil }
	out := &tap[string, string]{}
	n := e.node("dedup", d, out.child("out"))
	e.start()
	return e, n, out
}

func TestDedupWithin(t *testing.T) {
	e, n, out := dedupNode(t, processors.Dedup[string, string]{WithinMs: 100}, state.Window)
	for _, r := range []struct {
		id string
		ts int64
	}{
		{"a", 10}, {"a", 10}, {"a", 109}, // duplicates within the time
		{"a", 50},          // an older one is a duplicate, too
		{"", 60}, {"", 60}, // no id
		{"a", 110}, // forgotten: the first was at 10
		{"b", 20},  // late, but new
		{"b", 111}, // its first was at 20: within
		{"c", 11},  // at stream time 111 less 100: too old to tell
		{"c", 11},
	} {
		must(e, n, "k", r.id, r.ts)
	}
	want(t, out.take(), "k=a@10; k=@60; k=@60; k=a@110; k=b@20; k=c@11; k=c@11")
	if e.drops[processors.DroppedDuplicate] != 4 {
		t.Errorf("drops %v", e.drops)
	}
}

func TestDedupDropsOlder(t *testing.T) {
	e, n, out := dedupNode(t, processors.Dedup[string, string]{WithinMs: 100, DropOlder: true}, state.Window)
	must(e, n, "k", "a", 200)
	must(e, n, "k", "b", 100)
	must(e, n, "k", "c", 101)
	want(t, out.take(), "k=a@200; k=c@101")
	if e.drops[processors.DroppedLate] != 1 {
		t.Errorf("drops %v", e.drops)
	}
}

func TestDedupForever(t *testing.T) {
	e, n, out := dedupNode(t, processors.Dedup[string, string]{Forever: true}, state.KeyValue)
	must(e, n, "k", "a", 200)
	must(e, n, "k", "a", 1<<50)
	must(e, n, "k", "a", 1)
	want(t, out.take(), "k=a@200")
}
