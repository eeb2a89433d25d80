package playback_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/examples/playback"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// start is not long ago: changelogs of windows are kept by the time of events.
var start = time.Now().UTC().Truncate(time.Hour).Add(-4 * time.Hour)

func settings(t testing.TB, env map[string]string) playback.Settings {
	t.Helper()
	s, err := playback.FromEnvironment(func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSettings(t *testing.T) {
	s := settings(t, map[string]string{"KAFKA_BOOTSTRAP": "a:9092,b:9092", "AWS_REGION": "eu-central-1", "STREAMING_S3_BUCKET": "lake", "STREAMING_CATALOG": "glue"})
	if s.Warehouse != "s3://lake/warehouse" || len(s.Brokers) != 2 || s.MaxRows != 50_000 || s.MaxAge != time.Minute || s.Sharded {
		t.Errorf("%+v", s)
	}
	_, err := playback.FromEnvironment(func(name string) (string, bool) {
		v, ok := map[string]string{"STREAMING_CATALOG": "glue", "STREAMING_MAX_ROWS": "many", "STREAMING_TABLE_FORMAT": "csv"}[name]
		return v, ok
	})
	for _, want := range []string{"KAFKA_BOOTSTRAP", "AWS_REGION", "STREAMING_S3_BUCKET", "STREAMING_MAX_ROWS", "csv"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error doesn't say %s: %v", want, err)
		}
	}
}

func TestGeneratorIsSeeded(t *testing.T) {
	g := playback.Generator{Seed: 7, Sessions: 50, Start: start}
	a, b := g.Events(), g.Events()
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	g.Seed++
	if cmp.Equal(a, g.Events()) {
		t.Error("another seed makes the same events")
	}
	x := playback.Expect(a)
	if x.Records == x.Events || x.Events == 0 {
		t.Errorf("no event is sent twice: %+v", x)
	}
}

func TestEventsSurviveAFile(t *testing.T) {
	events := playback.Generator{Seed: 1, Sessions: 5, Start: start}.Events()
	var file bytes.Buffer
	if err := playback.WriteEvents(&file, events); err != nil {
		t.Fatal(err)
	}
	again, err := playback.ReadEvents(&file)
	if err != nil || !cmp.Equal(events, again) {
		t.Errorf("%v, %s", err, cmp.Diff(events, again))
	}
	for _, bad := range []string{"{", `{"event_id": "x"}`} {
		if _, err := playback.ReadEvents(strings.NewReader("\n" + bad)); err == nil {
			t.Errorf("%q passes as an event", bad)
		}
	}
}

// TestViewsOnTheHarness compares what the views say of generated events with what the generator expects, computed otherwise.
func TestViewsOnTheHarness(t *testing.T) {
	s := settings(t, map[string]string{"KAFKA_BOOTSTRAP": "none:1"})
	plan, err := playback.Views(s)
	if err != nil {
		t.Fatal(err)
	}
	d := topologytest.New(t, plan)
	in := topologytest.Input(d, s.Topic, serde.String, serde.JSON[playback.Event]())
	events := playback.Generator{Seed: 3, Sessions: 120, Start: start, Span: 2 * time.Hour}.Events()
	for _, e := range events {
		if err := in.Pipe(e.SessionID, e, e.EventTime.UnixMilli()); err != nil {
			t.Fatal(err)
		}
	}
	got := newViews()
	for _, m := range topologytest.Output(d, playback.SessionTopic, serde.String, serde.JSON[*playback.Session]()).Read() {
		got.session(m.Key, m.Value)
	}
	for _, m := range topologytest.Output(d, playback.WatchTopic, serde.String, serde.JSON[playback.Watch]()).Read() {
		got.watch[m.Key] = m.Value
	}
	for _, m := range topologytest.Output(d, playback.ViewersTopic, serde.String, serde.JSON[playback.Viewers]()).Read() {
		got.viewers[m.Key] = m.Value
	}
	got.compare(t, playback.Expect(events))
}

// views are the newest values of the views' keys.
type views struct {
	sessions map[string]playback.Session
	watch    map[string]playback.Watch
	viewers  map[string]playback.Viewers
}

func newViews() *views {
	return &views{map[string]playback.Session{}, map[string]playback.Watch{}, map[string]playback.Viewers{}}
}

func (v *views) session(key string, s *playback.Session) {
	if s == nil {
		delete(v.sessions, key)
	} else {
		v.sessions[key] = *s
	}
}

// result is what the views say, in the form of what is expected.
func (v *views) result() playback.Expected {
	x := playback.Expected{Sessions: map[string]int{}, Watched: map[playback.TitleHour]int64{}, Peak: map[string]int{}}
	for _, s := range v.sessions {
		x.Sessions[s.Session]++
		x.Events += s.Events
	}
	for _, w := range v.watch {
		x.Watched[playback.TitleHour{Title: w.Title, Hour: w.Hour}] = w.Watched
	}
	for _, w := range v.viewers {
		x.Peak[w.Title] = max(x.Peak[w.Title], w.Viewers)
	}
	return x
}

func (v *views) compare(t *testing.T, want playback.Expected) {
	t.Helper()
	want.Records = 0
	if diff := cmp.Diff(want, v.result()); diff != "" {
		t.Errorf("the views differ from what is expected (-want +got):\n%s", diff)
	}
}

// TestLandingOnTheHarness lands events and looks at the rows.
func TestLandingOnTheHarness(t *testing.T) {
	for _, format := range []string{"iceberg", "delta"} {
		s := settings(t, map[string]string{"KAFKA_BOOTSTRAP": "none:1", "STREAMING_TABLE_FORMAT": format, "STREAMING_WAREHOUSE": t.TempDir()})
		plan, err := playback.LandingTopology(s, playback.LanderID, s.Table)
		if err != nil {
			t.Fatal(err)
		}
		d := topologytest.New(t, plan)
		in := topologytest.Input(d, s.Topic, serde.String, serde.JSON[playback.Event]())
		for _, e := range []playback.Event{
			{EventID: "e1", SessionID: "s1", EventTime: time.Date(1970, 1, 2, 23, 30, 0, 0, time.UTC)},
			{EventID: "e2", SessionID: "s1", EventTime: time.Date(2026, 3, 1, 5, 0, 0, 0, time.FixedZone("", 2*3600))},
		} {
			if err := in.Pipe("s1", e, 0); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, r := range topologytest.LakeRows[playback.Landed](d, playback.LanderSink) {
			got = append(got, fmt.Sprint(r.Value.EventID, " ", r.Value.EventDate, " ", r.Value.EventHour))
		}
		if want := []string{"e1 1970-01-02 23", "e2 2026-03-01 3"}; !slices.Equal(got, want) {
			t.Errorf("%s: rows are %v, want %v", format, got, want)
		}
	}
}
