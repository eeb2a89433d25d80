package topologytest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

const minute = int64(time.Minute / time.Millisecond)

// idle is an application whose stream time goes on after 10 s of silence.
func idle() *topology.Builder {
	return topology.NewBuilder("idle", topology.AdvanceIdle(10*time.Second))
}

func textOf(_ topology.Window[string], n int64) string { return fmt.Sprint(n) }

func windowKey(w topology.Window[string], v string) (string, string) {
	return fmt.Sprintf("%s@%d", w.Key, w.Window.Start), v
}

// quiet runs a topology from "in" to "out" in both modes: one record, and then the wall clock alone.
type quiet struct {
	d   *topologytest.Driver
	in  *topologytest.InputTopic[string, string]
	out *topologytest.OutputTopic[string, string]
}

func newQuiet(t *testing.T, p *topology.Plan, opts ...topologytest.Option) *quiet {
	t.Helper()
	d := topologytest.New(t, p, opts...)
	return &quiet{d, topologytest.Input(d, "in", serde.String, serde.String), topologytest.Output(d, "out", serde.String, serde.String)}
}

func (q *quiet) wait(d time.Duration) []string {
	q.d.AdvanceWallClock(d)
	return pairs(q.out.Read())
}

// Each kind of operator that waits for stream time, with a record at 0:30 in event time, sends its result when 90 s more have gone by.
func TestIdleTimeBringsOutWhatWaits(t *testing.T) {
	byWindow := func(b *topology.Builder, w topology.Windows, opts ...topology.Option) *topology.WindowedGroups[string, string] {
		return b.Stream("in", serde.String, serde.String).GroupByKey().Windowed(w, opts...)
	}
	tumbling := topology.Tumbling(time.Minute).Grace(time.Minute)
	for name, c := range map[string]struct {
		build func(b *topology.Builder)
		want  string
	}{
		"on close": {func(b *topology.Builder) {
			byWindow(b, tumbling, topology.EmitOnClose()).Count().ToStream().MapValuesWithKey(textOf).Map(windowKey).To("out")
		}, "a@0=1"},
		"suppressed": {func(b *topology.Builder) {
			byWindow(b, tumbling).Count().EmitFinal().ToStream().MapValuesWithKey(textOf).Map(windowKey).To("out")
		}, "a@0=1"},
		"sliding": {func(b *topology.Builder) {
			byWindow(b, topology.Sliding(29*time.Second).Grace(89*time.Second), topology.EmitOnClose()).Count().ToStream().
				MapValuesWithKey(textOf).Map(windowKey).To("out")
		}, "a@1000=1"},
		"sessions": {func(b *topology.Builder) {
			b.Stream("in", serde.String, serde.String).GroupByKey().Sessions(topology.Session(29*time.Second).Grace(time.Minute), topology.EmitOnClose()).
				Count().ToStream().MapValuesWithKey(textOf).Map(windowKey).To("out")
		}, "a@30000=1"},
		"time limit": {func(b *topology.Builder) {
			b.Table("in", serde.String, serde.String).Suppress(topology.UntilTimeLimit(90 * time.Second)).ToStream().To("out")
		}, "a=v"},
		"left join": {func(b *topology.Builder) {
			b.Stream("in", serde.String, serde.String).LeftJoinStream(b.Stream("other", serde.String, serde.String),
				func(v string, o *string) string { return fmt.Sprint(v, o) },
				topology.JoinWithin(29*time.Second).Grace(time.Minute), topology.ValueSerde(serde.String)).To("out")
		}, "a=v<nil>"},
		"outer join, right side": {func(b *topology.Builder) {
			b.Stream("other", serde.String, serde.String).OuterJoinStream(b.Stream("in", serde.String, serde.String),
				func(o, v *string) string { return fmt.Sprint(o, *v) },
				topology.JoinWithin(29*time.Second).Grace(time.Minute), topology.ValueSerde(serde.String)).To("out")
		}, "a=<nil>v"},
		"table join with grace": {func(b *topology.Builder) {
			b.Stream("in", serde.String, serde.String).LeftJoin(b.Table("other", serde.String, serde.String, topology.Versioned(time.Hour), topology.Store("rows")),
				func(v string, o *string) string { return fmt.Sprint(v, o) },
				topology.JoinGrace(90*time.Second), topology.ValueSerde(serde.String)).To("out")
		}, "a=v<nil>"},
	} {
		for _, partitions := range []int32{0, 3} {
			t.Run(fmt.Sprint(name, ", ", partitions, " partitions"), func(t *testing.T) {
				b := idle()
				c.build(b)
				q := newQuiet(t, built(t, b), topologytest.Partitions(partitions))
				q.in.Pipe("a", "v", minute/2)
				same(t, "at once", q.wait(0), []string{})
				same(t, "before its time", q.wait(89*time.Second), []string{})
				q.d.Restart()
				same(t, "after a restart it must have been idle for long enough again", q.wait(9*time.Second), []string{})
				same(t, "at its time", q.wait(time.Second), []string{c.want})
				same(t, "later", q.wait(time.Hour), []string{})
			})
		}
	}
}

