package gokacompat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lovoo/goka"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Application is a goka group as an application of Tributary. Make it with New; one is enough for a process. VisitAll and Check may be called
// from any goroutine, Plan and AddTo once.
type Application struct {
	graph *goka.GroupGraph
	calls callbacks
	opts  options

	mu    sync.Mutex
	tasks map[*processor]bool // those that run
}

// New takes a group graph as it is. What is wrong with it is in the error.
func New(graph *goka.GroupGraph, opts ...Option) (*Application, error) {
	if graph == nil {
		return nil, errors.New("the group graph is nil")
	}
	if err := graph.Validate(); err != nil {
		return nil, fmt.Errorf("group %s: %w", graph.Group(), err)
	}
	calls, err := callbacksOf(graph)
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", graph.Group(), err)
	}
	a := &Application{graph: graph, calls: calls, opts: newOptions(opts), tasks: map[*processor]bool{}}
	if err := a.checkEdges(); err != nil {
		return nil, fmt.Errorf("group %s: %w", graph.Group(), err)
	}
	return a, nil
}

// checkEdges finds what goka would take and this package can't.
func (a *Application) checkEdges() error {
	role := map[string]string{}
	var errs []error
	claim := func(as string, edges goka.Edges) {
		for _, e := range edges {
			if e.Codec() == nil {
				errs = append(errs, fmt.Errorf("%s %s has no codec", as, e.Topic()))
			}
			if other := role[e.Topic()]; other != "" {
				errs = append(errs, fmt.Errorf("topic %s is read as %s and as %s: an application reads a topic in one way; let another group, or a copy of the topic, serve the other", e.Topic(), other, as))
			}
			role[e.Topic()] = as
		}
	}
	claim("Input", a.graph.InputStreams())
	claim("Join", a.graph.JointTables())
	claim("Lookup", a.graph.LookupTables())
	for _, e := range a.inputs() {
		if a.calls.inputs[e.Topic()] == nil {
			errs = append(errs, fmt.Errorf("%s has no callback", e.Topic()))
		}
	}
	return errors.Join(errs...)
}

// inputs are the edges whose records are given to callbacks: the input streams, and the loop.
func (a *Application) inputs() goka.Edges {
	edges := slices.Clone(a.graph.InputStreams())
	if loop := a.graph.LoopStream(); loop != nil {
		edges = append(edges, loop)
	}
	return edges
}

// Plan is the topology of the group alone.
func (a *Application) Plan() (*topology.Plan, error) {
	b := topology.NewBuilder(string(a.graph.Group()))
	a.AddTo(b)
	return b.Build()
}

// The names of nodes and stores. Those of tables are durable only on disk; their topics are goka's.
const (
	processorName = "callbacks"
	tableStore    = "table"
	loopChild     = "loop"
)

func sourceName(topic string) string  { return "read-" + topic }
func emitName(topic string) string    { return "emit-" + topic }
func joinStore(topic string) string   { return "join-" + topic }
func lookupStore(topic string) string { return "lookup-" + topic }
func fillerOf(store string) string    { return "fill-" + store }
func tableOptions(o options) (all []topology.Option) {
	if o.inMemory {
		all = append(all, topology.InMemory())
	}
	return all
}

// AddTo adds the group to a topology, whose application id should be the group's name: offsets and the loop topic are found by it. What else
// the topology does may read the group's outputs.
func (a *Application) AddTo(b *topology.Builder) {
	loop := a.declareLoop(b)
	var sources []string
	for _, e := range a.inputs() {
		topic, reset := e.Topic(), a.opts.start
		if e == a.graph.LoopStream() {
			topic, reset = loop, topology.Earliest // what a group has sent itself is not to be skipped
		}
		name := sourceName(e.Topic())
		b.AddSource(name, []string{topic}, serde.Bytes, newInputSerde(e.Codec()),
			topology.Reset(reset), topology.Timestamps(validTime[any]()))
		sources = append(sources, name)
	}
	copartitioned := slices.Clone(sources)
	var provide []topology.StoreDecl
	if table := a.graph.GroupTable(); table != nil {
		provide = append(provide, topology.KeyValueStore(tableStore, serde.Bytes, serde.Bytes,
			append(tableOptions(a.opts), topology.ChangelogTopic(table.Topic()))...))
	}
	b.AddProcessor(processorName, a.newProcessor, sources, topology.Provide(provide...))
	for _, e := range a.graph.JointTables() {
		store := topology.KeyValueStore(joinStore(e.Topic()), serde.Bytes, serde.Bytes, tableOptions(a.opts)...)
		source := sourceName(e.Topic())
		b.AddReadOnlyStore(store, source, e.Topic(), serde.Bytes, serde.Bytes, fillerOf(store.Name), newFiller(store.Name), topology.Timestamps(first()))
		b.ConnectStores(processorName, store.Name)
		copartitioned = append(copartitioned, source)
	}
	for _, e := range a.graph.LookupTables() {
		store := topology.KeyValueStore(lookupStore(e.Topic()), serde.Bytes, serde.Bytes, append(tableOptions(a.opts), topology.NoLogging())...)
		b.AddGlobalProcessorStore(store, sourceName(e.Topic()), e.Topic(), serde.Bytes, serde.Bytes, fillerOf(store.Name), newFiller(store.Name),
			topology.Timestamps(validTime[[]byte]()))
	}
	if len(copartitioned) > 1 {
		b.CopartitionSources(copartitioned...)
	}
	a.addSinks(b, loop)
}

// declareLoop gives the name under which the topology knows the loop topic. It belongs to the application if it is called as goka calls it by
// default; one with another suffix has to exist.
func (a *Application) declareLoop(b *topology.Builder) string {
	loop := a.graph.LoopStream()
	if loop == nil {
		return ""
	}
	name, own := strings.CutPrefix(loop.Topic(), string(a.graph.Group())+"-")
	if !own {
		return loop.Topic()
	}
	b.AddRepartitionTopic(name)
	return name
}

func (a *Application) addSinks(b *topology.Builder, loop string) {
	parents := []string{processorName}
	by := topology.PartitionBy(a.sinkPartitioner())
	for _, e := range a.graph.OutputStreams() {
		b.AddSink(emitName(e.Topic()), e.Topic(), serde.Bytes, serde.Bytes, parents, by)
	}
	if loop != "" {
		b.AddSink(loopChild, loop, serde.Bytes, serde.Bytes, parents, by)
	}
}

func (a *Application) sinkPartitioner() processors.Partitioner[[]byte, []byte] {
	choose := a.opts.partition
	return func(_ string, r *processors.Record[[]byte, []byte], partitions int32) (int32, error) {
		return choose(r.Key, partitions), nil
	}
}

// validTime takes a record's own time, and 0 where it has none, as goka lets such records pass.
func validTime[V any]() processors.TimestampExtractor[[]byte, V] {
	return func(r *processors.Record[[]byte, V], _ *processors.RawRecord, _ int64) (int64, error) {
		return max(r.Timestamp, 0), nil
	}
}

// first puts all that has come of a table that is joined before the records of inputs: goka joins with the newest row, whatever its time.
func first() processors.TimestampExtractor[[]byte, []byte] {
	return func(*processors.Record[[]byte, []byte], *processors.RawRecord, int64) (int64, error) { return 0, nil }
}
