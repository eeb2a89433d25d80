package lake

import (
	"fmt"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

type profiledPlace struct {
	Zip *string `lake:"zip"`
}

type profiled struct {
	Day   string        `lake:"day,partition"`
	N     int64         `lake:"n"`
	F     *float64      `lake:"f"`
	Where profiledPlace `lake:"where"`
}

func TestLogProfilesColumns(t *testing.T) {
	store := object.NewMemory("t")
	w := openSink[string, profiled](t, Delta("mem", Store(store), SourceColumns(), RunColumns("stream:g")))
	b := w.NewBatch()
	defer b.Release()
	f, zip, key := 2.5, "8000", "k"
	rows := []profiled{{Day: "a", N: 9, F: &f}, {Day: "a", N: 10}, {Day: "b", N: -3, Where: profiledPlace{&zip}}, {Day: "b", N: 100, F: &f}}
	for i := range rows {
		if err := b.Append(&key, &rows[i], meta(int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 4)}); err != nil {
		t.Fatal(err)
	}
	var entries []LogEntry
	for e, err := range logStore(ctx, store) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	e := entries[0]
	if e.Run != "stream:g" || e.Application != "app" || e.Sink != "orders-sink" || e.Rows != "4" || e.Oldest != time.UnixMilli(meta(0).BrokerTimestamp).UTC() {
		t.Errorf("entry %+v", e)
	}
	got := map[string]string{}
	for _, p := range e.Profile {
		got[p.Column] = fmt.Sprintf("%d %s %s", p.Nulls, string(p.Min), string(p.Max))
	}
	for column, want := range map[string]string{
		"n":          "0 -3 100", // numbers are compared as such: 9 < 10
		"f":          "2 2.5 2.5",
		"where.zip":  "3  ", // one of the two files has no bounds
		RunID:        `0 "stream:g" "stream:g"`,
		SourceOffset: "0 0 3",
	} {
		if got[column] != want {
			t.Errorf("%s: %q, want %q", column, got[column], want)
		}
	}
	if last := entries[len(entries)-1]; last.Version != 0 || len(last.Profile) != 0 {
		t.Errorf("the first commit is %+v", last)
	}
}

func TestFilesWithoutStatisticsHaveNoProfile(t *testing.T) {
	p := profile([]string{`{"numRecords":1,"minValues":{"a":1},"maxValues":{"a":1},"nullCount":{"a":0}}`, ""}, nil)
	if len(p) != 1 || p[0].Nulls != -1 || p[0].Min != nil {
		t.Errorf("profile %+v", p)
	}
}