// What was closed by the wall clock stays closed, also over a restart, and a late record is counted.
func TestIdleTimeIsNotUndone(t *testing.T) {
	b := idle()
	b.Stream("in", serde.String, serde.String).GroupByKey().Windowed(topology.Tumbling(time.Minute)).Count().
		ToStream().MapValuesWithKey(textOf).Map(windowKey).To("out")
	q := newQuiet(t, built(t, b))
	q.in.Pipe("a", "v", 1)
	same(t, "an update", q.wait(0), []string{"a@0=1"})
	q.wait(time.Minute)
	for range 2 {
		q.in.Pipe("a", "v", 2)
		same(t, "late", q.wait(0), []string{})
		q.d.Restart()
	}
	if n := q.d.Dropped()[processors.DroppedLate]; n != 2 {
		t.Errorf("%d records counted as late, want 2", n)
	}
	q.in.Pipe("a", "v", minute)
	same(t, "in time", q.wait(0), []string{"a@60000=1"})
}

// The time that an operator has seen outlives restarts and crashes, whatever has moved it: late stays late.
func TestStreamTimeIsKept(t *testing.T) {
	for name, again := range map[string]func(*topologytest.Driver) error{
		"restart": (*topologytest.Driver).Restart, "crash": (*topologytest.Driver).Crash,
	} {
		t.Run(name, func(t *testing.T) {
			b := topology.NewBuilder("kept")
			b.Stream("in", serde.String, serde.String).GroupByKey().Windowed(topology.Tumbling(time.Minute)).Count().
				ToStream().MapValuesWithKey(textOf).Map(windowKey).To("out")
			q := newQuiet(t, built(t, b))
			q.in.Pipe("a", "v", 1)
			q.in.Pipe("b", "v", minute)
			again(q.d)
			q.in.Pipe("a", "v", 2)
			same(t, "results", q.wait(0), []string{"a@0=1", "b@60000=1"})
			same(t, "dropped", q.d.Dropped(), map[string]int64{processors.DroppedLate: 1})
		})
	}
}

// Without the option the wall clock moves nothing; with it, nothing before a first record has come.
func TestIdleTimeNeedsTheOptionAndARecord(t *testing.T) {
	b := topology.NewBuilder("off")
	b.Table("in", serde.String, serde.String).Suppress(topology.UntilTimeLimit(time.Second)).ToStream().To("out")
	q := newQuiet(t, built(t, b))
	q.in.Pipe("a", "v", 0)
	same(t, "without the option", q.wait(time.Hour), []string{})

	b = idle()
	b.Table("in", serde.String, serde.String).Suppress(topology.UntilTimeLimit(time.Minute)).ToStream().To("out")
	q = newQuiet(t, built(t, b))
	q.wait(time.Hour)
	q.in.Pipe("a", "v", 0)
	same(t, "an hour before the first record doesn't count", q.wait(57500*time.Millisecond), []string{})
	same(t, "a minute after", q.wait(2500*time.Millisecond), []string{"a=v"})

	if _, err := topology.NewBuilder("bad", topology.AdvanceIdle(0)).Build(); err == nil {
		t.Error("a bound of 0 was accepted")
	}
}

// Windows over results of windows don't lose those that the wall clock brings out: their time is behind by what the first ones hold back.
func TestIdleTimeRespectsWhatIsHeldBack(t *testing.T) {
	for _, partitions := range []int32{0, 1} {
		b := idle()
		b.Stream("in", serde.String, serde.String).GroupByKey().Windowed(topology.Tumbling(time.Minute).Grace(time.Minute), topology.EmitOnClose()).
			Count().ToStream().
			Map(func(w topology.Window[string], n int64) (string, int64) { return "all", n }).
			GroupByKey().Windowed(topology.Tumbling(time.Second), topology.EmitOnClose()).
			Reduce(func(a, b int64) int64 { return a + b }).ToStream().
			MapValuesWithKey(textOf).Map(windowKey).To("out")
		q := newQuiet(t, built(t, b), topologytest.Partitions(partitions))
		var got []string
		for _, at := range []int64{0, minute, 2 * minute, 3 * minute} {
			q.in.Pipe("a", "v", at)
			for range 6 { // a pause in which time goes on by itself
				got = append(got, q.wait(10*time.Second)...)
			}
		}
		for range 30 {
			got = append(got, q.wait(10*time.Second)...)
		}
		same(t, fmt.Sprint(partitions, " partitions"), got, []string{"all@0=1", "all@60000=1", "all@120000=1", "all@180000=1"})
		same(t, "dropped", q.d.Dropped(), map[string]int64{})
	}
}

// Stream-time punctuations fire, too.
func TestIdleTimeDrivesPunctuations(t *testing.T) {
	b := idle()
	b.Stream("in", serde.String, serde.String).
		Process(func() processors.Processor[string, string, string, string] { return &streamTicker{} },
			topology.KeySerde(serde.String), topology.ValueSerde(serde.String)).To("out")
	q := newQuiet(t, built(t, b))
	q.in.Pipe("a", "v", 1000)
	same(t, "the first record", q.wait(0), []string{"tick=1000"})
	same(t, "not idle for long enough", q.wait(9*time.Second), []string{})
	same(t, "idle", q.wait(51*time.Second), []string{"tick=61000"})
}

