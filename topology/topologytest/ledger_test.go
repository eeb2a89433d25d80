package topologytest_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// What is left out without being wrong goes to the ledger, with its bytes and why; dead letters don't.
func TestLedgerOfDroppedRecords(t *testing.T) {
	b := topology.NewBuilder("app")
	in := b.Stream("in", serde.Ptr(serde.String), serde.String)
	in.DedupBy(func(v string) string { return v }, time.Minute, topology.Name("once")).
		TryMapValues(func(_ *string, v string) (string, error) {
			switch v {
			case "skip", "letter":
				return "", errors.New(v)
			}
			return v, nil
		}).
		GroupByKey().Windowed(topology.Tumbling(10 * time.Millisecond).Grace(0)).Count(topology.Store("counts"))
	processing := processors.HandleErrors(func(c *processors.ErrorContext) processors.Verdict {
		if string(c.RawValue) == "letter" {
			return processors.Verdict{DeadLetterTopic: "dead"}
		}
		return processors.Verdict{}
	})
	d := topologytest.New(t, built(t, b), topologytest.ErrorHandlers(processors.Handlers{Processing: processing, DroppedTopic: "ledger"}))
	key := "k"
	records := topologytest.Input(d, "in", serde.Ptr(serde.String), serde.String)
	for _, r := range []struct {
		key   *string
		value string
		at    int64
	}{{&key, "a", 1}, {&key, "a", 2}, {&key, "b", 30}, {&key, "late", 3}, {nil, "keyless", 31}, {&key, "skip", 32}, {&key, "letter", 33}} {
		records.Pipe(r.key, r.value, r.at)
	}
	var got []string
	for _, r := range topologytest.Output(d, "ledger", serde.Ptr(serde.String), serde.String).Read() {
		reason := r.Headers[slices.IndexFunc(r.Headers, func(h processors.Header) bool { return h.Key == processors.HeaderDroppedReason })]
		got = append(got, r.Value+" "+string(reason.Value))
	}
	same(t, "ledger", got, []string{"a duplicate", "late late", "keyless null_key", "skip processing"})
	same(t, "dead letters", len(topologytest.Output(d, "dead", serde.Ptr(serde.String), serde.String).Read()), 1)
}
