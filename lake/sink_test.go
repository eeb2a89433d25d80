package lake

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

type order struct {
	ID     string  `lake:"id,ods.key=true,comment=the order"`
	Amount float64 `json:"amount"`
	Note   *string `json:"note"`
}

func TestLandAndResume(t *testing.T) {
	store := object.NewMemory("t")
	w := openSink[string, order](t, Delta("mem", Store(store), KeyColumn("key"), SourceColumns()))
	got, err := w.Progress(ctx, []sink.Partition{part(0), part(1)})
	if err != nil || got[part(0)] != sink.NoOffset || got[part(1)] != sink.NoOffset {
		t.Fatalf("progress of a new table: %v, %v", got, err)
	}
	note := "n"
	c := land(t, w, 0, order{"a", 1.5, nil}, order{"b", 2.5, &note})
	if c.Version != 1 || c.Rows != 2 || c.Files != 1 || c.Attempts != 1 || c.Bytes == 0 {
		t.Errorf("the commit is %+v", c)
	}
	land(t, w, 2, order{"c", 3, nil})
	if got, err = w.Progress(ctx, []sink.Partition{part(0), part(1)}); err != nil || got[part(0)] != 3 || got[part(1)] != sink.NoOffset {
		t.Fatalf("progress: %v, %v", got, err)
	}
	want := []Row{
		{"key": "k0", "id": "a", "amount": 1.5, "note": nil, SourcePartition: int32(0), SourceOffset: int64(0), SourceTimestamp: time.UnixMilli(1780000000123).UTC()},
		{"key": "k1", "id": "b", "amount": 2.5, "note": "n", SourcePartition: int32(0), SourceOffset: int64(1), SourceTimestamp: time.UnixMilli(1780000000124).UTC()},
		{"key": "k2", "id": "c", "amount": 3.0, "note": nil, SourcePartition: int32(0), SourceOffset: int64(2), SourceTimestamp: time.UnixMilli(1780000000125).UTC()},
	}
	rows := allRows(t, store)
	if d := cmp.Diff(texts(want, "key"), texts(rows, "key")); d != "" {
		t.Fatal(d)
	}
	for _, r := range rows {
		for _, x := range want {
			if x["key"] == r["key"] {
				if d := cmp.Diff(x, r); d != "" {
					t.Error(d)
				}
			}
		}
	}
}

func TestBindNamesEveryProblem(t *testing.T) {
	type bad struct {
		C  chan int
		F  func()
		OK string
	}
	s := Delta("place", Compression("lzo9", 0), SchemaVersion(0))
	err := s.Bind(reflect.TypeFor[string](), reflect.TypeFor[bad]())
	for _, want := range []string{"place", "field C", "field F", "lzo9", "schema version 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q isn't in: %v", want, err)
		}
	}
	for _, c := range []struct {
		opts []Option
		want string
	}{
		{[]Option{PartitionBy("nothing")}, `no column "nothing"`},
		{[]Option{PartitionBy("id", "amount", "note")}, "every column"},
		{[]Option{KeyColumn("ID")}, "only in case"},
		{[]Option{AvroValue(`"int"`, nil)}, "[]byte"},
		{[]Option{AvroSchema(`{`)}, "Avro schema"},
	} {
		err := Delta("place", c.opts...).Bind(reflect.TypeFor[string](), reflect.TypeFor[order]())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if _, err := Delta("place").Open(ctx, testEnv()); err == nil {
		t.Error("a sink that isn't bound was opened")
	}
}

func TestEmptyBatchesMoveProgress(t *testing.T) {
	store := object.NewMemory("t")
	w := openSink[string, order](t, Delta("mem", Store(store)))
	b := w.NewBatch()
	c, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 1000), move(1, sink.NoOffset, 5)})
	if err != nil || c.Version != 1 || c.Files != 0 || c.Rows != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	b.Release()
	b = w.NewBatch()
	defer b.Release()
	if c, err = w.Commit(ctx, b, []sink.Move{move(0, 1000, 1000)}); err != nil || c.Version != 1 {
		t.Fatalf("nothing moved, but %+v, %v", c, err)
	}
	if n := logEntries(t, store); n != 2 {
		t.Errorf("%d versions, want 2", n)
	}
	row := order{ID: "x"}
	if err := b.Append(nil, &row, meta(1)); err != nil {
		t.Fatal(err)
	}
	if _, err = w.Commit(ctx, b, []sink.Move{move(0, 1000, 1000)}); err == nil {
		t.Error("rows without progress were landed")
	}
}

