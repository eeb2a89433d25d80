package plan

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// Builder collects the parts of a topology. A part that is wrong is left out and becomes a problem; what hangs on it is left out
// without another one, so that each mistake is told once.
//
// Topic names given to a Builder are raw: those of internal topics get the application id at Build. A Builder is used by one
// goroutine, once.
type Builder struct {
	nodes    []*draft
	byName   map[string]*draft
	broken   map[string]bool // names of nodes that were left out
	stores   map[string]*storeDraft
	internal map[string]*InternalTopic
	topics   map[string]string // topic -> the source that reads it
	patterns []*draft
	copart   [][]string // names of sources
	groups   groups
	problems []Problem
	position string // of the user's call that is being written

	advanceIdleMs int64
}

// draft is a node before Build.
type draft struct {
	Node
	parents []string
	topics  []string // of a source, raw
	match   *regexp.Regexp
	topic   string // of a sink, raw
	lake    *LakeSink
	global  bool
	group   string // its element in the union-find
	// position is where the user declared it.
	position string
}

// storeDraft is a store before Build. Two declarations are the same store if they point to the same spec.
type storeDraft struct {
	spec      *state.Spec
	changelog string // raw topic that is used as its changelog, if it has none of its own
	global    bool
	nodes     []string
	position  string // where the user declared it
}

// NewBuilder starts an empty topology.
func NewBuilder() *Builder {
	return &Builder{
		byName:   make(map[string]*draft),
		broken:   make(map[string]bool),
		stores:   make(map[string]*storeDraft),
		internal: make(map[string]*InternalTopic),
		topics:   make(map[string]string),
	}
}

// Problem records that something is wrong at a node, store or operator.
func (b *Builder) Problem(kind ProblemKind, node, format string, args ...any) {
	b.AddProblems(Problem{Kind: kind, Node: node, Message: fmt.Sprintf(format, args...)})
}

// AddProblems records problems that were found elsewhere.
func (b *Builder) AddProblems(ps ...Problem) {
	for _, p := range ps {
		if p.Position == "" {
			p.Position = b.position
		}
		b.problems = append(b.problems, p)
	}
}

// At does something as part of the user's call at a position: problems and parts that it adds are of there.
func (b *Builder) At(position string, do func()) {
	before := b.position
	b.position = position
	do()
	b.position = before
}

// Source declares a node that reads topics, or all topics that match a pattern.
type Source struct {
	Name     string
	Topics   []string
	Pattern  string // used if not empty; it has to match a whole topic name
	Reset    OffsetReset
	Idle     Idle
	Supplier processors.SourceSupplier
}

// AddSource adds a source.
func (b *Builder) AddSource(s Source) {
	d := &draft{
		Node:   Node{Name: s.Name, Kind: SourceNode, Pattern: s.Pattern, Reset: s.Reset, Idle: s.Idle, Source: s.Supplier},
		topics: slices.Clone(s.Topics),
	}
	ok := b.checkNew(s.Name)
	if s.Supplier == nil {
		b.Problem(InvalidArgument, s.Name, "the source has no supplier")
		ok = false
	}
	if s.Pattern != "" {
		ok = b.registerPattern(d) && ok
	} else {
		ok = b.registerTopics(s.Name, s.Topics) && ok
	}
	b.insert(d, ok)
}

// registerTopics claims topics for a source: a topic is read by one source only.
func (b *Builder) registerTopics(source string, topics []string) bool {
	if len(topics) == 0 {
		b.Problem(TopologyProblem, source, "the source has no topics")
		return false
	}
	ok := true
	for _, topic := range topics {
		ok = b.registerTopic(source, topic) && ok
	}
	return ok
}

func (b *Builder) registerTopic(source, topic string) bool {
	if err := CheckName(topic); err != nil {
		b.Problem(InvalidArgument, source, "not a topic: %v", err)
		return false
	}
	if other, taken := b.topics[topic]; taken {
		b.Problem(TopologyProblem, source,
			"topic %s is read by source %s already%s: a topic has one source, use the stream or table that you have", topic, other, b.whereNode(other))
		return false
	}
	for _, p := range b.patterns {
		if p.match.MatchString(topic) {
			b.Problem(TopologyProblem, source, "topic %s matches the pattern %s of source %s already", topic, p.Pattern, p.Name)
			return false
		}
	}
	b.topics[topic] = source
	return true
}

func (b *Builder) registerPattern(d *draft) bool {
	match, err := CompilePattern(d.Pattern)
	if err != nil {
		b.Problem(InvalidArgument, d.Name, "the topic pattern is no regular expression: %v", err)
		return false
	}
	d.match = match
	for topic, other := range b.topics {
		if match.MatchString(topic) {
			b.Problem(TopologyProblem, d.Name, "the pattern %s matches topic %s, which source %s reads already", d.Pattern, topic, other)
			return false
		}
	}
	b.patterns = append(b.patterns, d)
	return true
}

// CompilePattern compiles a source's pattern. It matches whole topic names only, as in Kafka Streams.
func CompilePattern(pattern string) (*regexp.Regexp, error) {
	return regexp.Compile(`^(?:` + pattern + `)$`)
}

