package task

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
)

// textSource is a source of text records whose value is their event time; "bad" can't be decoded, "boom" panics downstream.
type textSource struct {
	next processors.Next[string, string]
}

func (s textSource) NewHead(string) processors.Head { return &textHead{next: s.next} }

type textHead struct {
	next   processors.Next[string, string]
	record processors.Record[string, string]
}

func (h *textHead) Load(raw *processors.RawRecord, partitionTime int64) (int64, error) {
	value := string(raw.Value)
	switch value {
	case "bad":
		return 0, &processors.DeserializationError{What: "value", Topic: raw.Topic, Partition: raw.Partition, Offset: raw.Offset, Err: errors.New("not text")}
	case "negative":
		return -1, nil
	case "untimed":
		return 0, &processors.TimestampError{Topic: raw.Topic, Partition: raw.Partition, Offset: raw.Offset, Timestamp: -1}
	case "after":
		h.record = processors.Record[string, string]{Value: value, Timestamp: partitionTime + 1}
		return partitionTime + 1, nil
	}
	ts, err := strconv.ParseInt(strings.TrimPrefix(value, "boom"), 10, 64)
	if err != nil {
		return 0, err
	}
	h.record = processors.Record[string, string]{Key: string(raw.Key), Value: value, Timestamp: ts, Headers: raw.Headers}
	return ts, nil
}

func (h *textHead) Process() error { return h.next(&h.record) }

// LeavesOut implements processors.Source.
func (textSource) LeavesOut() bool { return false }

type textSupplier struct{}

func (textSupplier) NewSource(_ processors.Runtime, children []processors.Child) (processors.Source, error) {
	next, err := processors.Fan[string, string](children)
	return textSource{next}, err
}

// bench is a task with a source node over the given topics and one processor that records what it sees.
type bench struct {
	*Task
	seen []string
	sent []Out
	now  time.Time
}

func (b *bench) Send(out *Out) error {
	b.sent = append(b.sent, *out)
	return nil
}

func (b *bench) Partitions(string) (int32, error) { return 1, nil }

func newBench(t *testing.T, change func(*Config), init func(rt processors.Runtime) error, topics ...string) *bench {
	t.Helper()
	b := &bench{now: time.UnixMilli(1000)}
	supplier := processors.SupplierFunc(func(rt processors.Runtime, _ []processors.Child) (processors.Instance, error) {
		body := func(r *processors.Record[string, string]) error {
			if strings.HasPrefix(r.Value, "boom") {
				panic("boom")
			}
			c := rt.Context()
			b.seen = append(b.seen, fmt.Sprintf("%s@%d", c.Topic, c.Offset))
			return nil
		}
		instance := processors.Instance{Next: processors.Guard(rt, body)}
		if init != nil {
			instance.Init = func() error { return init(rt) }
		}
		return instance, nil
	})
	source := &plan.Node{Name: "SOURCE", Kind: plan.SourceNode, Topics: topics, Source: textSupplier{}}
	node := &plan.Node{Name: "NODE", Kind: plan.ProcessorNode, Supplier: supplier, Parents: []*plan.Node{source}}
	source.Children = []*plan.Node{node}
	cfg := Config{
		ApplicationID: "app", Subtopologies: []*plan.Subtopology{{Nodes: []*plan.Node{source, node}}},
		Collector: b, Clock: func() time.Time { return b.now },
	}
	for _, topic := range topics {
		cfg.Inputs = append(cfg.Inputs, TopicPartition{Topic: topic})
	}
	if change != nil {
		change(&cfg)
	}
	task, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.Task = task
	if err := task.Init(); err != nil {
		t.Fatal(err)
	}
	return b
}

