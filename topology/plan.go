package topology

import (
	"maps"
	"slices"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/state"
)

// Plan is a topology that is ready to be run: by engine.New, or in a test by topologytest.New. It is immutable.
type Plan struct {
	p         *plan.Plan
	generated []string
	formats   map[string]Format
	renderers map[string]func(topic string) Renderer
	strict    bool
}

// BuildError is what Build returns: everything that is wrong with a topology.
type BuildError = plan.BuildError

// Problem is one thing that is wrong.
type Problem = plan.Problem

// ProblemKind tells what sort of mistake a Problem is.
type ProblemKind = plan.ProblemKind

// The kinds of problems; see there.
const (
	TopologyProblem = plan.TopologyProblem
	InvalidArgument = plan.InvalidArgument
)

// Build makes the plan. All that is wrong with the topology is in one error, a *BuildError. A Builder can be built once.
func (b *Builder) Build() (*Plan, error) {
	pb := plan.NewBuilder()
	if b.built {
		pb.Problem(plan.InvalidArgument, "", "the Builder has been built already: make a new one")
	}
	b.built = true
	var p *plan.Plan
	var err error
	pb.At(b.position, func() {
		b.graph.Write(pb, b.opts.Options)
		for _, write := range b.nodes.writes {
			write(pb)
		}
		p, err = pb.Build(b.app)
	})
	if err != nil {
		return nil, err
	}
	out := &Plan{p: p, generated: b.generatedNames(p), renderers: b.renderers, strict: b.opts.StrictNames}
	out.formats = b.formatsOf(out)
	return out, nil
}

// generatedNames lists the durable names that shift when an operator is inserted before them.
func (b *Builder) generatedNames(p *plan.Plan) []string {
	var names []string
	for _, i := range b.graph.Implicit() {
		if p.Stores[i.Store] != nil {
			names = append(names, i.Store)
		}
		for _, topic := range []string{i.Changelog, i.Repartition} {
			if topic != "" && p.InternalTopics[b.full(topic)] != nil {
				names = append(names, b.full(topic))
			}
		}
		if i.Lake != "" {
			names = append(names, i.Lake)
		}
	}
	return names
}

// ApplicationID names the application.
func (p *Plan) ApplicationID() string { return p.p.ApplicationID }

// Describe writes the topology in the text format of Kafka Streams' Topology.describe().
func (p *Plan) Describe() string { return p.p.Describe() }

// Hash changes when anything changes that the application's instances must agree on.
func (p *Plan) Hash() string { return p.p.Hash }

// Sources lists the topics that the topology reads and that must exist, sorted. Topics found by a pattern are not in it.
func (p *Plan) Sources() []string {
	return p.topics(func(n *plan.Node) []string { return n.Topics })
}

// Sinks lists the topics that the topology writes and that must exist, sorted. Topics chosen for each record are not in it.
func (p *Plan) Sinks() []string {
	return p.topics(func(n *plan.Node) []string {
		if n.Topic == "" {
			return nil
		}
		return []string{n.Topic}
	})
}

func (p *Plan) topics(of func(*plan.Node) []string) []string {
	set := make(map[string]bool)
	for _, n := range p.p.Nodes {
		for _, t := range of(n) {
			if p.p.InternalTopics[t] == nil {
				set[t] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// InternalTopics lists the topics that the engine creates, sorted, by their full names.
func (p *Plan) InternalTopics() []string { return slices.Sorted(maps.Keys(p.p.InternalTopics)) }

// Stores lists the state stores by name.
func (p *Plan) Stores() map[string]state.Spec {
	out := make(map[string]state.Spec, len(p.p.Stores))
	for name, s := range p.p.Stores {
		out[name] = s.Spec
	}
	return out
}

// GeneratedNames lists the stores, internal topics and lake sinks that were not named. Their names shift when an operator is inserted
// before them, and what was kept under the old name is lost: name what is durable (see StrictNames).
func (p *Plan) GeneratedNames() []string { return slices.Clone(p.generated) }

// Internal gives the engine and the test harness what they run. Its type belongs to this module.
func (p *Plan) Internal() *plan.Plan { return p.p }
