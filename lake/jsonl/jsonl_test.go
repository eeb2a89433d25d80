package jsonl

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

func TestLinesSayWhereTheyComeFrom(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store)
	land(t, w, 0, ` { "a" : [1.0, 1e2], "a": "\u001f" }`, `"text"`, `null`)
	got := rows(t, store, Select{})
	if d := cmp.Diff([]string{`{"a":[1.0,1e2],"a":"\u001f"}`, `"text"`, `null`}, values(got)); d != "" {
		t.Error(d)
	}
	r := got[1]
	if k, ok := r.KeyText(); r.Topic != "orders" || r.Partition != 0 || r.Offset != 1 || r.Timestamp.UnixMilli() != at(124) || k != "k1" || !ok || r.EventDate != "2026-06-01" {
		t.Errorf("%+v", r)
	}
}

// Values of other types are what encoding/json makes of them.
func TestGoValues(t *testing.T) {
	store := object.NewMemory("t")
	type value struct {
		N int `json:"n"`
	}
	w, err := tryOpen[[]byte, value](Sink("t", Store(store)), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	b := w.NewBatch()
	key := []byte{0, 255}
	if err := b.Append(&key, &value{7}, meta(0, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 1)}); err != nil {
		t.Fatal(err)
	}
	got := rows(t, store, Select{})
	if len(got) != 1 || string(got[0].Key) != `"AP8="` || string(got[0].Value) != `{"n":7}` {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsNoRow(t *testing.T) {
	store := object.NewMemory("t")
	refuse := Check(func(_ *string, v *[]byte, _ *sink.Meta) error {
		if v != nil && strings.Contains(string(*v), "bad") {
			return errors.New("bad_value")
		}
		return nil
	})
	w := openText(t, store, refuse)
	b := w.NewBatch()
	for i, c := range []struct {
		key, value, want string
		timestamp        int64
	}{
		{"k", `{"n":1}`, "", at(0)},
		{"k", ``, "", at(0)}, // a tombstone is no error
		{"k", `{"bad":1}`, "bad_value", at(0)},
		{"k", `{"n":`, "field value: not JSON", at(0)},
		{"k", `{"n":1} {"n":2}`, "field value: not JSON", at(0)},
		{"k", "{\"n\":\"\xff\"}", "field value: not JSON", at(0)},
		{"\xff", `{"n":1}`, "field key: the text is not valid UTF-8", at(0)},
		{"k", `{"n":1}`, "no date of four digits", 1 << 60},
		{"k", `{"n":3}`, "", at(24 * 3600 * 1000)},
	} {
		m := meta(0, int64(i))
		m.Timestamp = c.timestamp
		err := add(b, c.key, c.value, m)
		var row *sink.RowError
		switch {
		case c.want == "" && err != nil, c.want != "" && !errors.As(err, &row), c.want != "" && !strings.Contains(err.Error(), c.want):
			t.Errorf("row %d: got %v, want %q", i, err, c.want)
		}
	}
	if b.Rows() != 2 {
		t.Errorf("%d rows", b.Rows())
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 9)}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{`{"n":1}`, `{"n":3}`}, values(rows(t, store, Select{}))); d != "" {
		t.Error(d)
	}
	m := manifests(t, store, part(0))[0]
	if m.Rows != 2 || m.Rejects != 6 || m.Tombstones != 1 || m.Start != 0 || m.End != 8 || len(m.Files) != 2 || *m.NewestTimestamp != at(131) {
		t.Errorf("%+v", m)
	}
	if got := values(rows(t, store, Select{FirstDate: "2026-06-02"})); len(got) != 1 || got[0] != `{"n":3}` {
		t.Errorf("the second day has %v", got)
	}
}

// The harness asks the check without a batch.
func TestCheckRow(t *testing.T) {
	refuse := Check(func(k *string, v *[]byte, _ *sink.Meta) error {
		if k == nil || v == nil {
			return errors.New("null")
		}
		return nil
	})
	s := Sink("t", refuse).(sink.Checker)
	key, value := "k", []byte("1")
	var none []byte
	var row *sink.RowError
	if err := s.CheckRow(&key, &value, meta(0, 0)); err != nil {
		t.Error(err)
	}
	if err := s.CheckRow(&key, &none, meta(0, 0)); !errors.As(err, &row) {
		t.Errorf("got %v", err)
	}
	if err := Sink("t").(sink.Checker).CheckRow(nil, nil, meta(0, 0)); err != nil {
		t.Error(err)
	}
}