func TestTombstones(t *testing.T) {
	store := object.NewMemory("t")
	w := openSink[string, *order](t, Delta("mem", Store(store), KeyColumn("key")))
	b := w.NewBatch()
	key := "k"
	var none *order
	for _, v := range []any{nil, &none} {
		if err := b.Append(&key, v, meta(0)); err != nil {
			t.Fatal(err)
		}
	}
	if b.Rows() != 0 {
		t.Errorf("tombstones made %d rows", b.Rows())
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 2)}); err != nil {
		t.Fatal(err)
	}
	b.Release()
	info, err := showStore(ctx, store, "mem", 1)
	if err != nil || info.Rows != 0 || info.Files != 0 || info.Progress[0].Next != 2 {
		t.Errorf("%+v, %v", info, err)
	}

	store = object.NewMemory("t")
	w = openSink[string, *order](t, Delta("mem", Store(store), KeyColumn("key"), SourceColumns(), LandTombstones()))
	b = w.NewBatch()
	defer b.Release()
	if err := b.Append(&key, nil, meta(7)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 8)}); err != nil {
		t.Fatal(err)
	}
	rows := allRows(t, store)
	if len(rows) != 1 || rows[0]["key"] != "k" || rows[0]["id"] != nil || rows[0][SourceOffset] != int64(7) {
		t.Errorf("got %v", rows)
	}
}

func TestValueColumn(t *testing.T) {
	store := object.NewMemory("t")
	land(t, openSink[string, int64](t, Delta("mem", Store(store), KeyColumn("country"), ValueColumn("people"))), 0, int64(83))
	if rows := allRows(t, store); len(rows) != 1 || rows[0]["country"] != "k0" || rows[0]["people"] != int64(83) || len(rows[0]) != 2 {
		t.Errorf("landed %v", rows)
	}
}

// A local timestamp needs a table feature, unless it is to be one in UTC.
func TestLocalTimestampsAsUTC(t *testing.T) {
	const schema = `{"type": "record", "name": "Meeting", "fields": [{"name": "at", "type": {"type": "long", "logicalType": "local-timestamp-millis"}}]}`
	type meeting struct {
		At time.Time `lake:"at"`
	}
	for _, c := range []struct {
		opts []Option
		kind string
	}{{nil, "timestamp_ntz"}, {[]Option{LocalTimestampsAsUTC()}, "timestamp"}} {
		store := object.NewMemory("t")
		at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
		land(t, openSink[string, meeting](t, Delta("mem", append(c.opts, Store(store), AvroSchema(schema))...)), 0, meeting{at})
		info, err := showStore(ctx, store, "mem", 1)
		if err != nil || info.Columns[0].Type != c.kind || slices.Contains(info.Features, "timestampNtz") != (c.kind == "timestamp_ntz") {
			t.Errorf("want %s, got %+v, %v", c.kind, info, err)
		}
		if rows := allRows(t, store); len(rows) != 1 || !rows[0]["at"].(time.Time).Equal(at) {
			t.Errorf("landed %v", rows)
		}
	}
}

func TestBadRowsLeaveTheBatch(t *testing.T) {
	store := object.NewMemory("t")
	w := openSink[string, order](t, Delta("mem", Store(store), KeyColumn("key"), PartitionBy("id"), SourceColumns()))
	b := w.NewBatch()
	defer b.Release()
	good, key, badKey := order{ID: "g"}, "k", "\xff"
	bad, empty := order{ID: "\xff"}, order{}
	late := meta(2)
	late.BrokerTimestamp = 1 << 62
	for _, c := range []struct {
		key   *string
		value *order
		meta  *sink.Meta
		field string
	}{{&key, &good, meta(0), ""}, {&key, &bad, meta(1), "id"}, {&badKey, &good, meta(2), "key"}, {&key, &empty, meta(3), "id"}, {&key, &good, late, SourceTimestamp}, {&key, &good, meta(5), ""}} {
		before := b.Rows()
		err := b.Append(c.key, c.value, c.meta)
		var re *sink.RowError
		switch {
		case c.field == "" && err != nil:
			t.Fatal(err)
		case c.field != "" && (!errors.As(err, &re) || re.Field != c.field || b.Rows() != before):
			t.Errorf("field %s: got %v with %d rows", c.field, err, b.Rows())
		}
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 6)}); err != nil {
		t.Fatal(err)
	}
	if rows := allRows(t, store); len(rows) != 2 {
		t.Errorf("%d rows, want 2", len(rows))
	}
}

