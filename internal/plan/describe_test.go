package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDescribe compares with the text that Kafka Streams 4.3.1 writes, lake sinks aside (lists in brackets are in the order of Java hashes).
func TestDescribe(t *testing.T) {
	b := NewBuilder()
	b.AddInternalTopic("by-region-repartition", RepartitionTopic, 0)
	b.AddSource(source("orders", "orders", "returns"))
	b.AddProcessor("filter", stub{}, "orders")
	b.AddProcessor("key", stub{}, "filter")
	b.AddSink("to-region", "by-region-repartition", stub{}, "key")
	b.AddDynamicSink("routed", stub{}, "filter")
	b.AddSource(source("by-region", "by-region-repartition"))
	b.AddProcessor("count", stub{}, "by-region")
	b.AddStore(kv("counts"), "count")
	b.AddStore(kv("late"), "count")
	b.AddGlobalStore(GlobalStore{Spec: kv("g"), Topic: "regions", Source: "gs", Processor: "gp", Read: stub{}, Update: stub{}})
	b.AddSource(Source{Name: "logs", Pattern: "logs\\..*", Supplier: stub{}})
	b.AddLake(lakeSink("rows"), "logs")
	want := `Topologies:
   Sub-topology: 0
    Source: orders (topics: [orders, returns])
      --> filter
    Processor: filter (stores: [])
      --> key, routed
      <-- orders
    Processor: key (stores: [])
      --> to-region
      <-- filter
    Sink: routed (extractor class: per record)
      <-- filter
    Sink: to-region (topic: by-region-repartition)
      <-- key

  Sub-topology: 1
    Source: by-region (topics: [by-region-repartition])
      --> count
    Processor: count (stores: [late, counts])
      --> none
      <-- by-region

  Sub-topology: 2 for global store (will not generate tasks)
    Source: gs (topics: [regions])
      --> gp
    Processor: gp (stores: [g])
      --> none
      <-- gs
  Sub-topology: 3
    Source: logs (topics: logs\..*)
      --> rows
    Sink: rows (table: delta:/rows)
      <-- logs

`
	if diff := cmp.Diff(want, mustBuild(t, b).Describe()); diff != "" {
		t.Error(diff)
	}
}

// TestDescribeStackedDiamonds has more ways from its source to its end than anybody could walk: 3 to the power of 60.
func TestDescribeStackedDiamonds(t *testing.T) {
	b := NewBuilder()
	b.AddSource(source("source", "in"))
	from := "source"
	for i := range 60 {
		var branches []string
		for j := range 3 {
			branch := fmt.Sprintf("branch-%02d-%d", i, j)
			b.AddProcessor(branch, stub{}, from)
			branches = append(branches, branch)
		}
		from = fmt.Sprintf("merge-%02d", i)
		b.AddProcessor(from, stub{}, branches...)
	}
	if n := strings.Count(mustBuild(t, b).Describe(), "Processor: "); n != 60*4 {
		t.Errorf("%d processors", n)
	}
}
