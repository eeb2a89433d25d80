package golden

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/tributary-io/tributary/topology"
)

// build interprets the topology of a scenario with the library's DSL.
type build struct {
	cfg      config
	b        *topology.Builder
	observe  func(label string, key, value any)
	labels   []string // that are observed
	nodes    map[string]node
	papi     map[string]topicTypes // what the nodes of the Processor API send
	failed   *error
	nullKeys bool // are among the records of the scenario

	inputs   map[string]topicTypes
	patterns []patternTypes
	outputs  map[string]topicTypes
	dynamic  *topicTypes // of the last dynamic sink

	stores  map[string]storeTypes
	untimed map[string]bool // of tables that lie in plain stores
	joins   []joinedStores
	expired int64 // puts by queries that came too late
}

// patternTypes are the types of the topics that match.
type patternTypes struct {
	pattern *regexp.Regexp
	types   topicTypes
}

func newBuild(s *Scenario, cfg config, observe func(label string, key, value any)) *build {
	return &build{
		cfg: cfg, nullKeys: s.pipesNullKeys(), observe: observe, nodes: map[string]node{}, papi: map[string]topicTypes{},
		inputs: map[string]topicTypes{}, outputs: map[string]topicTypes{}, stores: map[string]storeTypes{}, untimed: map[string]bool{},
	}
}

// plan builds the topology. An error is the library's BuildError, or says that the runner can't.
func (b *build) plan(ops []json.RawMessage) (*topology.Plan, error) {
	var failed error
	b.failed = &failed
	opts, err := b.builderOptions()
	if err != nil {
		return nil, err
	}
	b.b = topology.NewBuilder(b.cfg.applicationID, opts...)
	for i, raw := range ops {
		o := newObject(fmt.Sprintf("op %d", i), raw, &failed)
		if err := b.apply(o); err != nil {
			return nil, fmt.Errorf("op %d: %w", i, err)
		}
		o.finish()
		if failed != nil {
			return nil, failed
		}
	}
	return b.b.Build()
}

func (b *build) builderOptions() ([]topology.BuilderOption, error) {
	var opts []topology.BuilderOption
	for _, name := range strings.Split(b.cfg.optimization, ",") {
		switch strings.TrimSpace(name) {
		case "none", "":
		case "all":
			opts = append(opts, topology.Optimize(topology.AllOptimizations))
		case "reuse.ktable.source.topics":
			opts = append(opts, topology.Optimize(topology.ReuseSourceTopics))
		case "merge.repartition.topics":
			opts = append(opts, topology.Optimize(topology.MergeRepartitions))
		case "single.store.self.join":
			opts = append(opts, topology.Optimize(topology.SingleStoreSelfJoin))
		default:
			return nil, unsupported("optimization %q", name)
		}
	}
	if b.cfg.inMemory {
		opts = append(opts, topology.InMemoryStores())
	}
	if b.cfg.ensureExplicitNaming {
		opts = append(opts, topology.StrictNames())
	}
	if b.cfg.cacheMaxBytes > 0 {
		opts = append(opts, topology.CoalesceUpdates())
	}
	if b.cfg.timestampExtractor != "" {
		extract, err := defaultExtractor(b.cfg.timestampExtractor)
		if err != nil {
			return nil, err
		}
		opts = append(opts, topology.TimestampsBy(extract))
	}
	return opts, nil
}

// apply adds one op to the topology.
func (b *build) apply(o *object) error {
	op := o.str("op")
	for _, family := range []func(op string, o *object) (bool, error){
		b.applySource, b.applyStateless, b.applyGrouping, b.applyTable, b.applyJoin, b.applyProcessor, b.applyNode,
	} {
		if known, err := family(op, o); known || err != nil {
			return err
		}
	}
	return unsupported("op %q", op)
}

// put names the result of an op.
func (b *build) put(o *object, n node) {
	if o.has("id") {
		b.nodes[o.str("id")] = n
	}
}

// node finds the node that a field names.
func (b *build) node(o *object, fieldName string) node {
	name := o.str(fieldName)
	n := b.nodes[name]
	if n == nil {
		o.fail(fmt.Errorf("%s: no node %q", o.where, name))
	}
	return n
}

// as finds the node that a field names, which has to be of type N.
func as[N any](b *build, o *object, fieldName string) (N, error) {
	n, ok := b.node(o, fieldName).(N)
	if !ok {
		return n, unsupported("%s: %s is a %T", o.where, o.str(fieldName), b.nodes[o.str(fieldName)])
	}
	return n, nil
}

// named is the option Name, where the op has one.
func named(o *object) options {
	if !o.has("named") {
		return nil
	}
	return options{topology.Name(o.str("named"))}
}

func (b *build) inputTypes(topic string) topicTypes {
	if t, ok := b.inputs[topic]; ok {
		return t
	}
	for _, p := range b.patterns {
		if p.pattern.MatchString(topic) {
			return p.types
		}
	}
	return topicTypes{typeString, typeString}
}

func (b *build) outputTypes(topic string) topicTypes {
	if t, ok := b.outputs[topic]; ok {
		return t
	}
	if b.dynamic != nil {
		return *b.dynamic
	}
	return topicTypes{typeBytes, typeBytes}
}

// noteInput notes the types of topics that are read; the first to read one counts.
func (b *build) noteInput(types topicTypes, topics ...string) {
	for _, t := range topics {
		if _, ok := b.inputs[t]; !ok {
			b.inputs[t] = types
		}
	}
}

func (b *build) notePattern(pattern string, types topicTypes) {
	if re, err := regexp.Compile("^(?:" + pattern + ")$"); err == nil {
		b.patterns = append(b.patterns, patternTypes{re, types})
	}
}

func (b *build) noteOutput(topic string, types topicTypes) {
	if _, ok := b.outputs[topic]; !ok {
		b.outputs[topic] = types
	}
}
