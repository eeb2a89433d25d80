package plan

import (
	"time"

	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// Plan is a whole topology, ready to be run: sub-topologies, nodes, stores and internal topics. It is immutable.
//
// All topic names in it are full: internal ones carry the application id.
type Plan struct {
	ApplicationID string
	// Subtopologies are ordered by id. Each runs as one task per partition.
	Subtopologies []*Subtopology
	// Globals are the global sub-topologies: read whole by every instance, ids in line with Describe.
	Globals []*Subtopology
	// Nodes holds all nodes by name, Stores all stores (global ones, too) by name.
	Nodes  map[string]*Node
	Stores map[string]*Store
	// InternalTopics holds the topics that the engine creates and owns, by full name: repartition, changelog, lake input.
	InternalTopics map[string]*InternalTopic
	// CopartitionGroups lists sets of source topics that must have the same number of partitions.
	CopartitionGroups [][]string
	// Hash changes when anything changes that two instances must agree on.
	Hash string
}

// Subtopology is a connected part of the topology: the unit that becomes tasks.
type Subtopology struct {
	ID    int
	Nodes []*Node // parents before children, in the order in which they were added
	// Stores names the stores that the tasks own, sorted.
	Stores []string
	// SourceTopics are the topics of the source nodes, sorted; patterns are in the nodes.
	SourceTopics []string
	// Lake says that this sub-topology ends only in lake sinks and keeps no state: its tasks run outside the transaction, and
	// their progress is that of the tables.
	Lake bool
	// AdvanceIdleMs is how long all inputs of a task have to be idle before its stream time goes on with the wall clock; 0: it never does.
	AdvanceIdleMs int64
}

// NodeKind tells what a node does.
type NodeKind int

// The kinds of nodes. A lake sink is a terminal node whose rows go to a table.
const (
	SourceNode NodeKind = iota
	ProcessorNode
	SinkNode
	LakeNode
)

// OffsetReset tells where a source starts without a committed offset: one of the policies, or a duration (see ResetByDuration).
type OffsetReset int64

// The reset policies. ResetDefault is the engine's setting.
const (
	ResetDefault OffsetReset = iota
	ResetEarliest
	ResetLatest
	ResetNone
)

// ResetByDuration starts at the first record that is no older than d by its timestamp and the wall clock, at the end if there is none (KIP-1106).
// It counts in whole milliseconds.
func ResetByDuration(d time.Duration) OffsetReset { return -1 - OffsetReset(max(d.Milliseconds(), 0)) }

// Duration gives back the duration of ResetByDuration; ok is false for the policies.
func (r OffsetReset) Duration() (d time.Duration, ok bool) {
	return time.Duration(-1-r) * time.Millisecond, r < 0
}

// Node is one node of the topology.
type Node struct {
	Name        string
	Kind        NodeKind
	Subtopology int
	Parents     []*Node
	Children    []*Node // in the order in which they are called
	// Stores names the stores connected to a processor.
	Stores []string

	// HeldMs is how far the records that reach the node may be behind stream time because nodes before it hold them back; math.MaxInt64
	// means that there is no bound.
	HeldMs int64

	// Of a source: its topics, or the pattern that they match.
	Topics  []string
	Pattern string
	Reset   OffsetReset
	Idle    Idle
	Source  processors.SourceSupplier

	// Of all others.
	Supplier processors.Supplier

	// Of a sink: the topic, or Dynamic if each record chooses its own.
	Topic   string
	Dynamic bool

	// Of a lake node.
	Lake *Lake
}

// Lake is what a lake node ends in.
type Lake struct {
	Name string // part of the progress keys in the table
	Sink sink.Sink
}

// Store is one state store.
type Store struct {
	Spec   state.Spec
	Global bool
	// Changelog is the topic that backs the store up; empty without logging.
	Changelog string
	// SourceAsChangelog says that Changelog is a source topic of the application rather than an internal topic.
	SourceAsChangelog bool
	// Nodes names the processors connected to it.
	Nodes []string
}

// TopicKind tells what an internal topic is for.
type TopicKind int

// The kinds of internal topics.
const (
	RepartitionTopic TopicKind = iota
	ChangelogTopic
	LakeTopic
)

// InternalTopic is a topic that the engine creates and owns.
type InternalTopic struct {
	Name string // full
	Kind TopicKind
	// Partitions is the number demanded; 0: as many as the partition rule gives (see Partitions in this package).
	Partitions int32
	// Store is the store of a changelog topic.
	Store string
	// Config holds the topic's settings, such as cleanup.policy.
	Config map[string]string
}
