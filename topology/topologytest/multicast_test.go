package topologytest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// byValue sends a record to the partitions that its value lists.
func byValue(dst []int32, _ string, r *processors.Record[string, string], _ int32) ([]int32, error) {
	for _, c := range r.Value {
		if c == '!' {
			return nil, fmt.Errorf("no partition is good enough for %s", r.Value)
		}
		dst = append(dst, c-'0')
	}
	return dst, nil
}

// passOn is a processor that does nothing.
type passOn struct {
	ctx processors.ProcessorContext[string, string]
}

func (p *passOn) Init(ctx processors.ProcessorContext[string, string]) error {
	p.ctx = ctx
	return nil
}

func (p *passOn) Process(r *processors.Record[string, string]) error { return p.ctx.Forward(r) }
func (p *passOn) Close() error                                       { return nil }

// TestMulticast: a record goes to all the partitions that are chosen, once to each; with none it is dropped and counted, through every kind of sink.
func TestMulticast(t *testing.T) {
	// Errors are those of the sink's parent, which is an operator: behind a source they would be fatal.
	in := func(b *topology.Builder) *topology.Stream[string, string] {
		return b.Stream("in", serde.String, serde.String).MapValues(func(v string) string { return v })
	}
	for name, declare := range map[string]func(*topology.Builder){
		"To": func(b *topology.Builder) {
			in(b).To("out", topology.Multicast(byValue))
		},
		"ToDynamic": func(b *topology.Builder) {
			in(b).ToDynamic(func(_, _ string) string { return "out" }, topology.Multicast(byValue))
		},
		"Repartition": func(b *topology.Builder) { // each copy is processed by the task of its partition
			in(b).
				Repartition(topology.Name("spread"), topology.Multicast(byValue)).
				To("out")
		},
		"AddSink": func(b *topology.Builder) {
			b.AddSource("source", []string{"in"}, serde.String, serde.String)
			b.AddProcessor("pass", func() processors.Processor[string, string, string, string] { return &passOn{} }, []string{"source"})
			b.AddSink("sink", "out", serde.String, serde.String, []string{"pass"}, topology.Multicast(byValue))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := topology.NewBuilder("app")
			declare(b)
			plan, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			d := topologytest.New(t, plan, topologytest.Partitions(4),
				topologytest.ErrorHandlers(processors.Handlers{Processing: processors.SkipOnError()}))
			in := topologytest.Input(d, "in", serde.String, serde.String)
			for i, v := range []string{"0", "123", "", "2020", "9", "0!", "3"} {
				if err := in.Pipe("k", v, int64(i)); err != nil {
					t.Fatal(err)
				}
			}
			topic, got := "out", map[int32][]string{}
			if name == "Repartition" {
				topic = "app-spread-repartition"
			}
			for p := range int32(4) {
				for _, r := range d.Records(topic, p) {
					got[p] = append(got[p], string(r.Value))
				}
			}
			want := map[int32][]string{0: {"0", "2020"}, 1: {"123"}, 2: {"123", "2020"}, 3: {"123", "3"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("records by partition (-want +got):\n%s", diff)
			}
			wantDrops := map[string]int64{processors.DroppedNoPartition: 1, processors.DroppedProcessing: 2}
			if diff := cmp.Diff(wantDrops, d.Dropped()); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMulticastIsChecked: both options at once, and functions for other types, are problems at Build.
func TestMulticastIsChecked(t *testing.T) {
	b := topology.NewBuilder("app")
	in := b.Stream("in", serde.String, serde.String)
	in.To("both", topology.Multicast(byValue), topology.PartitionBy(func(string, *processors.Record[string, string], int32) (int32, error) { return 0, nil }))
	in.To("typed", topology.Multicast(func(dst []int32, _ string, _ *processors.Record[string, int64], _ int32) ([]int32, error) {
		return dst, nil
	}))
	in.To("nil", topology.Multicast[string, string](nil))
	_, err := b.Build()
	var failed *topology.BuildError
	if !errors.As(err, &failed) || len(failed.Problems) != 3 {
		t.Errorf("Build gave %v, want three problems", err)
	}
}