func TestFencing(t *testing.T) {
	store := object.NewMemory("t")
	a := openSink[string, order](t, Delta("mem", Store(store)))
	b := openSink[string, order](t, Delta("mem", Store(store)))
	land(t, a, 0, order{ID: "1"}, order{ID: "2"})

	stale := b.NewBatch()
	defer stale.Release()
	row := order{ID: "again"}
	if err := stale.Append(nil, &row, meta(0)); err != nil {
		t.Fatal(err)
	}
	_, err := b.Commit(ctx, stale, []sink.Move{move(1, sink.NoOffset, 9), move(0, sink.NoOffset, 1)})
	var f *sink.FencedError
	if !errors.As(err, &f) || f.Partition != part(0) || f.Want != sink.NoOffset || f.Got != 2 {
		t.Fatalf("got %v", err)
	}
	got, err := b.Progress(ctx, []sink.Partition{part(0), part(1)})
	if err != nil || got[part(0)] != 2 || got[part(1)] != sink.NoOffset {
		t.Fatalf("after the fence: %v, %v", got, err)
	}
	if d := cmp.Diff([]string{"1", "2"}, texts(allRows(t, store), "id")); d != "" {
		t.Error(d)
	}
	// Another partition is nobody's business.
	if _, err := b.Commit(ctx, stale, []sink.Move{move(1, sink.NoOffset, 9)}); err != nil {
		t.Fatal(err)
	}
}

func TestTopicMadeAnew(t *testing.T) {
	store := object.NewMemory("t")
	var lines strings.Builder
	s := Delta("mem", Store(store))
	env := testEnv()
	env.Logger = textLogger(&lines)
	w, err := tryOpen[string, order](s, env)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	land(t, w, 0, order{ID: "old"})
	anew := part(0)
	anew.TopicID = [16]byte{9}
	got, err := w.Progress(ctx, []sink.Partition{anew})
	if err != nil || got[anew] != sink.NoOffset {
		t.Fatalf("%v, %v", got, err)
	}
	if !strings.Contains(lines.String(), "made anew") {
		t.Errorf("nothing is said about it: %s", lines.String())
	}
}

func TestPlatformProgressHandOver(t *testing.T) {
	store := object.NewMemory("t")
	w := openSink[string, order](t, Delta("mem", Store(store), PlatformProgress()))
	b := w.NewBatch()
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 0)}); err != nil {
		t.Fatal(err)
	}
	b.Release()
	if n := logEntries(t, store); n != 1 {
		t.Errorf("an offset of 0 has no platform progress, but there are %d versions", n)
	}
	land(t, w, 0, order{ID: "1"}, order{ID: "2"}, order{ID: "3"})
	info, err := showStore(ctx, store, "mem", 0)
	if err != nil {
		t.Fatal(err)
	}
	if p := info.Progress[0]; p.AppID != "ods-sink/orders/0" || p.Version != 2 || p.Next != 3 || p.Topic != "orders" {
		t.Errorf("progress is %+v", p)
	}
	land(t, w, 3, order{ID: "4"})
	got, err := w.Progress(ctx, []sink.Partition{part(0)})
	if err != nil || got[part(0)] != 4 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestIdleProgressIsRenewed moves a partition from an offset to itself: nothing is written unless the table forgets old progress.