// add puts values into a topic from the given offset on.
func (b *bench) add(t *testing.T, topic string, offset int64, values ...string) {
	t.Helper()
	var records []processors.RawRecord
	for i, v := range values {
		records = append(records, processors.RawRecord{Topic: topic, Offset: offset + int64(i), Value: []byte(v), Key: []byte("k")})
	}
	if err := b.Add(TopicPartition{Topic: topic}, records, offset+int64(len(values))); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) drain(t *testing.T) {
	t.Helper()
	for {
		ok, err := b.Process()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return
		}
		if _, err := b.PunctuateStreamTime(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLowestTimeGoesFirst(t *testing.T) {
	b := newBench(t, nil, nil, "a", "b")
	b.add(t, "a", 0, "5", "1", "9")
	b.add(t, "b", 0, "2", "7")
	b.drain(t)
	want := []string{"b@0", "a@0", "a@1", "b@1", "a@2"} // the head counts, not what is behind it
	if diff := cmp.Diff(want, b.seen); diff != "" {
		t.Error(diff)
	}
	if b.StreamTime() != 9 {
		t.Errorf("stream time %d", b.StreamTime())
	}
}

func TestEqualTimesTakeTurns(t *testing.T) {
	b := newBench(t, nil, nil, "a", "b")
	b.add(t, "b", 0, "1", "1")
	b.add(t, "a", 0, "1", "1")
	b.drain(t)
	if diff := cmp.Diff([]string{"b@0", "a@0", "b@1", "a@1"}, b.seen); diff != "" {
		t.Error(diff)
	}
}

func TestPositionsFollowProcessing(t *testing.T) {
	b := newBench(t, nil, nil, "a")
	offset := func() int64 { return b.Positions(nil)[0].Offset }
	if offset() != -1 {
		t.Fatalf("before anything was read: %d", offset())
	}
	b.add(t, "a", 10, "1", "2")
	if offset() != 10 {
		t.Errorf("nothing processed: %d", offset())
	}
	if _, err := b.Process(); err != nil || offset() != 11 {
		t.Errorf("one processed: %d %v", offset(), err)
	}
	b.drain(t)
	if err := b.Add(TopicPartition{Topic: "a"}, nil, 15); err != nil { // markers behind the last record
		t.Fatal(err)
	}
	if offset() != 15 || !b.TakeDirty() {
		t.Errorf("past markers: %d", offset())
	}
	if err := b.SetPosition(TopicPartition{Topic: "a"}, 12, 2); err != nil || offset() != 12 {
		t.Errorf("sought: %d %v", offset(), err)
	}
}

func TestUndecodableRecords(t *testing.T) {
	skip := func(c *Config) { c.Handlers.Deserialization = processors.DeadLetterOnError("dead") }
	b := newBench(t, skip, nil, "a")
	b.add(t, "a", 0, "bad", "1", "negative", "2", "bad")
	b.drain(t)
	if diff := cmp.Diff([]string{"a@1", "a@3"}, b.seen); diff != "" {
		t.Error(diff)
	}
	if got := b.Positions(nil)[0].Offset; got != 5 {
		t.Errorf("position %d, want 5: left-out records are progress", got)
	}
	want := []Drop{{"SOURCE", processors.DroppedDeserialization, 2}, {"SOURCE", processors.DroppedTimestamp, 1}}
	if diff := cmp.Diff(want, b.Drops()); diff != "" {
		t.Error(diff)
	}
	if len(b.sent) != 2 || b.sent[0].Topic != "dead" || string(b.sent[0].Value) != "bad" || len(b.sent[0].Headers) != 6 {
		t.Errorf("dead letters: %+v", b.sent)
	}

	b = newBench(t, nil, nil, "a")
	b.add(t, "a", 7, "bad")
	_, err := b.Process()
	var failed *processors.DeserializationError
	if !errors.As(err, &failed) || !processors.IsFatal(err) || failed.Offset != 7 {
		t.Errorf("by default it fails: %v", err)
	}
	b = newBench(t, skip, nil, "a")
	b.add(t, "a", 0, "untimed")
	if _, err := b.Process(); !processors.IsFatal(err) {
		t.Errorf("a refused event time is fatal whatever the handler says: %v", err)
	}
}

func TestPanicsGoToTheProcessingHandler(t *testing.T) {
	b := newBench(t, nil, nil, "a")
	b.add(t, "a", 3, "boom1")
	_, err := b.Process()
	var failed *processors.ProcessingError
	if !errors.As(err, &failed) || failed.Node != "NODE" || failed.Offset != 3 || failed.Topic != "a" {
		t.Fatalf("not located: %v", err)
	}
	if got := b.Positions(nil)[0].Offset; got != 3 {
		t.Errorf("a failed record is no progress: %d", got)
	}

	b = newBench(t, func(c *Config) { c.Handlers.Processing = processors.DeadLetterOnError("dead") }, nil, "a")
	b.add(t, "a", 0, "boom1", "2")
	b.drain(t)
	if diff := cmp.Diff([]string{"a@1"}, b.seen); diff != "" {
		t.Error(diff)
	}
	if len(b.sent) != 1 || string(b.sent[0].Key) != "k" || !strings.Contains(string(b.sent[0].Headers[1].Value), "panic: boom") {
		t.Errorf("dead letter: %+v", b.sent)
	}
}

func TestPunctuation(t *testing.T) {
	var fired []int64
	var cancel processors.Cancellable
	note := func(now int64) error {
		fired = append(fired, now)
		if now >= 100 {
			cancel.Cancel()
		}
		return nil
	}
	b := newBench(t, nil, func(rt processors.Runtime) error {
		cancel = rt.Schedule(10*time.Millisecond, processors.StreamTime, note)
		return nil
	}, "a")
	b.add(t, "a", 0, "3", "9", "10", "47", "49", "50", "100", "200")
	b.drain(t)
	if diff := cmp.Diff([]int64{3, 10, 47, 50, 100}, fired); diff != "" {
		t.Error(diff)
	}

	fired = nil
	b = newBench(t, nil, func(rt processors.Runtime) error {
		cancel = rt.Schedule(10*time.Millisecond, processors.WallClockTime, note)
		return nil
	}, "a")
	for _, advance := range []int64{9, 1, 35, 5} {
		b.now = b.now.Add(time.Duration(advance) * time.Millisecond)
		if _, err := b.PunctuateWallClock(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]int64{1010}, fired); diff != "" { // cancelled by its first call
		t.Error(diff)
	}
	if _, ok := b.NextWallClock(); ok {
		t.Error("a cancelled punctuation is still due")
	}
}

func TestWaitsForEmptyInputs(t *testing.T) {
	lags := map[string]int64{}
	b := newBench(t, func(c *Config) {
		c.MaxIdle = 20 * time.Millisecond
		c.Lag = func(tp TopicPartition) (int64, bool) {
			lag, ok := lags[tp.Topic]
			return lag, ok
		}
	}, nil, "a", "b")
	b.add(t, "a", 0, "1", "2")
	step := func(want bool, why string) {
		t.Helper()
		if ok, err := b.Process(); ok != want || err != nil {
			t.Fatalf("%s: processed %v, %v", why, ok, err)
		}
	}
	step(false, "lag unknown")
	lags["b"] = 3
	step(false, "records still to be fetched")
	lags["b"] = 0
	step(false, "begins to wait")
	b.now = b.now.Add(19 * time.Millisecond)
	step(false, "still waits")
	if at, ok := b.WaitEnds(); !ok || !at.Equal(time.UnixMilli(1020)) {
		t.Errorf("the wait ends at %v, %v", at, ok)
	}
	if since, ok := b.HoldsSince(TopicPartition{Topic: "b"}); !ok || !since.Equal(time.UnixMilli(1000)) {
		t.Errorf("b has held a back since %v, %v", since, ok)
	}
	if _, ok := b.HoldsSince(TopicPartition{Topic: "a"}); ok {
		t.Error("a holds nothing back")
	}
	b.now = b.now.Add(time.Millisecond)
	step(true, "waited long enough")
	if b.Enforced() != 1 {
		t.Errorf("enforced %d", b.Enforced())
	}
	if _, ok := b.HoldsSince(TopicPartition{Topic: "b"}); ok {
		t.Error("b doesn't hold a back any more")
	}
	if _, ok := b.WaitEnds(); ok {
		t.Error("nothing is waited for any more")
	}
	b.add(t, "b", 0, "1")
	step(true, "both have records")
	if last := b.seen[len(b.seen)-1]; last != "b@0" {
		t.Errorf("took %s", last)
	}
}

// What a source says of itself comes before the task's setting.
func TestSourcesSayHowLongTheyAreWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		task time.Duration
		wait plan.Setting
		want []bool // processed at once, after 20 ms, after an hour
	}{
		"the task's":              {20 * time.Millisecond, plan.Setting{}, []bool{false, true, true}},
		"not at all":              {time.Hour, plan.Setting{Set: true}, []bool{true, true, true}},
		"longer":                  {0, plan.Setting{Set: true, Ms: 3_600_000}, []bool{false, false, true}},
		"until something comes":   {0, plan.Setting{Set: true, Ms: math.MaxInt64}, []bool{false, false, false}},
		"longer than there is ns": {0, plan.Setting{Set: true, Ms: math.MaxInt64 / 1000}, []bool{false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(cfg *Config) {
				cfg.MaxIdle = c.task
				cfg.Lag = func(TopicPartition) (int64, bool) { return 0, true }
				cfg.Subtopologies[0].Nodes[0].Idle.Wait = c.wait
			}, nil, "a", "b")
			b.add(t, "a", 0, "1", "2", "3")
			var got []bool
			for _, ms := range []int64{0, 20, 3_600_000} {
				b.now = b.now.Add(time.Duration(ms) * time.Millisecond)
				ok, err := b.Process()
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, ok)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if _, ends := b.WaitEnds(); ends {
				t.Error("a wait that is over, or has no end, ends")
			}
		})
	}
}
