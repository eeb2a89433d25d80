package playback_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/examples/playback"
	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/lake/icebergreaders"
)

// Roles of this test binary as a process of its own, to be killed.
func TestMain(m *testing.M) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	child.Main(map[string]child.Role{
		"land":   child.As(func(ctx context.Context, s playback.Settings) error { return playback.Land(ctx, s, log) }),
		"append": child.As(func(ctx context.Context, s playback.Settings) error { return playback.Append(ctx, s, log) }),
		"views": child.As(func(ctx context.Context, s playback.Settings) error {
			plan, err := playback.Views(s)
			if err != nil {
				return err
			}
			e, err := engine.New(plan, engine.Brokers(s.Brokers...), engine.StateDir(s.StateDir), engine.Logger(log))
			if err != nil {
				return err
			}
			return e.Run(ctx)
		}),
	})
	realkafka.Main(m)
}

const patience = 4 * time.Minute

// system is the example on a real Kafka.
type system struct {
	t      *testing.T
	s      playback.Settings
	events []playback.Event
	want   playback.Expected
}

// newSystem makes the topic and produces events, the second half later.
func newSystem(t *testing.T, sessions int) *system {
	t.Helper()
	cluster := realkafka.Shared(t, 1)
	dir := t.TempDir()
	env := map[string]string{"KAFKA_BOOTSTRAP": strings.Join(cluster.Addrs(), ","), "STREAMING_WAREHOUSE": dir + "/warehouse", "STREAMING_STATE_DIR": dir + "/state",
		"STREAMING_INSTANCE": "one", "STREAMING_MAX_ROWS": "500", "STREAMING_MAX_SECONDS": "1", "STREAMING_TOPIC": playback.Topic + fmt.Sprint(time.Now().UnixNano())}
	if err := os.MkdirAll(dir+"/warehouse", 0o755); err != nil {
		t.Fatal(err)
	}
	y := &system{t: t, s: settings(t, env), events: playback.Generator{Seed: 5, Sessions: sessions, Start: start, Span: 2 * time.Hour}.Events()}
	y.want = playback.Expect(y.events)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := errors.Join(playback.CreateTopics(ctx, y.s), playback.CreateViewTopics(ctx, y.s), playback.CreateTable(ctx, y.s, quiet)); err != nil {
		t.Fatal(err)
	}
	return y
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func (y *system) produce(events []playback.Event) {
	y.t.Helper()
	if err := playback.Produce(y.t.Context(), y.s, events); err != nil {
		y.t.Fatal(err)
	}
}

func (y *system) start(role string, s playback.Settings) *child.Process {
	y.t.Helper()
	log := filepath.Join(y.t.TempDir(), role+".log")
	p, err := child.Start(role, s, log)
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() {
		p.Kill()
		if y.t.Failed() {
			y.t.Logf("%s:\n%s", role, p.Log())
		}
	})
	return p
}

// until waits for a condition.
func (y *system) until(what string, p *child.Process, f func() bool) {
	y.t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(300 * time.Millisecond) {
		if time.Now().After(deadline) {
			y.t.Fatalf("%s: not within %v", what, patience)
		}
		if p != nil && !p.Running() {
			y.t.Fatalf("%s: the process has ended:\n%s", what, p.Log())
		}
	}
}

// table is the table as independent readers see it.
func (y *system) table(name string) *icebergreaders.Table {
	return icebergreaders.Open(y.t).Table(y.t, icebergreaders.SQLite(y.s.Warehouse+"/catalog.db", y.s.Warehouse), name)
}

// counts are rows and different events of a table by DuckDB.
func (y *system) counts(name string) (rows, events int64) {
	y.t.Helper()
	r := y.table(name).DuckDB(`select count(*) as n, count(distinct event_id) as d from t`)[0]
	return icebergreaders.Int(y.t, r, "n"), icebergreaders.Int(y.t, r, "d")
}

// landed counts the rows that the catalog tells of.
func (y *system) landed(table string) (n int64) {
	for row, err := range playback.Rows(y.t.Context(), y.s, table) {
		if err != nil || row == nil {
			return 0
		}
		n++
	}
	return n
}