func TestIdleProgressIsRenewed(t *testing.T) {
	store := object.NewMemory("t")
	now := time.UnixMilli(1780000000000)
	env := testEnv()
	env.Now = func() time.Time { return now }
	w, err := tryOpen[string, order](Delta("mem", Store(store), Properties(map[string]string{txnRetention: "interval 4 days"})), env)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	land(t, w, 0, order{ID: "1"})
	idle := func() int64 {
		b := w.NewBatch()
		defer b.Release()
		c, err := w.Commit(ctx, b, []sink.Move{move(0, 1, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return c.Version
	}
	now = now.Add(47 * time.Hour)
	if v := idle(); v != 1 {
		t.Errorf("renewed too early, at version %d", v)
	}
	now = now.Add(2 * time.Hour)
	if v := idle(); v != 2 {
		t.Errorf("not renewed: version %d", v)
	}
	info, err := showStore(ctx, store, "mem", 0)
	if err != nil || info.Progress[0].Updated != now.UnixMilli() || info.Progress[0].Next != 1 {
		t.Errorf("%+v, %v", info.Progress, err)
	}
}

func TestShow(t *testing.T) {
	store := object.NewMemory("t")
	type value struct {
		ID  string `lake:"id,ods.pii=true,ods.sensitivity=high,comment=who, exactly"`
		Sub []struct {
			X *int32 `json:"x"`
		} `json:"sub"`
	}
	w := openSink[string, value](t, Delta("mem", Store(store), Name("orders"), Comment("all orders"), Properties(map[string]string{"owner": "team"})))
	land(t, w, 0, value{ID: "1"}, value{ID: "2"})
	info, err := showStore(ctx, store, "place", 10)
	if err != nil {
		t.Fatal(err)
	}
	if info.Version != 1 || info.Rows != 2 || info.Files != 1 || info.Name != "orders" || info.Description != "all orders" || info.Properties["owner"] != "team" ||
		info.MinReaderVersion != 1 || info.MinWriterVersion != 2 || len(info.History) != 2 || info.History[0].Rows != "2" {
		t.Errorf("%+v", info)
	}
	want := []ColumnInfo{
		{Name: "id", Type: "string", Nullable: true, Comment: "who, exactly", Tags: map[string]any{"ods.pii": true, "ods.sensitivity": "high"}},
		{Name: "sub", Type: "array<struct<x: integer>>", Nullable: true},
		{Name: "sub.element.x", Type: "integer", Nullable: true},
	}
	if d := cmp.Diff(want, info.Columns); d != "" {
		t.Error(d)
	}
	p := info.Progress[0]
	if p.Application != "app" || p.Sink != "orders-sink" || p.Topic != "orders" || p.TopicID != part(0).TopicID || p.Partition != 0 || p.Next != 2 {
		t.Errorf("progress is %+v", p)
	}
	if s := string(info.History[0].Sources); !strings.Contains(s, `"from":-1,"to":2`) || !strings.Contains(s, `"distinctEstimates":{"id":2}`) {
		t.Errorf("sources are %s", s)
	}
	for _, place := range []string{t.TempDir(), t.TempDir() + "/nowhere"} {
		if _, err := Show(ctx, place, 1); !errors.Is(err, ErrNoTable) {
			t.Errorf("a folder without a table: %v", err)
		}
		for _, err := range ReadRows(ctx, place) {
			if !errors.Is(err, ErrNoTable) {
				t.Errorf("a folder without a table: %v", err)
			}
		}
	}
	if m := info.History[0].SourceOffsets; m != "orders-0:0-2" {
		t.Errorf("the history says %q", m)
	}
}

// TestAppendWhileCommitting fills the next batch while one is committed, as the engine does.
func TestAppendWhileCommitting(t *testing.T) {
	store := object.NewMemory("t")
	w := openSink[string, order](t, Delta("mem", Store(store)))
	fill := func(from int64) sink.Batch {
		b := w.NewBatch()
		for o := from; o < from+50; o++ {
			row := order{ID: fmt.Sprint(o)}
			if err := b.Append(nil, &row, meta(o)); err != nil {
				t.Error(err)
			}
		}
		return b
	}
	next := fill(0)
	for at := int64(0); at < 1000; at += 50 {
		from := at
		if at == 0 {
			from = sink.NoOffset
		}
		done := make(chan error)
		go func(b sink.Batch) {
			_, err := w.Commit(ctx, b, []sink.Move{move(0, from, at+50)})
			b.Release()
			done <- err
		}(next)
		next = fill(at + 50)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	next.Release()
	ids := texts(allRows(t, store), "id")
	if len(ids) != 1000 || len(slices.Compact(ids)) != 1000 {
		t.Errorf("%d rows", len(ids))
	}
}

func TestClosedBatches(t *testing.T) {
	w := openSink[string, order](t, Delta("mem", Store(object.NewMemory("t"))))
	b := w.NewBatch()
	b.Release()
	b.Release()
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 1)}); err == nil {
		t.Error("a released batch was landed")
	}
	other := openSink[string, order](t, Delta("mem", Store(object.NewMemory("t"))))
	if _, err := w.Commit(ctx, other.NewBatch(), []sink.Move{move(0, sink.NoOffset, 1)}); err == nil {
		t.Error("another writer's batch was landed")
	}
}

func TestRowsDontAllocate(t *testing.T) {
	w := openSink[string, order](t, Delta("mem", Store(object.NewMemory("t")), KeyColumn("key"), SourceColumns()))
	b := w.NewBatch()
	note, key := "n", "key"
	v, m := order{"id", 1, &note}, meta(1)
	var k, val any = &key, &v
	add := func() {
		if err := b.Append(k, val, m); err != nil {
			t.Fatal(err)
		}
	}
	for range 5000 {
		add()
	}
	b.Release()
	b = w.NewBatch() // with the memory of the first
	if n := testing.AllocsPerRun(4000, add); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
	b.Release()
}
