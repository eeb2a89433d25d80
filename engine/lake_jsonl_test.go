package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/lake/jsonl"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// coverage sums up what has landed of all partitions; a landing that isn't there has nothing.
func coverage(t *testing.T, place string) (all []jsonl.Coverage) {
	t.Helper()
	l, err := jsonl.Open(t.Context(), place)
	if errors.Is(err, jsonl.ErrNoLanding) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	parts, err := l.Partitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		c, err := l.Coverage(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

func landedThrough(t *testing.T, place string) (next int64) {
	for _, c := range coverage(t, place) {
		next += c.Next
	}
	return next
}

// What the sink's check refuses goes to the dead letters with its reason, and is counted where the log's missing beginning is told of, too.
func TestJSONLinesSayWhatTheyLack(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "jsonl")
		a.create("in", 1)
		a.create("dead", 1)
		dead := a.read("dead")
		a.produce("in", 1, `{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"bad":4}`, `{"bad":5}`)
		admin := kadm.NewClient(a.c.Client(t))
		gone := kadm.Offsets{}
		gone.Add(kadm.Offset{Topic: a.topic("in"), Partition: 0, At: 2})
		if _, err := admin.DeleteRecords(t.Context(), gone); err != nil {
			t.Fatal(err)
		}

		place := t.TempDir()
		refuse := func(_ *string, v *[]byte, _ *sink.Meta) error {
			if strings.Contains(string(*v), "bad") {
				return errors.New("bad_member")
			}
			return nil
		}
		b := topology.NewBuilder(a.name)
		b.Stream(a.topic("in"), serde.String, serde.Bytes).ToLake(jsonl.Sink(place, jsonl.Check(refuse)), topology.Name("raw"))
		plan, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		handlers := ErrorHandlers(processors.Handlers{Processing: processors.HandleErrors(func(e *processors.ErrorContext) processors.Verdict {
			return processors.Verdict{DeadLetterTopic: a.topic("dead"), Headers: []processors.Header{{Key: "reason", Value: []byte(e.Err.Error())}}}
		})})
		i := a.start(plan, "i1", quickLake, handlers, OutOfRange(Earliest))
		eventually(t, "landed", func() bool { return landedThrough(t, place) == 6 })
		i.await(t, "all is processed", func(s Stats) bool { return s.Processed == 4 })
		i.stop(t)
		got := coverage(t, place)
		if len(got) != 1 || got[0].Next != 6 || got[0].Rows != 2 || got[0].Rejects != 2 || got[0].LargestOffset != 3 {
			t.Fatalf("%+v", got)
		}
		if d := cmp.Diff([]jsonl.Gap{{Start: 0, End: 1, Reason: sink.GapRetention}}, got[0].Gaps); d != "" {
			t.Error(d)
		}
		eventually(t, "dead letters", func() bool { return len(dead.all()) == 2 })
		last := dead.all()[1]
		if h := last.Headers[len(last.Headers)-1]; string(last.Value) != `{"bad":5}` || h.Key != "reason" || string(h.Value) != "bad_member" {
			t.Errorf("dead letter %s with %s=%s", last.Value, h.Key, h.Value)
		}
		committed, err := admin.FetchOffsets(context.Background(), a.name)
		if err != nil {
			t.Fatal(err)
		}
		if o, ok := committed.Lookup(a.topic("in"), 0); !ok || o.At != 6 {
			t.Errorf("the group's offset is %d, %v", o.At, ok)
		}
	})
}

// Behind an internal topic manifests speak of that, and lines of the source.
func TestJSONLinesBehindState(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "jsonlstate")
	a.create("in", 2)
	place := t.TempDir()
	b := topology.NewBuilder(a.name)
	b.Stream(a.topic("in"), serde.String, serde.String).
		GroupBy(func(_, v string) string { return v }, topology.Name("by-value")).Count(topology.Store("counts")).ToStream().
		ToLake(jsonl.Sink(place), topology.Name("counts"))
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	a.produce("in", 2, numbered(20, 4)...)
	rows := func() int {
		var n int64
		for _, c := range coverage(t, place) {
			n += c.Rows
		}
		return int(n)
	}
	i := a.start(plan, "i1", quickLake)
	eventually(t, "landed", func() bool { return rows() == 20 })
	i.stop(t)
	l, err := jsonl.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for r, err := range l.Rows(t.Context(), jsonl.Select{}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Topic != a.topic("in") {
			t.Fatalf("a line of topic %s", r.Topic)
		}
		seen[fmt.Sprint(r.Partition, "/", r.Offset)] = true
	}
	if len(seen) != 20 {
		t.Errorf("lines of %d records, want 20", len(seen))
	}
	for _, c := range coverage(t, place) {
		if !strings.HasPrefix(c.Partition.Topic, a.name+"-") || c.Partition.Topic == a.topic("in") {
			t.Errorf("a manifest of topic %s", c.Partition.Topic)
		}
	}
}

// An application that begins at the end says so in its landing.
func TestJSONLinesFromTheEnd(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "jsonlend")
	a.create("in", 1)
	a.produce("in", 1, `1`, `2`, `3`)
	place := t.TempDir()
	b := topology.NewBuilder(a.name)
	b.Stream(a.topic("in"), serde.String, serde.Bytes).ToLake(jsonl.Sink(place), topology.Name("raw"))
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	i := a.start(plan, "i1", quickLake, StartFrom(Latest))
	i.await(t, "it runs", func(s Stats) bool { return s.State == Running && len(s.Tasks) == 1 })
	a.produce("in", 1, `4`)
	eventually(t, "landed", func() bool { return landedThrough(t, place) == 4 })
	i.stop(t)
	got := coverage(t, place)[0]
	if d := cmp.Diff([]jsonl.Gap{{Start: 0, End: 2, Reason: sink.GapStart}}, got.Gaps); d != "" || got.Rows != 1 {
		t.Errorf("%+v\n%s", got, d)
	}
}