func TestTombstonesLandWhereAsked(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store, LandTombstones())
	land(t, w, 0, ``, `1`)
	if d := cmp.Diff([]string{`null`, `1`}, values(rows(t, store, Select{}))); d != "" {
		t.Error(d)
	}
}

// Rejects at the tail of a range move the landing, though no line has their offsets.
func TestProgressIsNotTheLargestLine(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store)
	b := w.NewBatch()
	if err := errors.Join(add(b, "k", `1`, meta(0, 0))); err != nil {
		t.Fatal(err)
	}
	for o := range int64(3) {
		if err := add(b, "k", `{`, meta(0, 1+o)); err == nil {
			t.Fatal("not refused")
		}
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 4)}); err != nil {
		t.Fatal(err)
	}
	c, err := OpenStore(store).Coverage(ctx, part(0))
	if err != nil || c.Next != 4 || c.LargestOffset != 0 || c.Rejects != 3 || c.First != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if got := progress(t, w, part(0)); got != 4 {
		t.Errorf("progress %d", got)
	}
}

func TestLandingIsResumedAtItsEnd(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store)
	if got := progress(t, w, part(0)); got != sink.NoOffset {
		t.Fatalf("progress %d of nothing", got)
	}
	for o := range int64(2*hintEvery + 3) {
		land(t, w, o, fmt.Sprint(o))
	}
	if _, err := store.Get(ctx, round{Partition: part(0)}.folder()+newestName); err != nil {
		t.Errorf("no hint: %v", err)
	}
	w = openText(t, store)
	if got := progress(t, w, part(0)); got != 2*hintEvery+3 {
		t.Errorf("progress %d", got)
	}
	if err := store.Put(ctx, round{Partition: part(0)}.folder()+newestName, []byte(`{"start":1000}`)); err != nil { // a hint that is wrong
		t.Fatal(err)
	}
	if got := progress(t, w, part(0)); got != 2*hintEvery+3 {
		t.Errorf("progress %d by a wrong hint", got)
	}
	n := 0
	for m, err := range OpenStore(store).Manifests(ctx, part(0), 100) {
		if err != nil || m.Start < 100 {
			t.Errorf("manifest %+v: %v", m, err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d manifests from offset 100 on", n)
	}
}

// A topic that was made anew under the same name is another input.
func TestTopicMadeAnew(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store)
	land(t, w, 0, `1`)
	anew := part(0)
	anew.TopicID = [16]byte{9}
	if got := progress(t, w, anew); got != sink.NoOffset {
		t.Errorf("progress %d", got)
	}
	all, err := OpenStore(store).Partitions(ctx)
	if err != nil || len(all) != 1 || all[0] != part(0) {
		t.Errorf("%v, %v", all, err)
	}
}

func TestStaleWritersAreFenced(t *testing.T) {
	store := object.NewMemory("t")
	old, now := openText(t, store), openText(t, store)
	land(t, now, 0, `1`, `2`)
	b := old.NewBatch()
	if err := add(b, "k", `3`, meta(0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := add(b, "k", `4`, meta(1, 0)); err != nil {
		t.Fatal(err)
	}
	_, err := old.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 1), move(1, sink.NoOffset, 1)})
	wantFenced(t, err, sink.NoOffset, 2)
	if len(manifests(t, store, part(1))) != 0 {
		t.Error("a commit that was refused before anything was put has landed in part")
	}
	// One that finds out by the put only: the other lands between its look and its put.
	progress(t, old, part(0))
	land(t, now, 2, `5`)
	b2 := old.NewBatch()
	if err := errors.Join(add(b2, "k", `6`, meta(0, 2)), add(b2, "k", `7`, meta(1, 0))); err != nil {
		t.Fatal(err)
	}
	_, err = old.Commit(ctx, b2, []sink.Move{move(0, 2, 3), move(1, sink.NoOffset, 1)})
	wantFenced(t, err, 2, 3)
	// Its part of the other partition has landed, and says so.
	if got := progress(t, old, part(1)); got != 1 {
		t.Errorf("progress of partition 1 is %d", got)
	}
	if d := cmp.Diff([]string{`1`, `2`, `5`, `7`}, values(rows(t, store, Select{}))); d != "" {
		t.Error(d)
	}
	left, err := OpenStore(store).vacuum(ctx, time.Now().Add(time.Hour), true)
	if err != nil || len(left) != 0 {
		t.Errorf("files of the fenced part stay behind: %v, %v", left, err)
	}
}