// TestLandersUnderKill9 kills both landers in the middle, and compares what PyIceberg and DuckDB find with the generator's counts.
func TestLandersUnderKill9(t *testing.T) {
	y := newSystem(t, 150)
	half := len(y.events) / 2
	y.produce(y.events[:half])
	exact, loose := y.start("land", y.s), y.start("append", y.s)
	appended := y.s.AppendTable()
	y.until("some rows land", exact, func() bool { return y.landed(y.s.Table) > 0 })
	exact.Kill()
	y.until("some rows are appended", loose, func() bool { return y.landed(appended) > 0 })
	loose.Kill()
	y.produce(y.events[half:])
	if err := errors.Join(exact.Restart(), loose.Restart()); err != nil {
		t.Fatal(err)
	}
	y.until("all events land", exact, func() bool { return y.landed(y.s.Table) >= y.want.Records })
	y.until("all events are appended", loose, func() bool { return y.distinct(appended) >= y.want.Events })
	if err := errors.Join(exact.Stop(patience), loose.Stop(patience)); err != nil {
		t.Fatal(err)
	}
	if rows, events := y.counts(y.s.Table); rows != y.want.Records || events != y.want.Events {
		t.Errorf("exactly once: %d rows of %d events, want %d of %d", rows, events, y.want.Records, y.want.Events)
	}
	rows, events := y.counts(appended)
	if rows < y.want.Records || events != y.want.Events {
		t.Errorf("at least once: %d rows of %d events, want at least %d of %d", rows, events, y.want.Records, y.want.Events)
	}
	t.Logf("after kill -9: exactly once %d rows; at least once %d rows; %d events", y.want.Records, rows, events)
	hour := start.Add(time.Hour)
	hours := y.table(y.s.Table).Rows(fmt.Sprintf("event_date = '%s' and event_hour = %d", hour.Format(time.DateOnly), hour.Hour()))
	var want int
	for _, e := range y.events {
		if e.EventTime.Truncate(time.Hour).Equal(hour) {
			want++
		}
	}
	if len(hours) != want {
		t.Errorf("PyIceberg finds %d rows of one hour, want %d", len(hours), want)
	}
}

func (y *system) distinct(table string) int64 {
	_, events, err := playback.Count(y.t.Context(), y.s, table)
	if err != nil {
		return 0
	}
	return events
}

// TestKilledBetweenAppendAndCommit is the moment that makes the difference: the append lander's offsets are set back to before a batch
// that the table has, as a kill -9 there leaves them.
func TestKilledBetweenAppendAndCommit(t *testing.T) {
	y := newSystem(t, 20)
	y.produce(y.events)
	both := func(records int64) {
		t.Helper()
		exact, loose := y.start("land", y.s), y.start("append", y.s)
		y.until("all land", exact, func() bool { return y.landed(y.s.Table) >= y.want.Records })
		y.until("all are appended", loose, func() bool { return y.landed(y.s.AppendTable()) >= records })
		if err := errors.Join(exact.Stop(patience), loose.Stop(patience)); err != nil {
			t.Fatal(err)
		}
	}
	both(y.want.Records)
	y.until("both have left", nil, func() bool {
		return playback.ForgetOffsets(t.Context(), y.s, playback.AppendID, playback.LanderID) == nil
	})
	both(2 * y.want.Records)
	if rows, events := y.counts(y.s.Table); rows != y.want.Records || events != y.want.Events {
		t.Errorf("exactly once: %d rows of %d events, want %d of %d", rows, events, y.want.Records, y.want.Events)
	}
	if rows, events := y.counts(y.s.AppendTable()); rows != 2*y.want.Records || events != y.want.Events {
		t.Errorf("at least once: %d rows of %d events, want each of %d records twice", rows, events, y.want.Records)
	}
}

// TestShardedLandersAndTheirRefusal has two landers share the partitions, refuses an unsharded third, and drains on SIGTERM.
func TestShardedLandersAndTheirRefusal(t *testing.T) {
	y := newSystem(t, 60)
	y.s.Sharded = true
	two := y.s
	two.Instance, two.StateDir = "two", y.s.StateDir+"-two"
	a, b := y.start("land", y.s), y.start("land", two)
	y.until("both landers run", a, func() bool { return members(t, y.s) == 2 })
	y.until("both landers have partitions", b, func() bool { return hasTasks.Match(a.Log()) && hasTasks.Match(b.Log()) })
	alone := y.s
	alone.Sharded, alone.StateDir = false, y.s.StateDir+"-alone"
	var occupied *playback.OccupiedError
	if err := playback.Land(t.Context(), alone, quiet); !errors.As(err, &occupied) {
		t.Errorf("an unsharded lander beside two others: %v", err)
	}
	sent, chunk := 0, len(y.events)/40
	y.until("both have landed", b, func() bool {
		if sent+2*chunk < len(y.events) {
			y.produce(y.events[sent : sent+chunk])
			sent += chunk
		}
		return y.runs() == 2
	})
	if err := errors.Join(a.Stop(patience), b.Stop(patience)); err != nil {
		t.Fatal(err)
	}
	y.drain(sent)
	y.disjoint()
	// Another application would land every event a second time.
	if err := playback.Rebuild(t.Context(), y.s, "streaming.again", quiet); err != nil {
		t.Fatal(err)
	}
	if rows, events := y.counts("streaming.again"); rows != y.want.Records || events != y.want.Events {
		t.Errorf("rebuilt: %d rows of %d events, want %d of %d", rows, events, y.want.Records, y.want.Events)
	}
	alone.Table = "streaming.again"
	if err := playback.Land(t.Context(), alone, quiet); !errors.As(err, &occupied) || !strings.Contains(err.Error(), "playback-rebuild") {
		t.Errorf("a lander into a table of another application: %v", err)
	}
}

