package topologytest_test

import (
	"testing"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// TestRestoreFromSourceTopic: a store whose changelog is its source topic gets at a restart what the task let in, and no more: neither what the
// deserialization handler left out nor what has no event time.
func TestRestoreFromSourceTopic(t *testing.T) {
	plan := func(opts ...topology.Option) *topology.Plan {
		b := topology.NewBuilder("app", topology.Optimize())
		opts = append(opts, topology.Store("rows"))
		b.Table("in", serde.String, serde.Int64, opts...).ToStream().To("out")
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, c := range map[string]struct {
		plan  *topology.Plan
		spoil topologytest.Record
		opts  []topologytest.Option
	}{
		"undecodable": {
			plan(), topologytest.Record{Topic: "in", Key: []byte("a"), Value: []byte("short"), Timestamp: 2},
			[]topologytest.Option{topologytest.ErrorHandlers(processors.Handlers{Deserialization: processors.SkipOnError()})},
		},
		"no time": {
			plan(topology.Timestamps(processors.LogAndSkip[string, int64]())),
			topologytest.Record{Topic: "in", Key: []byte("a"), Value: []byte{0, 0, 0, 0, 0, 0, 0, 9}, Timestamp: -1}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := topologytest.New(t, c.plan, c.opts...)
			topologytest.Input(d, "in", serde.String, serde.Int64).Pipe("a", 1, 1)
			d.Pipe(c.spoil)
			for _, restart := range []func() error{func() error { return nil }, d.Restart, d.Crash} {
				if err := restart(); err != nil {
					t.Fatal(err)
				}
				rows, err := topologytest.TimestampedKeyValue(d, "rows", 0, serde.String, serde.Int64)
				if err != nil {
					t.Fatal(err)
				}
				if row, _, ok, err := rows.Get("a"); err != nil || !ok || row != 1 {
					t.Fatalf("row a is %v, %v, %v; want 1", row, ok, err)
				}
			}
		})
	}
}