func TestRowsNeedTheirMove(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store)
	b := w.NewBatch()
	if err := add(b, "k", `1`, meta(0, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(1, sink.NoOffset, 1)}); err == nil || !strings.Contains(err.Error(), "orders-0") {
		t.Errorf("got %v", err)
	}
	b.Release()
	if _, err := w.Commit(ctx, b, nil); err == nil {
		t.Error("a released batch was taken")
	}
}

// The first sight of an empty partition is nothing to land, and no obstacle to what comes.
func TestEmptyMove(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store)
	if _, err := w.Commit(ctx, w.NewBatch(), []sink.Move{move(0, sink.NoOffset, 0)}); err != nil {
		t.Fatal(err)
	}
	if len(manifests(t, store, part(0))) != 0 {
		t.Error("a manifest of nothing")
	}
	land(t, w, 0, `1`)
	if _, err := w.Commit(ctx, w.NewBatch(), []sink.Move{move(0, 1, 5)}); err != nil {
		t.Fatal(err)
	}
	if got := progress(t, w, part(0)); got != 5 {
		t.Errorf("progress %d after a move without rows", got)
	}
}

func TestAnotherSinkIsRefused(t *testing.T) {
	store := object.NewMemory("t")
	land(t, openText(t, store), 0, `1`)
	env := testEnv()
	env.Name = "other"
	w, err := tryOpen[string, []byte](Sink("t", Store(store)), env)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Progress(ctx, []sink.Partition{part(0)})
	wantRefused(t, err)
}

func TestStoreMustBeConditional(t *testing.T) {
	faulty := &object.Faulty{Inner: object.NewMemory("t"), Plan: func(object.Call) object.Fault { return object.StaleWins }}
	_, err := tryOpen[string, []byte](Sink("t", Store(faulty)), testEnv())
	wantRefused(t, err)
}

func TestBindRefuses(t *testing.T) {
	check := Check(func(*string, *string, *sink.Meta) error { return nil })
	for _, c := range []struct {
		opts       []Option
		key, value reflect.Type
		want       string
	}{
		{nil, reflect.TypeFor[string](), reflect.TypeFor[chan int](), "values of type chan int"},
		{[]Option{check}, reflect.TypeFor[string](), reflect.TypeFor[[]byte](), "the check is for string and string"},
		{[]Option{check, check}, reflect.TypeFor[string](), reflect.TypeFor[string](), "one check"},
		{[]Option{Compression("lzma")}, reflect.TypeFor[string](), reflect.TypeFor[string](), `"lzma"`},
	} {
		if err := Sink("t", c.opts...).Bind(c.key, c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
	if _, err := Sink("t").Open(ctx, testEnv()); err == nil {
		t.Error("opened without being bound")
	}
}

func TestGaps(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store)
	b := w.NewBatch()
	if err := add(b, "k", `1`, meta(0, 100)); err != nil {
		t.Fatal(err)
	}
	m := move(0, sink.NoOffset, 101)
	m.Gap = sink.Gap{From: 0, To: 100, Reason: sink.GapRetention}
	if _, err := w.Commit(ctx, b, []sink.Move{m}); err != nil {
		t.Fatal(err)
	}
	if _, err := recordGap(ctx, store, part(0), 50, "poison", testClock()); err == nil {
		t.Error("a gap in what has landed")
	}
	if _, err := recordGap(ctx, store, part(0), 110, "", testClock()); err == nil {
		t.Error("a gap without a reason")
	}
	if _, err := recordGap(ctx, store, part(0), 110, "poison", testClock()); err != nil {
		t.Fatal(err)
	}
	// The running sink is fenced, and goes on behind the gap.
	b = w.NewBatch()
	if err := add(b, "k", `2`, meta(0, 101)); err != nil {
		t.Fatal(err)
	}
	_, err := w.Commit(ctx, b, []sink.Move{move(0, 101, 102)})
	wantFenced(t, err, 101, 110)
	land(t, w, 110, `3`)
	c, err := OpenStore(store).Coverage(ctx, part(0))
	if err != nil {
		t.Fatal(err)
	}
	want := []Gap{{0, 99, "retention"}, {101, 109, "poison"}}
	if d := cmp.Diff(want, c.Gaps); d != "" || c.Next != 111 || c.Rows != 2 {
		t.Errorf("%+v\n%s", c, d)
	}
}

func TestBrokenChains(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store)
	for o := range int64(3) {
		land(t, w, o, `1`)
	}
	if err := store.Delete(ctx, round{Partition: part(0)}.manifest(1)); err != nil {
		t.Fatal(err)
	}
	_, err := OpenStore(store).Coverage(ctx, part(0))
	var broken *BrokenChainError
	if !errors.As(err, &broken) || broken.Want != 1 || broken.Got != 2 {
		t.Errorf("got %v", err)
	}
}

