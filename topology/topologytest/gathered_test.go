package topologytest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// remembering puts each value into a store, passes it on, and then fails at "bad".
type remembering struct {
	ctx  processors.ProcessorContext[string, string]
	last interface{ Put(key, value string) error }
}

var lastStore = topology.KeyValueStore("last", serde.String, serde.String)

func (p *remembering) Init(ctx processors.ProcessorContext[string, string]) (err error) {
	p.ctx = ctx
	p.last, err = processors.KeyValueStore(ctx, lastStore)
	return err
}

func (p *remembering) Process(r *processors.Record[string, string]) error {
	if err := p.last.Put(r.Key, r.Value); err != nil {
		return err
	}
	if err := p.ctx.Forward(r); err != nil {
		return err
	}
	if r.Value == "bad" {
		return errors.New("bad")
	}
	return nil
}

func (p *remembering) Close() error { return nil }

const lastChangelog = "app-last-changelog"

func rememberingPlan(t *testing.T) *topology.Plan {
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.String).
		Process(func() processors.Processor[string, string, string, string] { return &remembering{} }, topology.Provide(lastStore)).
		To("out")
	return built(t, b)
}

func shown(records []topologytest.Record) []string {
	all := []string{}
	for _, r := range records {
		all = append(all, fmt.Sprintf("%s=%s@%d", r.Key, r.Value, r.Timestamp))
	}
	return all
}

// TestFailureDropsItsRecordOnly: what a record that fails wrote is gone, from the store and from the changelog; what the records before it wrote, with which
// it would have been committed, is there.
func TestFailureDropsItsRecordOnly(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		t.Run("stores in "+dir, func(t *testing.T) {
			var opts []topologytest.Option
			if dir != "" {
				opts = append(opts, topologytest.PebbleStores(dir))
			}
			d, err := topologytest.Open(rememberingPlan(t), opts...)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			in := topologytest.Input(d, "in", serde.String, serde.String)
			for i, value := range []string{"1", "2", "bad"} {
				if err := in.Pipe("a", value, int64(i)); (err != nil) != (value == "bad") {
					t.Fatal(err)
				}
			}
			check := func() {
				t.Helper()
				want := []string{"a=1@0", "a=2@1"}
				same(t, "changelog", shown(d.Records(lastChangelog, 0)), want)
				same(t, "output", shown(d.Records("out", 0)), want)
				last, err := topologytest.KeyValue(d, "last", 0, serde.String, serde.String)
				if err != nil {
					t.Fatal(err)
				}
				if v, _, err := last.Get("a"); v != "2" || err != nil {
					t.Errorf("the store has %q, %v; want 2", v, err)
				}
			}
			check()
			if err := d.Crash(); err == nil {
				t.Fatal("the record that can't be processed was")
			}
			check()
		})
	}
}

// TestChangelogIsComplete: whenever one looks, the changelog has all records of what was piped.
func TestChangelogIsComplete(t *testing.T) {
	d := topologytest.New(t, rememberingPlan(t))
	in := topologytest.Input(d, "in", serde.String, serde.String)
	pipe := func(n int) {
		for range n {
			in.Pipe("a", "v", 0)
		}
	}
	pipe(1)
	same(t, "topics", d.Topics(), []string{lastChangelog, "out"})
	pipe(2)
	same(t, "records", len(d.Records(lastChangelog, 0)), 3)
	pipe(3)
	same(t, "read", len(d.Read(lastChangelog)), 6)
	pipe(200)
	same(t, "read on", len(d.Read(lastChangelog)), 200)
	pipe(1)
	d.Crash()
	same(t, "after a crash", len(d.Read(lastChangelog)), 1)
	pipe(1)
	d.Restart()
	same(t, "after a restart", len(d.Read(lastChangelog)), 1)
	d.FailNext(topologytest.CommitOp, nil)
	pipe(1)
	same(t, "after a commit that failed", len(d.Read(lastChangelog)), 1)
	same(t, "output", len(d.Read("out")), 209)
}

// TestHandWrittenJoinsTheNextCommit: what a test puts into a store itself is committed with the next record.
func TestHandWrittenJoinsTheNextCommit(t *testing.T) {
	d := topologytest.New(t, rememberingPlan(t))
	in := topologytest.Input(d, "in", serde.String, serde.String)
	in.Pipe("a", "1", 1)
	last, err := topologytest.KeyValue(d, "last", 0, serde.String, serde.String)
	if err != nil {
		t.Fatal(err)
	}
	if err := last.Put("b", "x"); err != nil {
		t.Fatal(err)
	}
	same(t, "before", len(d.Records(lastChangelog, 0)), 1)
	in.Pipe("a", "2", 2)
	same(t, "behind", len(d.Records(lastChangelog, 0)), 3)
}

// TestPatternReadsChangelogs: a pattern may match a changelog, whose records are then processed before the next one that is piped.
func TestPatternReadsChangelogs(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.String).
		Process(func() processors.Processor[string, string, string, string] { return &remembering{} }, topology.Provide(lastStore))
	b.StreamPattern(".*-changelog", serde.String, serde.String).To("out")
	d := topologytest.New(t, built(t, b))
	in := topologytest.Input(d, "in", serde.String, serde.String)
	in.Pipe("a", "1", 1)
	in.Pipe("a", "2", 2)
	same(t, "output", shown(d.Read("out")), []string{"a=1@1", "a=2@2"})
}
