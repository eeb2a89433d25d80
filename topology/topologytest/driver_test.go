package topologytest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// built is the plan of a builder.
func built(t *testing.T, b *topology.Builder) *topology.Plan {
	t.Helper()
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wordCount counts words behind a repartition.
func wordCount(t *testing.T) *topology.Plan {
	b := topology.NewBuilder("words")
	lines := b.Stream("lines", serde.String, serde.String)
	counts := lines.
		FlatMapValues(func(line string, emit func(string)) {
			for w := range strings.FieldsSeq(line) {
				emit(w)
			}
		}).
		GroupBy(func(_, w string) string { return w }).
		Count(topology.Store("counts"))
	counts.ToStream().To("out")
	return built(t, b)
}

// pairs shows messages as "key=value".
func pairs[K, V any](messages []topologytest.Message[K, V]) []string {
	out := []string{}
	for _, m := range messages {
		if m.ValueNull {
			out = append(out, fmt.Sprintf("%v=null", m.Key))
		} else {
			out = append(out, fmt.Sprintf("%v=%v", m.Key, m.Value))
		}
	}
	return out
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestDriverMode(t *testing.T) {
	d := topologytest.New(t, wordCount(t))
	lines := topologytest.Input(d, "lines", serde.String, serde.String)
	out := topologytest.Output(d, "out", serde.String, serde.Int64)
	lines.Pipe("1", "to be or not", 1)
	lines.Pipe("2", "to be", 2)
	same(t, "counts", pairs(out.Read()), []string{"to=1", "be=1", "or=1", "not=1", "to=2", "be=2"})
	same(t, "nothing is read twice", pairs(out.Read()), []string{})
	same(t, "topics", d.Topics(), []string{"out", "words-counts-changelog", "words-counts-repartition"})

	store, err := topologytest.TimestampedKeyValue(d, "counts", 0, serde.String, serde.Int64)
	if err != nil {
		t.Fatal(err)
	}
	if n, ts, ok, err := store.Get("to"); n != 2 || ts != 2 || !ok || err != nil {
		t.Errorf("the store says %d at %d, %v, %v", n, ts, ok, err)
	}
}

// All partitions together have what one has.
func TestPartitionedMode(t *testing.T) {
	d := topologytest.New(t, wordCount(t), topologytest.Partitions(3))
	lines := topologytest.Input(d, "lines", serde.String, serde.String)
	for i := range 20 {
		lines.Pipe(fmt.Sprint(i), "a b c d e", int64(i))
	}
	last := map[string]int64{}
	perPartition := map[int32]bool{}
	for _, m := range topologytest.Output(d, "out", serde.String, serde.Int64).Read() {
		last[m.Key] = m.Value
		perPartition[m.Partition] = true
	}
	same(t, "counts", last, map[string]int64{"a": 20, "b": 20, "c": 20, "d": 20, "e": 20})
	if len(perPartition) < 2 {
		t.Errorf("all results are in partitions %v", perPartition)
	}
	if n := d.StorePartitions("counts"); n != 3 {
		t.Errorf("the store has %d partitions", n)
	}
	if _, err := topologytest.TimestampedKeyValue(d, "counts", 2, serde.String, serde.Int64); err != nil {
		t.Error(err)
	}
}

func TestPartitionedModeFindsTopicsThatAreNotCopartitioned(t *testing.T) {
	b := topology.NewBuilder("join")
	left := b.Stream("left", serde.String, serde.String)
	right := b.Table("right", serde.String, serde.String)
	left.Join(right, func(l, r string) string { return l + r }).To("out")
	p := built(t, b)
	_, err := topologytest.Open(p, topologytest.Partitions(3), topologytest.TopicPartitions("right", 2))
	if err == nil || !strings.Contains(err.Error(), "left has 3, right has 2") {
		t.Errorf("got %v", err)
	}
	d, err := topologytest.Open(p, topologytest.Partitions(3))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Memory and disk, one partition and three: state survives restarts and crashes.
func TestRestartAndCrash(t *testing.T) {
	for name, opts := range map[string][]topologytest.Option{
		"memory":      nil,
		"disk":        {topologytest.PebbleStores(t.TempDir())},
		"partitioned": {topologytest.Partitions(3)},
		"both":        {topologytest.Partitions(3), topologytest.PebbleStores(t.TempDir())},
	} {
		t.Run(name, func(t *testing.T) {
			d := topologytest.New(t, wordCount(t), opts...)
			lines := topologytest.Input(d, "lines", serde.String, serde.String)
			out := topologytest.Output(d, "out", serde.String, serde.Int64)
			for i, restart := range []func() error{d.Restart, d.Crash, d.Restart} {
				lines.Pipe("1", "a", int64(i))
				restart()
			}
			lines.Pipe("1", "a", 9)
			same(t, "counts", pairs(out.Read()), []string{"a=1", "a=2", "a=3", "a=4"})
		})
	}
}

// A crash takes back everything since the commit, and the input is processed again: exactly once in the end.
func TestCrashInsideATransaction(t *testing.T) {
	d := topologytest.New(t, wordCount(t), topologytest.ManualCommit(), topologytest.PebbleStores(t.TempDir()))
	lines := topologytest.Input(d, "lines", serde.String, serde.String)
	out := topologytest.Output(d, "out", serde.String, serde.Int64)
	settle := func() { d.Commit(); d.Commit() } // the second for what came through the repartition topic
	lines.Pipe("1", "a", 1)
	settle()
	lines.Pipe("1", "a", 2)
	d.Commit()
	same(t, "committed", pairs(out.Read()), []string{"a=1"})
	d.Crash()
	settle()
	lines.Pipe("1", "a", 3)
	d.Crash()
	d.Crash()
	settle()
	same(t, "after crashes", pairs(out.Read()), []string{"a=2", "a=3"})
	same(t, "changelog", len(d.Records("words-counts-changelog", 0)), 3)
}

func TestFailingCommits(t *testing.T) {
	d := topologytest.New(t, wordCount(t))
	lines := topologytest.Input(d, "lines", serde.String, serde.String)
	out := topologytest.Output(d, "out", serde.String, serde.Int64)
	for i, op := range []topologytest.Op{topologytest.CommitOp, topologytest.CommitReplyOp, topologytest.CommitOp} {
		d.FailNext(op, nil)
		lines.Pipe("1", "a b", int64(i))
	}
	same(t, "counts", pairs(out.Read()), []string{"a=1", "b=1", "a=2", "b=2", "a=3", "b=3"})
	same(t, "aborted", d.Aborted(), 3)
}

func TestFailingProduceIsFatalUntilACrash(t *testing.T) {
	d, err := topologytest.Open(wordCount(t))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	lines := topologytest.Input(d, "lines", serde.String, serde.String)
	full := errors.New("disk full")
	d.FailNext(topologytest.ProduceOp, full)
	if err := lines.Pipe("1", "a", 1); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if err := lines.Pipe("1", "a", 2); err == nil || !strings.Contains(err.Error(), "has stopped") {
		t.Errorf("a topology that failed went on: %v", err)
	}
	if err := d.Crash(); err != nil {
		t.Fatal(err)
	}
	same(t, "after the crash", pairs(topologytest.Output(d, "out", serde.String, serde.Int64).Read()), []string{"a=1"})
}

func TestErrorHandlers(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.Int64).
		TryMapValues(func(_ string, n int64) (int64, error) {
			if n < 0 {
				return 0, errors.New("negative")
			}
			return n + 1, nil
		}).To("out")
	p := built(t, b)
	d := topologytest.New(t, p, topologytest.ErrorHandlers(processors.Handlers{
		Deserialization: processors.DeadLetterOnError("dead"), Processing: processors.SkipOnError(),
	}))
	in := topologytest.Input(d, "in", serde.String, serde.Int64)
	in.Pipe("a", 1, 1)
	in.Pipe("a", -1, 2)
	raw := topologytest.Input(d, "in", serde.String, serde.String)
	raw.Pipe("a", "junk", 3)
	same(t, "out", pairs(topologytest.Output(d, "out", serde.String, serde.Int64).Read()), []string{"a=2"})
	dead := topologytest.Output(d, "dead", serde.String, serde.String).Read()
	same(t, "dead letters", pairs(dead), []string{"a=junk"})
	if len(dead[0].Headers) != 6 {
		t.Errorf("the dead letter's headers are %v", dead[0].Headers)
	}
	same(t, "dropped", d.Dropped(), map[string]int64{processors.DroppedDeserialization: 1, processors.DroppedProcessing: 1})

	failing, err := topologytest.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer failing.Close()
	err = topologytest.Input(failing, "in", serde.String, serde.Int64).Pipe("a", -1, 7)
	if err == nil || !strings.Contains(err.Error(), "negative") || !strings.Contains(err.Error(), "in-0 offset 0") {
		t.Errorf("the error should say what and where: %v", err)
	}
}

// The dead letter of a row whose foreign key can't be found has the type of the function's own error.
func TestDeadLetterOfAForeignKey(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Table("left", serde.String, serde.String).
		TryJoinForeign(b.Table("right", serde.String, serde.String),
			func(string, string) (string, error) { return "", errors.New("no key") },
			func(l, r string) (string, error) { return l + r, nil }).
		ToStream().To("out")
	d := topologytest.New(t, built(t, b), topologytest.ErrorHandlers(processors.Handlers{Processing: processors.DeadLetterOnError("dead")}))
	topologytest.Input(d, "left", serde.String, serde.String).Pipe("k", "v", 1)
	dead := topologytest.Output(d, "dead", serde.String, serde.String).Read()
	same(t, "dead letters", pairs(dead), []string{"k=v"})
	for _, h := range dead[0].Headers {
		if h.Key == processors.HeaderErrorException && string(h.Value) != "*errors.errorString" {
			t.Errorf("%v", h)
		}
	}
}

func TestMistakesOfATestAreTold(t *testing.T) {
	d, err := topologytest.Open(wordCount(t))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = topologytest.Input(d, "lnies", serde.String, serde.String).Pipe("k", "v", 1)
	if err == nil || !strings.Contains(err.Error(), `"lnies" is not read by the topology; it reads [lines]`) {
		t.Errorf("got %v", err)
	}
	if _, err = topologytest.KeyValue(d, "cuonts", 0, serde.String, serde.Int64); err == nil || !strings.Contains(err.Error(), "[counts]") {
		t.Errorf("got %v", err)
	}
	if _, err = topologytest.KeyValue(d, "counts", 0, serde.String, serde.Int64); err == nil || !strings.Contains(err.Error(), "timestampedKeyValue") {
		t.Errorf("got %v", err)
	}
	if _, err = d.Stores("counts", 1); err == nil {
		t.Error("there is no partition 1")
	}
}

func TestWallClock(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.String).
		Process(func() processors.Processor[string, string, string, string] { return &ticker{} },
			topology.KeySerde(serde.String), topology.ValueSerde(serde.String)).To("out")
	start := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	d := topologytest.New(t, built(t, b), topologytest.StartTime(start))
	d.AdvanceWallClock(9 * time.Second)
	d.AdvanceWallClock(time.Second)
	d.AdvanceWallClock(time.Minute)
	out := topologytest.Output(d, "out", serde.String, serde.String).Read()
	same(t, "ticks", pairs(out), []string{"tick=00:00:10", "tick=00:01:10"})
	if !d.Now().Equal(start.Add(70 * time.Second)) {
		t.Errorf("now is %v", d.Now())
	}
}

// ticker sends a record every ten seconds.
type ticker struct {
	ctx processors.ProcessorContext[string, string]
}

func (p *ticker) Init(ctx processors.ProcessorContext[string, string]) error {
	p.ctx = ctx
	ctx.Schedule(10*time.Second, processors.WallClockTime, func(now int64) error {
		return ctx.Forward(&processors.Record[string, string]{Key: "tick", Value: time.UnixMilli(now).UTC().Format(time.TimeOnly), Timestamp: now})
	})
	return nil
}

func (p *ticker) Process(*processors.Record[string, string]) error { return nil }
func (p *ticker) Close() error                                     { return nil }

func TestPatternsAndHeaders(t *testing.T) {
	for name, opts := range map[string][]topologytest.Option{"driver": nil, "partitioned": {topologytest.Partitions(2)}} {
		t.Run(name, func(t *testing.T) {
			b := topology.NewBuilder("app")
			b.StreamPattern("in-[a-z]", serde.String, serde.Ptr(serde.String)).To("out")
			d := topologytest.New(t, built(t, b), opts...)
			h := processors.Header{Key: "h", Value: []byte("1")}
			topologytest.Input(d, "in-a", serde.String, serde.String).Pipe("k", "1", 1, h)
			topologytest.Input(d, "in-b", serde.String, serde.String).PipeNull("k", 2)
			topologytest.Input(d, "in-a", serde.String, serde.String).Pipe("k", "3", 3)
			out := topologytest.Output(d, "out", serde.String, serde.Ptr(serde.String)).Read()
			if len(out) != 3 || *out[0].Value != "1" || out[2].Timestamp != 3 {
				t.Fatalf("got %v", out)
			}
			same(t, "headers", out[0].Headers, []processors.Header{h})
		})
	}
}

// fakeTable is a lake sink whose rows only the harness sees.
type fakeTable struct{}

func (fakeTable) String() string               { return "fake:table" }
func (fakeTable) Bind(_, _ reflect.Type) error { return nil }
func (fakeTable) Open(context.Context, sink.Env) (sink.Writer, error) {
	return nil, errors.New("not opened in tests")
}

func TestLakeRows(t *testing.T) {
	for name, stateful := range map[string]bool{"straight": false, "staged": true} {
		t.Run(name, func(t *testing.T) {
			b := topology.NewBuilder("app")
			in := b.Stream("in", serde.String, serde.String)
			if stateful {
				in = in.DedupBy(func(v string) string { return v }, time.Hour)
			}
			in.ToLake(fakeTable{}, topology.Name("table"), topology.KeySerde(serde.String), topology.ValueSerde(serde.String))
			d := topologytest.New(t, built(t, b))
			topic := topologytest.Input(d, "in", serde.String, serde.String)
			topic.Pipe("k", "a", 1)
			d.FailNext(topologytest.LakeOp, nil)
			topic.Pipe("k", "b", 2)
			d.Crash()
			topic.Pipe("k", "c", 3)
			d.Restart()
			var got []string
			for _, r := range topologytest.LakeRows[string](d, "table") {
				got = append(got, fmt.Sprintf("%v %s %s-%d@%d t=%d", r.Key, *r.Value, r.Meta.Topic, r.Meta.Partition, r.Meta.Offset, r.Meta.Timestamp))
			}
			same(t, "rows", got, []string{"k a in-0@0 t=1", "k b in-0@1 t=2", "k c in-0@2 t=3"})
		})
	}
}

// A windowed stream lands with the windows as keys.
func TestLakeRowsOfWindows(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.String).GroupByKey().Windowed(topology.Tumbling(10*time.Millisecond)).Count().ToStream().
		ToLake(fakeTable{}, topology.Name("table"))
	d := topologytest.New(t, built(t, b))
	topic := topologytest.Input(d, "in", serde.String, serde.String)
	for _, at := range []int64{1, 2, 11} {
		topic.Pipe("k", "v", at)
	}
	var got []string
	for _, r := range topologytest.LakeRows[int64](d, "table") {
		w := r.Key.(topology.Window[string])
		got = append(got, fmt.Sprintf("%s@%d %d", w.Key, w.Window.Start, *r.Value))
	}
	same(t, "rows", got, []string{"k@0 1", "k@0 2", "k@10 1"})
}

