package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

const (
	pacedPartitions = 3
	pacedStep       = 2 * time.Second // of event time, from record to record of all partitions
)

// windows counts by minute what three partitions have, behind a repartition: whoever is more than two minutes behind the others there is late. What
// reads the partitions has state as well, which it restores when it is opened.
func windows(name string) *topology.Plan {
	b := topology.NewBuilder(name)
	var eventTime processors.TimestampExtractor[string, string] = func(r *processors.Record[string, string], _ *processors.RawRecord, _ int64) (int64, error) {
		text, _, _ := strings.Cut(r.Value, " ")
		return strconv.ParseInt(text, 10, 64)
	}
	b.Stream(name+"-in", serde.String, serde.String, topology.Timestamps(eventTime)).
		DedupBy(func(v string) string { return v[:13] }, 24*time.Hour, topology.Store("seen"), topology.Name("seen")).
		SelectKey(func(k, _ string) string { return k[len(k)-1:] }).
		Repartition(topology.Name("by-digit"), topology.KeySerde(serde.String), topology.ValueSerde(serde.String)).
		GroupByKey().
		Windowed(topology.Tumbling(time.Minute).Grace(time.Minute)).
		Count(topology.Store("per-minute")).
		ToStream().
		Map(func(w topology.Window[string], n int64) (string, int64) {
			return fmt.Sprint(w.Key, "@", w.Window.Start), n
		},
			topology.KeySerde(serde.String), topology.ValueSerde(serde.Int64)).
		To(name + "-out")
	return build(b)
}

// While an instance reads a backlog it is killed again and again, and one of its tasks loses its local state, so that it is opened after the
// others. No record may come late by that.
func TestKilledInBacklogNothingComesLate(t *testing.T) {
	t.Parallel()
	a := newApp(t, brokertest.Embedded(t), "paced")
	a.create("in", pacedPartitions)
	a.create("out", 1)
	const n = 40_000
	a.backlog(n)
	out := a.read("out")
	p := a.spawnWith("a", instanceArgs{Windows: true})
	for round := range 3 {
		eventually(t, "a quarter more is counted", func() bool { return total(out.lastCounts()) > int64(n*(round+1)/4) })
		p.Kill()
		lost := filepath.Join(a.dir, "a", a.name, fmt.Sprint("0_", round))
		if _, err := os.Stat(lost); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(lost); err != nil {
			t.Fatal(err)
		}
		restart(t, p)
	}
	defer func() {
		if t.Failed() {
			t.Logf("%d of %d records were counted in time", total(out.lastCounts()), n)
		}
	}()
	eventually(t, "all is counted", func() bool { return total(out.lastCounts()) == n })
}

// backlog fills the partitions with events in the order of their times. Those of the first are larger, and read more slowly.
func (a *app) backlog(n int) {
	a.t.Helper()
	client := a.c.Client(a.t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(a.topic("in")))
	large, begin := strings.Repeat("x", 2000), time.Now().Add(-24*time.Hour) // not longer ago: retention goes by event time
	for i := range n {
		r := &kgo.Record{Partition: int32(i % pacedPartitions), Key: fmt.Append(nil, "k", i), Value: fmt.Append(nil, begin.Add(time.Duration(i)*pacedStep).UnixMilli(), " ")}
		if r.Partition == 0 {
			r.Value = append(r.Value, large...)
		}
		client.Produce(a.t.Context(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				a.t.Error(err)
			}
		})
	}
	if err := client.Flush(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
}
