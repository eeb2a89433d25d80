package topologytest_test

import (
	"os"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// weather is a driver that restarts, crashes and fails at random points: what comes out must not show it.
type weather struct {
	*topologytest.Driver
	t          *rapid.T
	partitions int32
	failures   int // of commits, asked for so far
}

// inWeather runs a plan over 1, 2 or 7 partitions or in the driver mode, in memory or on disk.
func inWeather(t *rapid.T, build func() *topology.Builder) *weather {
	partitions := rapid.SampledFrom([]int32{0, 1, 2, 7}).Draw(t, "partitions")
	p, err := build().Build()
	if err != nil {
		t.Fatal(err)
	}
	opts := []topologytest.Option{topologytest.Partitions(partitions)}
	if rapid.Bool().Draw(t, "manual commit") {
		opts = append(opts, topologytest.ManualCommit())
	}
	if partitions < 3 && rapid.IntRange(0, 15).Draw(t, "stores") == 0 { // opening a database takes longer than all the rest
		dir, err := os.MkdirTemp("", "weather")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		opts = append(opts, topologytest.PebbleStores(dir))
	}
	d, err := topologytest.Open(p, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return &weather{Driver: d, t: t, partitions: partitions}
}

// blow does something that must not be seen.
func (w *weather) blow() {
	var err error
	switch rapid.IntRange(0, 15).Draw(w.t, "weather") {
	case 0:
		err = w.Restart()
	case 1:
		err = w.Crash()
	case 2:
		w.FailNext(topologytest.CommitOp, nil)
		w.failures++
	case 3:
		w.FailNext(topologytest.CommitReplyOp, nil)
		w.failures++
	case 4, 5:
		err = w.Commit()
	}
	w.must(err)
}

func (w *weather) must(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

// settle gets past all failures, each of which takes a commit, and through all internal topics.
func (w *weather) settle() { w.commits(w.failures + 12) }

func (w *weather) commits(n int) {
	for range n {
		w.must(w.Commit())
	}
}

// table reads a topic of text to its end, as a table.
func (w *weather) table(topic string) map[string]string {
	rows := map[string]string{}
	for _, m := range topologytest.Output(w.Driver, topic, serde.String, serde.String).Read() {
		if m.ValueNull {
			delete(rows, m.Key)
		} else {
			rows[m.Key] = m.Value
		}
	}
	return rows
}

// compare compares tables by topic with what the model says.
func (w *weather) compare(want map[string]map[string]string) {
	w.settle()
	for topic, rows := range want {
		if diff := cmp.Diff(rows, w.table(topic)); diff != "" {
			w.t.Errorf("%d partitions, %s (-want +got):\n%s", w.partitions, topic, diff)
		}
	}
}