// runs counts the landers that have landed rows.
func (y *system) runs() int {
	seen := map[any]bool{}
	for row, err := range playback.Rows(y.t.Context(), y.s, y.s.Table) {
		if err == nil {
			seen[row["_ods_run_id"]] = true
		}
	}
	return len(seen)
}

// drain produces what is left, and ends a lander whose batches only close on SIGTERM: what it has read is committed. Another lander lands
// the rest.
func (y *system) drain(sent int) {
	y.t.Helper()
	before := y.landed(y.s.Table)
	slow := y.s
	slow.MaxRows, slow.MaxAge = 50_000, time.Hour
	y.produce(y.events[sent:])
	p := y.start("land", slow)
	y.until("the lander has its partitions", p, func() bool { return hasTasks.Match(p.Log()) })
	time.Sleep(2 * time.Second) // until it has read something; how much doesn't matter
	if n := y.landed(y.s.Table); n != before {
		y.t.Errorf("%d rows landed before the batch closed", n-before)
	}
	if err := p.Stop(patience); err != nil {
		y.t.Fatal(err)
	}
	y.t.Logf("SIGTERM committed %d of %d rows", y.landed(y.s.Table)-before, y.want.Records-before)
	if y.landed(y.s.Table) < y.want.Records {
		last := y.start("land", y.s)
		y.until("all events land", last, func() bool { return y.landed(y.s.Table) >= y.want.Records })
		if err := last.Stop(patience); err != nil {
			y.t.Fatal(err)
		}
	}
	if rows, events := y.counts(y.s.Table); rows != y.want.Records || events != y.want.Events {
		y.t.Errorf("%d rows of %d events, want %d of %d", rows, events, y.want.Records, y.want.Events)
	}
}

// disjoint checks that no two commits hold the same offsets.
func (y *system) disjoint() {
	y.t.Helper()
	next := map[string]int64{}
	for _, s := range y.table(y.s.Table).Info().Snapshots {
		for _, source := range strings.Fields(s.Summary["tributary.sources"]) {
			partition, offsets, _ := strings.Cut(source, ":")
			var from, to int64
			if _, err := fmt.Sscanf(offsets, "%d-%d", &from, &to); err != nil {
				y.t.Fatal(err)
			}
			if from != next[partition] {
				y.t.Errorf("a commit holds offsets of %s from %d on, but the one before ended at %d", partition, from, next[partition])
			}
			next[partition] = to
		}
	}
}

// hasTasks is what an instance says that was given some.
var hasTasks = regexp.MustCompile(`tasks assigned.* new=[1-9]`)

func members(t *testing.T, s playback.Settings) int {
	n, err := playback.Landers(t.Context(), s)
	if err != nil {
		return 0 // a new cluster has no coordinator yet
	}
	return n
}

// TestViewsUnderKill9 kills the views in the middle and compares their topics with what the generator expects.
func TestViewsUnderKill9(t *testing.T) {
	y := newSystem(t, 100)
	half := len(y.events) / 2
	y.produce(y.events[:half])
	p := y.start("views", y.s)
	client, err := kgo.NewClient(kgo.SeedBrokers(y.s.Brokers...), kgo.ConsumeTopics(playback.SessionTopic, playback.WatchTopic, playback.ViewersTopic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	got := newViews()
	poll := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got.record(t, r) })
	}
	y.until("results come", p, func() bool { poll(); return len(got.sessions) > 0 })
	p.Kill()
	y.produce(y.events[half:])
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	whole := func() bool {
		poll()
		x := got.result()
		var watched, want int64
		for _, n := range x.Watched {
			watched += n
		}
		for _, n := range y.want.Watched {
			want += n
		}
		return x.Events >= y.want.Events && watched >= want
	}
	y.until("all events are counted", p, whole)
	for range 10 { // what more may come
		poll()
	}
	if err := p.Stop(patience); err != nil {
		t.Fatal(err)
	}
	got.compare(t, y.want)
}

func (v *views) record(t *testing.T, r *kgo.Record) {
	t.Helper()
	key := string(r.Key)
	var err error
	switch r.Topic {
	case playback.SessionTopic:
		var s *playback.Session
		if len(r.Value) > 0 {
			err = json.Unmarshal(r.Value, &s)
		}
		v.session(key, s)
	case playback.WatchTopic:
		var w playback.Watch
		err = json.Unmarshal(r.Value, &w)
		v.watch[key] = w
	case playback.ViewersTopic:
		var w playback.Viewers
		err = json.Unmarshal(r.Value, &w)
		v.viewers[key] = w
	}
	if err != nil {
		t.Fatal(err)
	}
}