// What tasks log goes to the logger that the test gives.
func TestLoggerGetsWhatTasksLog(t *testing.T) {
	var lines bytes.Buffer
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.String).
		TryMapValues(func(_, _ string) (string, error) { return "", errors.New("no use") }).
		To("out")
	d := topologytest.New(t, built(t, b), topologytest.Logger(slog.New(slog.NewTextHandler(&lines, nil))),
		topologytest.ErrorHandlers(processors.Handlers{Processing: processors.SkipOnError()}))
	topologytest.Input(d, "in", serde.String, serde.String).Pipe("k", "v", 1)
	if text := lines.String(); !strings.Contains(text, "record left out") || !strings.Contains(text, "no use") || strings.Contains(text, "dead_letter_topic") {
		t.Errorf("the logger got %q of a record that is skipped", text)
	}
}

func TestGlobalTables(t *testing.T) {
	for name, opts := range map[string][]topologytest.Option{"driver": nil, "partitioned": {topologytest.Partitions(3)}} {
		t.Run(name, func(t *testing.T) {
			b := topology.NewBuilder("app")
			names := b.GlobalTable("names", serde.String, serde.String)
			b.Stream("in", serde.String, serde.String).
				JoinGlobal(names, func(_, v string) string { return v }, func(v, name string) string { return v + "=" + name }).To("out")
			d := topologytest.New(t, built(t, b), opts...)
			table := topologytest.Input(d, "names", serde.String, serde.String)
			in := topologytest.Input(d, "in", serde.String, serde.String)
			for _, k := range []string{"a", "b", "c", "d"} {
				table.Pipe(k, strings.ToUpper(k), 1)
			}
			in.Pipe("k", "a", 1)
			d.Restart()
			in.Pipe("l", "d", 2)
			same(t, "joined", pairs(topologytest.Output(d, "out", serde.String, serde.String).Read()), []string{"k=a=A", "l=d=D"})
		})
	}
}

