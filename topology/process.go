package topology

import (
	"slices"

	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// Process runs a processor of the user's. newProcessor is called for each task. It may use stores that are connected by the options
// Stores and Provide, and send records of other types and keys.
func (s *Stream[K, V]) Process[K2, V2 any](newProcessor func() processors.Processor[K, V, K2, V2], opts ...Option) *Stream[K2, V2] {
	return &Stream[K2, V2]{processStream(s.s, newProcessor, opts)}
}

// ProcessValues runs a processor of the user's that can't change keys, so that nothing need be repartitioned behind it.
func (s *Stream[K, V]) ProcessValues[V2 any](newProcessor func() processors.FixedKeyProcessor[K, V, V2], opts ...Option) *Stream[K, V2] {
	return &Stream[K, V2]{processStreamValues(s.s, newProcessor, opts)}
}

const processOptions = statelessOptions | optStores | optProvide

// processor starts a processor of the user's. Unlike other operators it takes no number if it has a name, as in Kafka Streams.
func (b *Builder) processor(opts []Option, prefix string, missing bool) *operation {
	s := newSettings(opts, processOptions)
	o := &operation{settings: s, b: b, name: s.userName}
	if o.name == "" {
		o.name = b.graph.NewName(prefix)
	}
	s.needFunction(missing)
	return o
}

func processStream[K, V, K2, V2 any](s *stream[K, V], newProcessor func() processors.Processor[K, V, K2, V2], opts []Option) *stream[K2, V2] {
	o := s.b.processor(opts, "KSTREAM-PROCESSOR-", newProcessor == nil)
	out := &stream[K2, V2]{
		b: s.b, key: keySerde(o.settings, inferred[K, K2](s.key)), value: valueSerde(o.settings, inferred[V, V2](s.value)),
		sources: s.sources, rekeyed: true,
	}
	out.node = o.add(changesNothing, o.userProcessor(processors.Process(newProcessor)), s.node)
	return out
}

func processStreamValues[K, V, V2 any](s *stream[K, V], newProcessor func() processors.FixedKeyProcessor[K, V, V2], opts []Option) *stream[K, V2] {
	o := s.b.processor(opts, "KSTREAM-PROCESSVALUES-", newProcessor == nil)
	out := &stream[K, V2]{
		b: s.b, key: keySerde(o.settings, s.key), value: valueSerde(o.settings, inferred[V, V2](s.value)),
		sources: s.sources, rekeyed: s.rekeyed, windows: s.windows,
	}
	out.node = o.add(changesNothing, o.userProcessor(processors.ProcessValues(newProcessor)), s.node)
	return out
}

// userProcessor is a processor with the stores that the options name. That it may change keys and values is no matter for the merging
// of repartition topics, as in Kafka Streams by default.
func (o *operation) userProcessor(supplier processors.Supplier) *logical.Processor {
	return &logical.Processor{Supplier: supplier, Stores: o.provided(), Connect: o.connected()}
}

func (o *operation) provided() []*state.Spec {
	var specs []*state.Spec
	for _, decl := range o.provide {
		if spec := o.b.declare(decl); spec != nil {
			specs = append(specs, spec)
		}
	}
	return specs
}

func (o *operation) connected() []string {
	if slices.Contains(o.stores, "") {
		o.bad(plan.InvalidArgument, "option Stores: a store's name is empty")
	}
	return slices.DeleteFunc(slices.Clone(o.stores), func(name string) bool { return name == "" })
}
