package plan

import (
	"maps"
	"slices"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// AddStore declares a store and connects processors to it. Declaring the same spec (the same pointer) again only connects;
// another spec of the same name is a problem.
func (b *Builder) AddStore(spec *state.Spec, processors ...string) {
	if b.declareStore(spec) == nil {
		return
	}
	for _, p := range processors {
		b.Connect(p, spec.Name)
	}
}

// declareStore returns nil after a problem.
func (b *Builder) declareStore(spec *state.Spec) *storeDraft {
	if spec == nil {
		b.Problem(InvalidArgument, "", "a store is nil")
		return nil
	}
	if err := CheckName(spec.Name); err != nil {
		b.Problem(TopologyProblem, "", "a store can't be added: %v", err)
		return nil
	}
	if s := b.stores[spec.Name]; s != nil {
		if s.spec == spec && !s.global {
			return s
		}
		b.Problem(TopologyProblem, "store "+spec.Name, "another store has this name already%s: names must be unique", declaredAt(s.position))
		return nil
	}
	if err := spec.Validate(); err != nil {
		b.AddProblems(Problem{Kind: InvalidArgument, Err: err})
		return nil
	}
	s := &storeDraft{spec: spec, position: b.position}
	b.stores[spec.Name] = s
	return s
}

// StoreSpec returns the spec of a declared store, or nil.
func (b *Builder) StoreSpec(name string) *state.Spec {
	if s := b.stores[name]; s != nil {
		return s.spec
	}
	return nil
}

// Connect gives a processor access to stores. Processors that share a store are in one sub-topology.
func (b *Builder) Connect(processor string, stores ...string) {
	if len(stores) == 0 {
		b.Problem(TopologyProblem, processor, "no stores to connect are named")
	}
	for _, name := range stores {
		b.connect(processor, name)
	}
}

func (b *Builder) connect(processor, store string) {
	s, p := b.stores[store], b.byName[processor]
	switch {
	case b.broken[processor]:
		return
	case s == nil:
		b.Problem(TopologyProblem, processor, "the store %s is unknown: add it first", store)
		return
	case s.global:
		b.Problem(TopologyProblem, processor, "the store %s is global: every processor may use it, don't connect it", store)
		return
	case p == nil:
		b.Problem(TopologyProblem, "store "+store, "the processor %s is unknown: add it first", processor)
		return
	case p.Kind != ProcessorNode:
		b.Problem(TopologyProblem, processor, "the store %s can't be connected: only processors have stores", store)
		return
	}
	if !slices.Contains(s.nodes, processor) {
		s.nodes = append(s.nodes, processor)
		p.Stores = append(p.Stores, store)
	}
	b.groups.unite(s.nodes[0], processor)
}

// UseAsChangelog makes a source topic the changelog of the store that it fills; topic is raw.
func (b *Builder) UseAsChangelog(store, topic string) {
	s := b.stores[store]
	if s == nil {
		return // a problem is recorded already
	}
	if s.changelog != "" {
		b.Problem(TopologyProblem, "store "+store, "the store has the changelog %s already", s.changelog)
		return
	}
	s.changelog = topic
}

// GlobalStore declares a store that every instance fills from a whole topic.
type GlobalStore struct {
	Spec      *state.Spec
	Topic     string
	Source    string // names of its two nodes
	Processor string
	Read      processors.SourceSupplier
	Update    processors.Supplier
}

// AddGlobalStore adds a global store with its source and its processor, a sub-topology of its own.
func (b *Builder) AddGlobalStore(g GlobalStore) {
	if g.Source == g.Processor {
		b.Problem(TopologyProblem, g.Source, "the source and the processor of a global store need different names")
		return
	}
	if ok := b.checkNew(g.Source) && b.checkNew(g.Processor) && b.registerTopic(g.Source, g.Topic); !ok {
		return
	}
	if g.Read == nil || g.Update == nil {
		b.Problem(InvalidArgument, g.Processor, "the global store has no supplier")
		return
	}
	s := b.declareStore(g.Spec)
	if s == nil {
		return
	}
	s.global, s.changelog, s.nodes = true, g.Topic, []string{g.Processor}
	b.insert(&draft{
		Node:   Node{Name: g.Source, Kind: SourceNode, Source: g.Read, Reset: ResetEarliest},
		topics: []string{g.Topic},
		global: true,
	}, true)
	b.insert(&draft{
		Node:    Node{Name: g.Processor, Kind: ProcessorNode, Supplier: g.Update, Stores: []string{g.Spec.Name}},
		parents: []string{g.Source},
		global:  true,
	}, true)
}

// checkChangelogs finds changelog topics with names of the user's that something else uses, too: what is written there would be taken for rows.
func (b *Builder) checkChangelogs(applicationID string) {
	defer func(before string) { b.position = before }(b.position)
	users := make(map[string]string)
	for topic, source := range b.topics {
		users[b.full(applicationID, topic)] = "read by source " + source
	}
	for _, d := range b.nodes {
		if d.topic != "" {
			users[b.full(applicationID, d.topic)] = "written by sink " + d.Name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.stores)) {
		s := b.stores[name]
		if s.spec.ChangelogTopic == "" && (!s.spec.Logged || s.changelog != "") {
			continue
		}
		topic := ChangelogTopicOf(applicationID, s.spec)
		b.position = s.position
		switch other := users[topic]; {
		case !s.spec.Logged:
			b.Problem(InvalidArgument, "store "+name, "a changelog topic, %s, is named, but the store has none", topic)
		case s.changelog != "":
			b.Problem(TopologyProblem, "store "+name, "a changelog topic, %s, is named, but the store is restored from %s, which fills it", topic, s.changelog)
		case other != "":
			b.Problem(TopologyProblem, "store "+name, "the changelog topic %s is %s, too: it must be the store's alone", topic, other)
		default:
			users[topic] = "the changelog of store " + name
		}
	}
}