// What a global table leaves out has one dead letter, though its topic is read again at each start; without a handler it stops the topology.
func TestDeadLettersOfGlobalTables(t *testing.T) {
	b := topology.NewBuilder("app")
	rates := b.GlobalTable("rates", serde.String, serde.Int64)
	b.Stream("in", serde.String, serde.String).
		JoinGlobal(rates, func(k, _ string) string { return k }, func(v string, n int64) string { return fmt.Sprint(v, n) }).To("out")
	p := built(t, b)
	d := topologytest.New(t, p, topologytest.ErrorHandlers(processors.Handlers{
		Deserialization: processors.DeadLetterOnError("dead"), DroppedTopic: "ledger",
	}))
	numbers := topologytest.Input(d, "rates", serde.Ptr(serde.String), serde.Int64)
	junk := topologytest.Input(d, "rates", serde.String, serde.String)
	key := "a"
	junk.Pipe("a", "junk", 1)
	numbers.Pipe(&key, 7, 2)
	numbers.Pipe(nil, 8, 3)
	junk.Pipe("b", "junk", 4)
	d.Restart()
	d.Crash()
	topologytest.Input(d, "in", serde.String, serde.String).Pipe("a", "v", 5)
	same(t, "joined", pairs(topologytest.Output(d, "out", serde.String, serde.String).Read()), []string{"a=v7"})
	same(t, "dead letters", pairs(topologytest.Output(d, "dead", serde.String, serde.String).Read()), []string{"a=junk", "b=junk"})
	same(t, "ledger", len(topologytest.Output(d, "ledger", serde.Ptr(serde.String), serde.Int64).Read()), 1)

	failing, err := topologytest.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer failing.Close()
	err = failing.Pipe(topologytest.Record{Topic: "rates", Key: []byte("a"), Value: []byte("junk")})
	if err == nil || !strings.Contains(err.Error(), "rates-0") {
		t.Errorf("without a handler: %v", err)
	}
}

