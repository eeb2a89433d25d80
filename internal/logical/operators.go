package logical

import (
	"reflect"

	"github.com/tributary-io/tributary/internal/callsite"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// NewNode makes a node of an operator.
func NewNode(name string, op operator) *Node {
	return &Node{Name: name, op: op, position: callsite.Declared()}
}

// Source reads a stream from topics or a pattern.
type Source struct {
	Topics   []string
	Pattern  string
	Reset    plan.OffsetReset
	Idle     plan.Idle
	Supplier processors.SourceSupplier
	// Key and Value are the Go types, which streams of the same topic must agree on.
	Key, Value reflect.Type
}

func (s *Source) write(b *plan.Builder, n *Node) {
	b.AddSource(plan.Source{Name: n.Name, Topics: s.Topics, Pattern: s.Pattern, Reset: s.Reset, Idle: s.Idle, Supplier: s.Supplier})
}

// TableSource reads a table, or a global table, from a topic.
type TableSource struct {
	SourceName string
	Topic      string
	Reset      plan.OffsetReset
	Idle       plan.Idle
	Source     processors.SourceSupplier
	Table      Materializable
	Store      *state.Spec
	Global     bool

	reuseTopic bool
}

// Materializable is a table source, which has its store only if something needs it.
type Materializable interface {
	processors.Supplier
	Materialized() bool
}

func (s *TableSource) write(b *plan.Builder, n *Node) {
	if s.Global {
		b.AddGlobalStore(plan.GlobalStore{
			Spec: s.Store, Topic: s.Topic, Source: s.SourceName, Processor: n.Name, Read: s.Source, Update: s.Table,
		})
		return
	}
	b.AddSource(plan.Source{Name: s.SourceName, Topics: []string{s.Topic}, Reset: s.Reset, Idle: s.Idle, Supplier: s.Source})
	b.AddProcessor(n.Name, s.Table, s.SourceName)
	if !s.Table.Materialized() {
		return
	}
	b.AddStore(s.Store, n.Name)
	if s.reuseTopic {
		b.UseAsChangelog(s.Store.Name, s.Topic)
	}
}

// Processor is one processor.
type Processor struct {
	Supplier processors.Supplier
	// Stores are the processor's own, Connect names those of others.
	Stores  []*state.Spec
	Connect []string
	// Materialized, if set, tells at writing whether the processor has its stores after all.
	Materialized func() bool
	// Check, if set, is called after writing.
	Check func(b *plan.Builder)
}

func (p *Processor) write(b *plan.Builder, n *Node) {
	b.AddProcessor(n.Name, p.Supplier, n.parentNames()...)
	if p.Materialized == nil || p.Materialized() {
		for _, s := range p.Stores {
			b.AddStore(s, n.Name)
		}
	}
	if len(p.Connect) > 0 {
		b.Connect(n.Name, p.Connect...)
	}
	if p.Check != nil {
		p.Check(b)
	}
}

// Sink writes to a topic, or to one that it chooses for each record.
type Sink struct {
	Topic    string
	Dynamic  bool
	Supplier processors.Supplier
}

func (s *Sink) write(b *plan.Builder, n *Node) {
	if s.Dynamic {
		b.AddDynamicSink(n.Name, s.Supplier, n.parentNames()...)
		return
	}
	b.AddSink(n.Name, s.Topic, s.Supplier, n.parentNames()...)
}

// Lake ends in a table.
type Lake struct{ Sink plan.LakeSink }

func (l *Lake) write(b *plan.Builder, n *Node) { b.AddLake(l.Sink, n.parentNames()...) }

// Repartition sends a stream through an internal topic. Its node is named like the source behind the topic.
type Repartition struct {
	SinkName, FilterName string
	Topic                string // raw
	Partitions           int32
	// Optimizable says that the topic may be merged with others below the same operator; Repartition in the DSL is not.
	Optimizable bool
	// Typed makes the parts that depend on the types.
	Typed RepartitionTyped

	dropNullKeys bool
	toLake       bool
}

// RepartitionTyped are the parts of a repartition that depend on the types of keys and values.
type RepartitionTyped struct {
	// Filter makes the node above the sink: it drops null keys, or lets everything pass.
	Filter func(dropNullKeys bool) processors.Supplier
	// Ends makes the sink and the source for a topic (full name). coordinates says that a lake sink follows, which wants those of
	// the source record. An error says which serde is unknown.
	Ends func(topic string, coordinates bool) (processors.Supplier, processors.SourceSupplier, error)
	// Complete says that Ends will not fail.
	Complete bool
	// FullName gives a topic the application id.
	FullName func(topic string) string
}

func (r *Repartition) write(b *plan.Builder, n *Node) {
	b.AddInternalTopic(r.Topic, plan.RepartitionTopic, r.Partitions)
	b.AddProcessor(r.FilterName, r.Typed.Filter(r.dropNullKeys), n.parentNames()...)
	writeThroughTopic(b, n, r.SinkName, r.Topic, r.Typed, r.toLake, r.FilterName)
}

// writeThroughTopic adds a sink, and the source n behind it.
func writeThroughTopic(b *plan.Builder, n *Node, sinkName, topic string, typed RepartitionTyped, toLake bool, parents ...string) {
	sink, source, err := typed.Ends(typed.FullName(topic), toLake)
	if err != nil {
		b.AddProblems(plan.Problem{Kind: plan.InvalidArgument, Node: "repartition topic " + topic, Err: err, Missing: plan.MissingIn(err)})
		sink, source = nowhere{}, nowhere{}
	}
	b.AddSink(sinkName, topic, sink, parents...)
	b.AddSource(plan.Source{Name: n.Name, Topics: []string{topic}, Supplier: source})
}

// nowhere stands in for suppliers that can't be made, so that the rest of the graph is still checked.
type nowhere struct {
	processors.SupplierFunc
	processors.SourceSupplier
}

// TableRepartition sends a regrouped table through an internal topic; no filter is needed. Its node is named like the source.
type TableRepartition struct {
	SinkName string
	Topic    string // raw
	Typed    RepartitionTyped

	toLake bool
}

func (r *TableRepartition) write(b *plan.Builder, n *Node) {
	b.AddInternalTopic(r.Topic, plan.RepartitionTopic, 0)
	writeThroughTopic(b, n, r.SinkName, r.Topic, r.Typed, r.toLake, n.parentNames()...)
}

// Part is a processor within a larger operator.
type Part struct {
	Name     string
	Supplier processors.Supplier
	Stores   []*state.Spec
	Connect  []string
}

func (p Part) write(b *plan.Builder, parents ...string) {
	b.AddProcessor(p.Name, p.Supplier, parents...)
	for _, s := range p.Stores {
		b.AddStore(s, p.Name)
	}
}

// StreamJoin joins two windowed streams: a processor for each side, and the merging of both. Its node is named like the merge.
type StreamJoin struct {
	ThisWindow, OtherWindow string // names of the nodes that store each side's records
	This, Other, Merge      Part
	// Self replaces the three if the stream is joined with itself and the optimization is on.
	Self Part

	self bool
}

func (j *StreamJoin) write(b *plan.Builder, n *Node) {
	if j.self {
		j.Self.write(b, j.ThisWindow)
		return
	}
	j.This.write(b, j.ThisWindow)
	j.Other.write(b, j.OtherWindow)
	j.Merge.write(b, j.This.Name, j.Other.Name)
}

// Windowed is the node that stores one side's records of a StreamJoin.
type Windowed struct{ Part }

func (w *Windowed) write(b *plan.Builder, n *Node) { w.Part.write(b, n.parentNames()...) }

// TableJoin joins two tables. Its node is named like the merge.
type TableJoin struct {
	Left, Right        string // names of the tables' nodes
	This, Other, Merge Part   // This.Connect are the stores of the right table, Other.Connect those of the left one
}

func (j *TableJoin) write(b *plan.Builder, n *Node) {
	j.This.write(b, j.Left)
	j.Other.write(b, j.Right)
	j.Merge.write(b, j.This.Name, j.Other.Name)
	for _, side := range []Part{j.This, j.Other} {
		if len(side.Connect) > 0 {
			b.Connect(side.Name, side.Connect...)
		}
	}
}

// Store declares a store that processors connect to by name.
type Store struct{ Spec *state.Spec }

func (s *Store) write(b *plan.Builder, n *Node) { b.AddStore(s.Spec) }

// GlobalStore declares a global store that a user's processor fills.
type GlobalStore struct{ Store plan.GlobalStore }

func (g *GlobalStore) write(b *plan.Builder, n *Node) { b.AddGlobalStore(g.Store) }