func TestDamageIsSeen(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store, Compression("zstd"))
	land(t, w, 0, `1`, `2`)
	f := manifests(t, store, part(0))[0].Files[0]
	data, err := store.Get(ctx, f.Name)
	if err != nil {
		t.Fatal(err)
	}
	for what, damaged := range map[string][]byte{"cut": data[:len(data)-1], "changed": append(data[:len(data)-1:len(data)-1], 'x')} {
		if err := store.Put(ctx, f.Name, damaged); err != nil {
			t.Fatal(err)
		}
		for _, err := range OpenStore(store).Rows(ctx, Select{}) {
			if err == nil || !strings.Contains(err.Error(), "damaged") {
				t.Errorf("%s: got %v", what, err)
			}
		}
	}
	name := round{Partition: part(0)}.manifest(0)
	good, err := store.Get(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"version": 1`, `"version": 2`}, {`"start": 0`, `"start": 1`}, {`"end": 1`, `"end": -1`}, {`"partition": 0`, `"partition": 1`}, {`"crc32c": "`, `"crc32c": "z`}, {`{`, ``},
	} {
		bad := strings.Replace(string(good), change[0], change[1], 1)
		if _, err := decodeManifest(name, []byte(bad)); err == nil || bad == string(good) {
			t.Errorf("%v was taken", change)
		}
	}
}

func TestCompression(t *testing.T) {
	for _, name := range []string{"gzip", "zstd"} {
		store := object.NewMemory("t")
		land(t, openText(t, store, Compression(name)), 0, `{"a":1}`, `{"a":2}`)
		if d := cmp.Diff([]string{`{"a":1}`, `{"a":2}`}, values(rows(t, store, Select{}))); d != "" {
			t.Error(name, d)
		}
	}
}

func TestVacuumSparesWhatIsNamedOrYoung(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store)
	land(t, w, 0, `1`)
	orphan := dateFolder + "2026-06-01/orphan" + extension
	if err := store.Put(ctx, orphan, []byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	l := OpenStore(store)
	if got, err := l.vacuum(ctx, time.Now().Add(-time.Hour), false); err != nil || len(got) != 0 {
		t.Errorf("took %v, %v", got, err)
	}
	for _, dry := range []bool{true, false} {
		if got, err := l.vacuum(ctx, time.Now().Add(time.Hour), dry); err != nil || len(got) != 1 || got[0] != orphan {
			t.Errorf("dry %v: took %v, %v", dry, got, err)
		}
	}
	if _, err := store.Get(ctx, orphan); !errors.Is(err, object.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
	if n := len(rows(t, store, Select{})); n != 1 {
		t.Errorf("%d rows are left", n)
	}
}

func TestDays(t *testing.T) {
	for ms, want := range map[int64]string{0: "1970-01-01", -1: "1969-12-31", 86400000: "1970-01-02", -62167219200000: "0000-01-01", 253402300799999: "9999-12-31"} {
		d, err := day(ms)
		if err != nil || dateText(d) != want {
			t.Errorf("%d: %s, %v; want %s", ms, dateText(d), err, want)
		}
	}
	for _, ms := range []int64{-62167219200001, 253402300800000} {
		if _, err := day(ms); err == nil {
			t.Errorf("%d has a date", ms)
		}
	}
}

// A row can be read by a program that knows nothing but JSON.
func TestLineIsOneObject(t *testing.T) {
	store := object.NewMemory("t")
	w := openText(t, store)
	m := meta(0, 0)
	m.BrokerTimestamp = -1
	b := w.NewBatch()
	if err := add(b, "", "{\n\t\"x\": \"a\\nb\"\n}", m); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 1)}); err != nil {
		t.Fatal(err)
	}
	data, err := store.Get(ctx, manifests(t, store, part(0))[0].Files[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(data, &line); err != nil || strings.Count(string(data), "\n") != 1 {
		t.Fatalf("%v in %q", err, data)
	}
	want := map[string]any{"_kafka_topic": "orders", "_kafka_partition": 0., "_kafka_offset": 0., "_kafka_timestamp": nil, "key": nil, "value": map[string]any{"x": "a\nb"}}
	if d := cmp.Diff(want, line); d != "" {
		t.Error(d)
	}
}
