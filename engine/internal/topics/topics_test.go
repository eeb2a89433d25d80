package topics

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/realkafka"
)

func TestMain(m *testing.M) { realkafka.Main(m) }

func changelog(name string, partitions int32) Wanted {
	return Wanted{Name: name, Partitions: partitions, Replication: 1, Config: map[string]string{
		"cleanup.policy": "compact,delete", "retention.ms": "86401000", "message.timestamp.type": "CreateTime"}}
}

func TestEnsureCreatesAndAcceptsWhatItCreated(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		client := c.Client(t)
		wanted := []Wanted{changelog("ensure-a", 3), {Name: "ensure-b", Partitions: 1, Config: map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": "52428800"}}}
		first, _, err := Ensure(t.Context(), client, wanted)
		if err != nil {
			t.Fatal(err)
		}
		again, warnings, err := Ensure(t.Context(), client, wanted)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("the second time: %v, %v", warnings, err)
		}
		if d := cmp.Diff(first, again); d != "" || first["ensure-a"].Partitions != 3 || first["ensure-a"].ID == [16]byte{} {
			t.Fatalf("%+v %s", first, d)
		}
	})
}

func TestEnsureFindsWhatIsWrong(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		client := c.Client(t)
		if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 2, 1, map[string]*string{"cleanup.policy": kadm.StringPtr("delete"), "retention.ms": kadm.StringPtr("5000")}, "wrong"); err != nil {
			t.Fatal(err)
		}
		_, warnings, err := Ensure(t.Context(), client, []Wanted{changelog("wrong", 3), changelog("right", 1)})
		var internal *InternalError
		if !errors.As(err, &internal) || len(internal.Problems) != 2 {
			t.Fatalf("got %v, want two problems", err)
		}
		for _, want := range []string{"2 partitions, but 3", "cleanup.policy"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: lacks %q", err, want)
			}
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0].Reason, "retention.ms") || !strings.Contains(warnings[0].Advice, "--add-config retention.ms=86401000") {
			t.Errorf("warnings: %v", warnings)
		}
	})
}

func TestDescribeAndMatching(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		client := c.Client(t)
		id := c.CreateTopic(t, "match-1", 2)
		c.CreateTopic(t, "match-22", 1)
		found, err := Describe(t.Context(), client, "match-1", "nosuch")
		if d := cmp.Diff(map[string]Topic{"match-1": {"match-1", id, 2}}, found); d != "" || err != nil {
			t.Fatal(err, d)
		}
		matching, err := Matching(t.Context(), client, "match-[0-9]")
		if d := cmp.Diff([]string{"match-1"}, slices.Sorted(maps.Keys(matching))); d != "" || err != nil {
			t.Fatal(err, d)
		}
		if _, err := Matching(t.Context(), client, "("); err == nil {
			t.Fatal("a broken pattern was taken")
		}
	})
}

func TestPurge(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		client := c.Client(t)
		c.CreateTopic(t, "purge", 1)
		for range 5 {
			if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "purge", Value: []byte("x")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		for _, before := range []int64{3, 3, 1} { // again, and below what is gone
			if refused, err := Purge(t.Context(), client, []Bound{{"purge", 0, before}}); err != nil || len(refused) > 0 {
				t.Fatal(refused, err)
			}
		}
		starts, err := kadm.NewClient(client).ListStartOffsets(t.Context(), "purge")
		if o, _ := starts.Lookup("purge", 0); err != nil || o.Offset != 3 {
			t.Fatalf("the log starts at %d (%v), want 3", o.Offset, err)
		}
	})
}

func TestMemoryNoticesLostTopics(t *testing.T) {
	dir := t.TempDir()
	m, err := OpenMemory(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, b := Topic{"a", [16]byte{1}, 1}, Topic{"b", [16]byte{2}, 1}
	if err := m.Keep(map[string]Topic{"a": a, "b": b}); err != nil {
		t.Fatal(err)
	}
	if m, err = OpenMemory(dir); err != nil {
		t.Fatal(err)
	}
	if err := m.Check([]string{"a", "b", "c"}, map[string]Topic{"a": a, "b": b, "c": {}}); err != nil {
		t.Fatalf("all are there: %v", err)
	}
	err = m.Check(m.Names(), map[string]Topic{"a": {"a", [16]byte{9}, 1}})
	var internal *InternalError
	if !errors.As(err, &internal) || len(internal.Problems) != 2 {
		t.Fatalf("got %v, want one topic made anew and one gone", err)
	}
	if err := m.Keep(map[string]Topic{"b": b}); err != nil { // the topology has changed
		t.Fatal(err)
	}
	if err := m.Check(m.Names(), map[string]Topic{"b": b}); err != nil {
		t.Fatal(err)
	}
}
