package topology

import (
	"math"
	"time"

	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// Suppression says how long a table's changes are held back, and how many of them. Made by UntilWindowCloses and UntilTimeLimit.
//
// What is held back is in a buffer with a changelog. It is unbounded unless MaxRecords or MaxBytes says otherwise.
type Suppression struct {
	windowCloses bool
	wait         time.Duration
	maxRecords   bound
	maxBytes     bound
	shutDown     bool
	emitEarly    bool
}

// UntilWindowCloses holds each window's result back until the window and its grace are over, so that there is one result for each.
// Its buffer can't emit early.
func UntilWindowCloses() Suppression { return Suppression{windowCloses: true} }

// UntilTimeLimit holds the changes of a key back for so long, in stream time, from the first one on, and then sends the last of them.
func UntilTimeLimit(d time.Duration) Suppression { return Suppression{wait: d} }

// bound is that of a buffer, if it is given.
type bound struct {
	given bool
	n     int64
}

// forNode is the bound as the node takes it, which has 0 for none.
func (b bound) forNode() int64 {
	if b.given && b.n == 0 {
		return -1
	}
	return b.n
}

// MaxRecords bounds the number of keys held back. A full buffer emits the oldest early, unless ShutDownWhenFull says otherwise.
func (s Suppression) MaxRecords(n int64) Suppression {
	s.maxRecords = bound{true, n}
	return s
}

// MaxBytes bounds the size of what is held back.
func (s Suppression) MaxBytes(n int64) Suppression {
	s.maxBytes = bound{true, n}
	return s
}

// EmitEarlyWhenFull emits the oldest changes when the buffer is full. It is the default of a bounded buffer.
func (s Suppression) EmitEarlyWhenFull() Suppression {
	s.emitEarly, s.shutDown = true, false
	return s
}

// ShutDownWhenFull makes a full buffer an error of the record that came last, a *processors.BufferFullError, which stops the application
// unless the handler of processing errors goes on.
func (s Suppression) ShutDownWhenFull() Suppression {
	s.shutDown, s.emitEarly = true, false
	return s
}

// check finds what is wrong with the suppression of results below node.
func (s Suppression) check(o *operation, node *logical.Node) (graceMs int64) {
	if s.wait < 0 {
		o.bad(plan.InvalidArgument, "changes can't be held back for a negative time: %v", s.wait)
	}
	if s.maxRecords.n < 0 || s.maxBytes.n < 0 {
		o.bad(plan.InvalidArgument, "the bounds of the buffer can't be negative: %d records, %d bytes", s.maxRecords.n, s.maxBytes.n)
	}
	if !s.windowCloses {
		return 0
	}
	if s.emitEarly || (s.maxRecords.given || s.maxBytes.given) && !s.shutDown {
		o.bad(plan.InvalidArgument, "results that wait for their window to close can't be emitted early: bound the buffer with ShutDownWhenFull")
	}
	grace, ok := node.FindGrace()
	switch {
	case !ok:
		o.bad(plan.TopologyProblem, "only results of windowed aggregations can wait for their window to close")
	case grace.Never:
		o.bad(plan.TopologyProblem, "the results would never come out: unlimited windows don't close")
	case grace.Ms > math.MaxInt64/2:
		o.bad(plan.TopologyProblem, "the results would never come out: the grace of the windows is %d ms", grace.Ms)
	}
	return grace.Ms
}

func suppress[K, V any](t *table[K, V], how Suppression, opts []Option) *table[K, V] {
	b := t.b
	s := newSettings(opts, optName|serdeOptions|optNoLogging|optTopicConfig)
	name := s.userName
	if name == "" {
		name = b.graph.NewName("KTABLE-SUPPRESS-")
	}
	o := &operation{settings: s, b: b, name: name}
	graceMs := how.check(o, t.node)
	spec := suppressBuffer(o)
	key, value := keySerde(s, t.key), valueSerde(s, t.value)
	o.needStoreSerdes(needSerdes(key, value))
	proc := processors.NewSuppress(t.proc, processors.Suppression[K, V]{
		UntilWindowCloses: how.windowCloses, GraceMs: graceMs, WaitMs: how.wait.Milliseconds(), WindowEnd: t.windowEnd(o, how),
		MaxRecords: how.maxRecords.forNode(), MaxBytes: how.maxBytes.forNode(), ShutDownWhenFull: how.shutDown,
		Buffer: kept(b, processors.Store[K, V]{Name: spec.Name, Key: key, Value: value}),
	})
	node := logical.NewNode(name, &logical.Processor{Supplier: proc, Stores: []*state.Spec{spec}})
	node.Suppress, node.Versioned = true, logical.Unversioned
	b.report(name, s)
	b.graph.Add(node, t.node)
	return &table[K, V]{b: b, node: node, key: key, value: value, sources: t.sources, proc: proc, windows: t.windows}
}

// windowEnd is needed where results wait for their window.
func (t *table[K, V]) windowEnd(o *operation, how Suppression) func(K) int64 {
	if !how.windowCloses {
		return nil
	}
	if t.windows == nil {
		if len(o.problems) == 0 {
			o.bad(plan.TopologyProblem, "only keys in windows can wait for their window to close, this table has other keys")
		}
		return nil
	}
	return t.windows.end
}

// suppressBuffer declares the buffer: named after the user's name, or by the next number.
func suppressBuffer(o *operation) *state.Spec {
	spec := &state.Spec{
		Kind: state.SuppressBuffer, InMemory: o.b.opts.inMemory, Logged: !o.has(optNoLogging), TopicConfig: o.topicConfig,
	}
	if o.userName != "" {
		spec.Name = o.userName + "-store"
		return spec
	}
	spec.Name = o.b.graph.NewStoreName("KTABLE-SUPPRESS-")
	if spec.Logged {
		o.b.graph.AddImplicit(logical.Implicit{Changelog: spec.Name + "-changelog"})
	}
	return spec
}