// AddProcessor adds a processor below its parents.
func (b *Builder) AddProcessor(name string, s processors.Supplier, parents ...string) {
	b.addBelow(&draft{Node: Node{Name: name, Kind: ProcessorNode, Supplier: s}}, parents)
}

// AddSink adds a node that writes to a topic.
func (b *Builder) AddSink(name, topic string, s processors.Supplier, parents ...string) {
	if err := CheckName(topic); err != nil {
		b.Problem(InvalidArgument, name, "not a topic: %v", err)
		b.broken[name] = true
		return
	}
	b.addBelow(&draft{Node: Node{Name: name, Kind: SinkNode, Supplier: s}, topic: topic}, parents)
}

// AddDynamicSink adds a node that chooses a topic for each record.
func (b *Builder) AddDynamicSink(name string, s processors.Supplier, parents ...string) {
	b.addBelow(&draft{Node: Node{Name: name, Kind: SinkNode, Dynamic: true, Supplier: s}}, parents)
}

// LakeSink declares a node whose rows go to a table.
type LakeSink struct {
	Name string
	Sink sink.Sink
	// Direct is the node that stands directly below its parents, in a sub-topology that may use its source's offsets.
	Direct processors.Supplier
	// Staged makes the nodes around an internal topic, for all other cases: the sink that writes topic (full name), the source
	// that reads it, and the lake node below that.
	Staged func(topic string) (write processors.Supplier, read processors.SourceSupplier, lake processors.Supplier, err error)
}

// AddLake adds a lake sink.
func (b *Builder) AddLake(l LakeSink, parents ...string) {
	node := Node{Name: l.Name, Kind: LakeNode, Supplier: l.Direct, Lake: &Lake{Name: l.Name, Sink: l.Sink}}
	b.addBelow(&draft{Node: node, lake: &l}, parents)
}

// addBelow adds a node that has parents.
func (b *Builder) addBelow(d *draft, parents []string) {
	ok := b.checkNew(d.Name)
	if d.Supplier == nil {
		b.Problem(InvalidArgument, d.Name, "the node has no supplier")
		ok = false
	}
	ok = b.checkParents(d.Name, parents) && ok
	d.parents = parents
	b.insert(d, ok)
}

func (b *Builder) checkNew(name string) bool {
	if err := CheckName(name); err != nil {
		b.Problem(TopologyProblem, "", "a node can't be added: %v", err)
		return false
	}
	if b.byName[name] != nil {
		b.Problem(TopologyProblem, name, "the name is used by another node already%s: names must be unique", b.whereNode(name))
		return false
	}
	return true
}

// whereNode says where a node was declared, if it is there.
func (b *Builder) whereNode(name string) string {
	if d := b.byName[name]; d != nil {
		return declaredAt(d.position)
	}
	return ""
}

// declaredAt says where something was declared, if that is known.
func declaredAt(position string) string {
	if position == "" {
		return ""
	}
	return " (" + position + ")"
}

// checkParents is silent about parents that were left out themselves.
func (b *Builder) checkParents(name string, parents []string) bool {
	if len(parents) == 0 {
		b.Problem(TopologyProblem, name, "the node has no parents")
		return false
	}
	ok := true
	for _, p := range parents {
		switch parent := b.byName[p]; {
		case parent == nil && b.broken[p]:
			ok = false
		case parent == nil && p == name:
			b.Problem(TopologyProblem, name, "the node is its own parent")
			ok = false
		case parent == nil:
			b.Problem(TopologyProblem, name, "the parent %s is unknown: add it first", p)
			ok = false
		case parent.Kind == SinkNode || parent.Kind == LakeNode:
			b.Problem(TopologyProblem, name, "the parent %s is a sink: nothing comes after a sink", p)
			ok = false
		}
	}
	return ok
}

func (b *Builder) insert(d *draft, ok bool) {
	if !ok {
		if b.byName[d.Name] == nil {
			b.broken[d.Name] = true
		}
		return
	}
	b.nodes = append(b.nodes, d)
	b.byName[d.Name] = d
	d.group, d.position = d.Name, b.position
	b.groups.add(d.group)
	for _, p := range d.parents {
		b.groups.unite(d.Name, p)
	}
}

// AddInternalTopic declares a topic that the engine creates and owns; name is raw. partitions 0 leaves the number to the
// partition rule. A later declaration of the same name replaces an earlier one.
func (b *Builder) AddInternalTopic(name string, kind TopicKind, partitions int32) {
	b.internal[name] = &InternalTopic{Name: name, Kind: kind, Partitions: partitions, Config: kind.config()}
}

// Copartition demands that the topics of these sources have equally many partitions.
func (b *Builder) Copartition(sources ...string) { b.copart = append(b.copart, sources) }

// ReplaceInCopartition puts one source in the place of another.
func (b *Builder) ReplaceInCopartition(old, by string) {
	for _, group := range b.copart {
		for i, name := range group {
			if name == old {
				group[i] = by
			}
		}
	}
}