// streamTicker sends the time at which it is called, once a minute of stream time.
type streamTicker struct{}

func (streamTicker) Init(ctx processors.ProcessorContext[string, string]) error {
	ctx.Schedule(time.Minute, processors.StreamTime, func(now int64) error {
		return ctx.Forward(&processors.Record[string, string]{Key: "tick", Value: fmt.Sprint(now), Timestamp: now})
	})
	return nil
}

func (streamTicker) Process(*processors.Record[string, string]) error { return nil }
func (streamTicker) Close() error                                     { return nil }

// Each source may say when its silence lets time go on; a task's time waits for the longest of them, and behind a repartition those count that
// feed it.
func TestIdleTimeOfEachSource(t *testing.T) {
	after := topology.AdvanceAfter
	for name, c := range map[string]struct {
		builder  []topology.BuilderOption
		in, more []topology.Option
		want     time.Duration // until time goes on; 0: never
	}{
		"one says":                 {nil, []topology.Option{after(10 * time.Second)}, []topology.Option{after(10 * time.Second)}, 10 * time.Second},
		"the longest counts":       {nil, []topology.Option{after(10 * time.Second)}, []topology.Option{after(30 * time.Second)}, 30 * time.Second},
		"one doesn't say":          {nil, []topology.Option{after(10 * time.Second)}, nil, 0},
		"instead of the builder's": {[]topology.BuilderOption{topology.AdvanceIdle(time.Hour)}, []topology.Option{after(10 * time.Second)}, []topology.Option{after(20 * time.Second)}, 20 * time.Second},
		"beside the builder's":     {[]topology.BuilderOption{topology.AdvanceIdle(40 * time.Second)}, []topology.Option{after(10 * time.Second)}, nil, 40 * time.Second},
		"never":                    {[]topology.BuilderOption{topology.AdvanceIdle(10 * time.Second)}, nil, []topology.Option{after(0)}, 0},
	} {
		for _, partitions := range []int32{0, 1} {
			t.Run(fmt.Sprint(name, "/", partitions), func(t *testing.T) {
				b := topology.NewBuilder("idle", c.builder...)
				in := b.Stream("in", serde.String, serde.String, c.in...)
				b.Stream("more", serde.String, serde.String, c.more...).Merge(in).
					GroupBy(func(_, v string) string { return v }, topology.Name("by")).
					Windowed(topology.Tumbling(time.Second), topology.EmitOnClose()).
					Count().ToStream().MapValuesWithKey(textOf).Map(windowKey).To("out")
				var opts []topologytest.Option
				if partitions > 0 {
					opts = append(opts, topologytest.Partitions(partitions))
				}
				q := newQuiet(t, built(t, b), opts...)
				q.in.Pipe("k", "v", 0)
				if c.want == 0 {
					same(t, "never", q.wait(24*time.Hour), []string{})
					return
				}
				same(t, "too early", q.wait(c.want-time.Second), []string{})
				same(t, "then", q.wait(time.Second), []string{"v@0=1"})
			})
		}
	}
}

// Of two parts of an application only that one's time goes on whose sources let it.
func TestIdleTimeOfOnePart(t *testing.T) {
	b := topology.NewBuilder("idle")
	count := func(topic, to string, opts ...topology.Option) {
		b.Stream(topic, serde.String, serde.String, opts...).GroupByKey().Windowed(topology.Tumbling(time.Second), topology.EmitOnClose()).
			Count().ToStream().MapValuesWithKey(textOf).Map(windowKey).To(to)
	}
	count("other", "others")
	count("in", "out", topology.AdvanceAfter(10*time.Second))
	q := newQuiet(t, built(t, b))
	q.in.Pipe("k", "v", 0)
	topologytest.Input(q.d, "other", serde.String, serde.String).Pipe("k", "v", 0)
	others := topologytest.Output(q.d, "others", serde.String, serde.String)
	same(t, "the one", q.wait(time.Minute), []string{"k@0=1"})
	same(t, "the other", pairs(others.Read()), []string{})
}

func TestIdleOptionsThatCannotBe(t *testing.T) {
	for name, declare := range map[string]func(b *topology.Builder){
		"AdvanceAfter": func(b *topology.Builder) {
			b.Stream("in", serde.String, serde.String, topology.AdvanceAfter(time.Microsecond)).To("out")
		},
		"WaitFor": func(b *topology.Builder) { b.Stream("in", serde.String, serde.String, topology.WaitFor(-1)).To("out") },
		"other settings for idleness": func(b *topology.Builder) {
			b.Stream("in", serde.String, serde.String, topology.WaitFor(time.Second)).To("out")
			b.Stream("in", serde.String, serde.String).To("out2")
		},
	} {
		b := topology.NewBuilder("bad")
		declare(b)
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