// Handlers of their own hold for global tables only.
func TestHandlersOfGlobalTables(t *testing.T) {
	b := topology.NewBuilder("app")
	b.GlobalTable("rates", serde.String, serde.Int64)
	b.Stream("in", serde.String, serde.Int64).To("out")
	p := built(t, b)
	d, err := topologytest.Open(p, topologytest.ErrorHandlers(processors.Handlers{Global: &processors.Handlers{Deserialization: processors.SkipOnError()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Pipe(topologytest.Record{Topic: "rates", Key: []byte("a"), Value: []byte("junk")}); err != nil {
		t.Errorf("the global table's handler was not asked: %v", err)
	}
	if err := d.Pipe(topologytest.Record{Topic: "in", Key: []byte("a"), Value: []byte("junk")}); err == nil {
		t.Error("the global table's handler was asked for a stream")
	}
}

// TestRecordsOfAllSizes: what is piped is in its topic as it is, however large, the difference between null and empty included.
func TestRecordsOfAllSizes(t *testing.T) {
	b := topology.NewBuilder("sizes")
	b.Stream("in", serde.Bytes, serde.Bytes).To("out")
	d := topologytest.New(t, built(t, b))
	in := topologytest.Input(d, "in", serde.Bytes, serde.Bytes)
	var want []topologytest.Record
	for i, size := range []int{-1, 0, 1, 127, 511, 512, 513, 4000, 127, 300_000, 5} {
		record := topologytest.Record{Topic: "in", Offset: int64(i), Timestamp: int64(i)}
		if size >= 0 {
			record.Key, record.Value = bytes.Repeat([]byte{byte('a' + i)}, size/3), bytes.Repeat([]byte{byte('A' + i)}, size)
		}
		want = append(want, record)
		in.Pipe(record.Key, record.Value, record.Timestamp)
	}
	same(t, "input", d.Records("in", 0), want)
	for i := range want {
		want[i].Topic = "out"
	}
	same(t, "output", d.Read("out"), want)
}

// TestPartitionsOfAnUnknownTopic: a misspelt topic is no option without effect.
func TestPartitionsOfAnUnknownTopic(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.String).To("out")
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := topologytest.Open(plan, topologytest.Partitions(2), topologytest.TopicPartitions("inn", 3)); err == nil || !strings.Contains(err.Error(), `no topic "inn"`) {
		t.Errorf("opened with %v", err)
	}
}

// Each kind of store is read by a facade of its own.
func TestStoresOfEachKind(t *testing.T) {
	b := topology.NewBuilder("app")
	in := b.Stream("in", serde.String, serde.String)
	in.GroupByKey().Windowed(topology.Tumbling(10 * time.Millisecond)).Count(topology.Store("windows"))
	in.GroupByKey().Sessions(topology.Session(10 * time.Millisecond)).Count(topology.Store("sessions"))
	in.ToTable(topology.Store("versions"), topology.Versioned(time.Hour))
	in.DedupBy(strings.ToUpper, time.Second, topology.Store("seen"))
	d := topologytest.New(t, built(t, b))
	topologytest.Input(d, "in", serde.String, serde.String).Pipe("k", "v", 12)

	windows, err := topologytest.TimestampedWindow(d, "windows", 0, serde.String, serde.Int64)
	if err != nil {
		t.Fatal(err)
	}
	if n, at, ok, err := windows.Get("k", 10); err != nil || !ok || n != 1 || at != 12 {
		t.Errorf("window: %d at %d, %v, %v", n, at, ok, err)
	}
	sessions, err := topologytest.Session(d, "sessions", 0, serde.String, serde.Int64)
	if err != nil {
		t.Fatal(err)
	}
	if n, ok, err := sessions.Get("k", 12, 12); err != nil || !ok || n != 1 {
		t.Errorf("session: %d, %v, %v", n, ok, err)
	}
	versions, err := topologytest.Versioned(d, "versions", 0, serde.String, serde.String)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok, err := versions.GetAsOf("k", 20); err != nil || !ok || v.Value != "v" || v.ValidFrom != 12 {
		t.Errorf("version: %+v, %v, %v", v, ok, err)
	}
	seen, err := topologytest.Window(d, "seen", 0, serde.String, serde.Int64)
	if err != nil {
		t.Fatal(err)
	}
	if first, ok, err := seen.Get("V", 12); err != nil || !ok || first != 12 {
		t.Errorf("id: first at %d, %v, %v", first, ok, err)
	}
}

// With EmitEvery windows that are over are looked for by the wall clock, as long as the store keeps them.
func TestEmitEvery(t *testing.T) {
	b := topology.NewBuilder("app", topology.EmitEvery(time.Second))
	b.Stream("in", serde.String, serde.String).GroupByKey().Windowed(topology.Tumbling(10*time.Millisecond).Grace(0), topology.EmitOnClose()).Count(topology.Retention(time.Hour)).
		ToStream().Map(func(w topology.Window[string], n int64) (string, int64) { return w.Key, n }).To("out")
	d := topologytest.New(t, built(t, b))
	in, out := topologytest.Input(d, "in", serde.String, serde.String), topologytest.Output(d, "out", serde.String, serde.Int64)
	emitted := func(want int) {
		t.Helper()
		if got := out.Read(); len(got) != want {
			t.Errorf("%d windows are sent, want %d", len(got), want)
		}
	}
	in.Pipe("k", "v", 1)
	in.Pipe("k", "v", 11) // the first look
	emitted(1)
	in.Pipe("k", "v", 21)
	emitted(0)
	if err := d.AdvanceWallClock(time.Second); err != nil {
		t.Fatal(err)
	}
	in.Pipe("k", "v", 22)
	emitted(1)
}
