package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/engine/internal/versions"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
)

// catalog is what the brokers' topics make of the plan: which tasks there are, and what each reads.
type catalog struct {
	tasks      map[task.ID]*taskSpec
	ids        []assign.TaskID // of all tasks, sorted
	signatures map[int32]uint64
	stateful   map[int32]bool // sub-topologies with state that has a changelog
	sources    []string       // topics that tasks read, for display
	resets     map[string]plan.OffsetReset
	global     *taskSpec // nil without global tables
	matched    matches

	mu     sync.Mutex
	topics map[string]topics.Topic // everything that is known, also topics that records chose themselves
}

// taskSpec is a task that may be run.
type taskSpec struct {
	id     task.ID
	subs   []*plan.Subtopology
	inputs []task.TopicPartition
	lake   bool
}

// single reports whether a record of the task makes one row of one table at most, and nothing else.
func (s *taskSpec) single() bool {
	tables := 0
	for _, sub := range s.subs {
		for _, n := range sub.Nodes {
			switch n.Kind {
			case plan.LakeNode:
				tables++
			case plan.SourceNode:
			default:
				return false
			}
		}
	}
	return s.lake && tables == 1
}

// readCatalog finds the topics of the plan, creates and checks the internal ones, and derives the tasks.
func (e *Engine) readCatalog(ctx context.Context) (*catalog, error) {
	found, err := e.matchPatterns(ctx)
	if err != nil {
		return nil, err
	}
	return e.catalogOf(ctx, found)
}

// catalogOf is readCatalog with the topics that patterns match.
func (e *Engine) catalogOf(ctx context.Context, found matches) (*catalog, error) {
	matched := found.names()
	users, err := topics.Describe(ctx, e.control, e.userTopics(matched)...)
	if err != nil {
		return nil, err
	}
	mayLack := map[string]bool{}
	for _, names := range e.lakeSources() {
		for _, topic := range names {
			mayLack[topic] = true
		}
	}
	count := func(topic string) (int32, bool) {
		t, ok := users[topic]
		return t.Partitions, ok || mayLack[topic]
	}
	counts, err := e.plan.Partitions(count, matched)
	if err = errors.Join(err, e.missingSinks(users)); err != nil {
		return nil, err
	}
	internal, err := e.ensureInternal(ctx, counts)
	if err != nil {
		return nil, err
	}
	maps.Copy(users, internal)
	c := &catalog{topics: users, tasks: map[task.ID]*taskSpec{}, signatures: map[int32]uint64{}, stateful: map[int32]bool{}, resets: map[string]plan.OffsetReset{}, matched: found}
	c.deriveTasks(e.plan, matched)
	return c, nil
}

// userTopics are the topics that the plan names and the engine doesn't own.
func (e *Engine) userTopics(matched map[string][]string) []string {
	set := map[string]bool{}
	for _, t := range e.cfg.handlers.Topics() {
		set[t] = true
	}
	for name, n := range e.plan.Nodes {
		for _, t := range slices.Concat(n.Topics, matched[name], []string{n.Topic}) {
			if t != "" && e.plan.InternalTopics[t] == nil {
				set[t] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// MissingSinksError names topics that are written to and that don't exist.
type MissingSinksError struct {
	Topics   []string // of the topology
	Handlers []string // of the error handlers: dead letters, and the ledger of dropped records
}

func (e *MissingSinksError) Error() string {
	var lines []string
	if len(e.Topics) > 0 {
		lines = append(lines, fmt.Sprintf("output topics are missing: %v", e.Topics))
	}
	if len(e.Handlers) > 0 {
		lines = append(lines, fmt.Sprintf("topics that the error handlers send to (dead letters, dropped records) are missing: %v", e.Handlers))
	}
	return strings.Join(lines, "; ") + "; create them, topics of the user are never made by the engine"
}

// outputTopics are the user's topics that sinks of the topology name, sorted.
func (e *Engine) outputTopics() []string {
	var all []string
	for _, n := range e.plan.Nodes {
		if n.Kind == plan.SinkNode && !n.Dynamic && e.plan.InternalTopics[n.Topic] == nil {
			all = append(all, n.Topic)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (e *Engine) missingSinks(found map[string]topics.Topic) error {
	exists := func(topic string) bool { _, ok := found[topic]; return ok }
	missing := &MissingSinksError{
		Topics:   slices.DeleteFunc(e.outputTopics(), exists),
		Handlers: slices.DeleteFunc(e.cfg.handlers.Topics(), exists),
	}
	if len(missing.Topics)+len(missing.Handlers) == 0 {
		return nil
	}
	return missing
}

// awaitReplicas is for how many seconds a start waits for brokers that are away, where internal topics need them as replicas. It is no longer,
// since a cluster may simply be too small.
const awaitReplicas = 60

// ensureInternal creates and checks the internal topics, and compares them with what this instance has seen before.
func (e *Engine) ensureInternal(ctx context.Context, counts map[string]int32) (map[string]topics.Topic, error) {
	memory, err := topics.OpenMemory(e.appDir())
	if err != nil {
		return nil, err
	}
	stores := map[string]string{} // by changelog
	for name, s := range e.plan.Stores {
		stores[s.Changelog] = name
	}
	var wanted []topics.Wanted
	for _, name := range slices.Sorted(maps.Keys(e.plan.InternalTopics)) {
		wanted = append(wanted, topics.Wanted{
			Name: name, Partitions: counts[name], Replication: e.cfg.replication, Config: e.plan.InternalTopics[name].Config, Store: stores[name]})
	}
	known := slices.DeleteFunc(memory.Names(), func(name string) bool { return e.plan.InternalTopics[name] == nil })
	before, err := topics.Describe(ctx, e.control, known...)
	if err != nil {
		return nil, err
	}
	if err := memory.Check(known, before); err != nil {
		return nil, err
	}
	found, warnings, err := topics.Ensure(ctx, e.control, wanted)
	for tries := 0; errors.Is(err, kerr.InvalidReplicationFactor) && tries < awaitReplicas; tries++ {
		e.log.Warn("internal topics can't be made yet: fewer brokers are up than engine.ReplicationFactor asks for; start more of them, or set a lower one", "error", err)
		if ended := sleep(ctx, time.Second); ended != nil {
			return nil, errors.Join(ended, err)
		}
		found, warnings, err = topics.Ensure(ctx, e.control, wanted)
	}
	for _, w := range warnings {
		e.log.Warn("an internal topic has another setting than expected", "topic", w.Topic, "difference", w.Reason)
	}
	if err != nil {
		return nil, err
	}
	return found, memory.Keep(found)
}

// deriveTasks lists the tasks: as many for each sub-topology as its widest input has partitions.
func (c *catalog) deriveTasks(p *plan.Plan, matched map[string][]string) {
	sources := map[string]bool{}
	for _, sub := range p.Subtopologies {
		byPartition := map[int32][]task.TopicPartition{}
		for _, topic := range c.inputsOf(sub, matched) {
			sources[topic] = true
			for part := range c.topics[topic].Partitions {
				byPartition[part] = append(byPartition[part], task.TopicPartition{Topic: topic, Partition: part})
			}
		}
		for part, inputs := range byPartition {
			id := task.ID{Subtopology: sub.ID, Partition: part}
			c.tasks[id] = &taskSpec{id: id, subs: []*plan.Subtopology{sub}, inputs: inputs, lake: sub.Lake}
			c.ids = append(c.ids, assign.TaskID{Subtopology: int32(sub.ID), Partition: part})
		}
		c.signatures[int32(sub.ID)] = versions.Signature(p, sub)
		for _, name := range sub.Stores {
			if s := p.Stores[name]; s != nil && !s.Global && s.Changelog != "" {
				c.stateful[int32(sub.ID)] = true
			}
		}
	}
	assign.Sort(c.ids)
	c.sources = slices.Sorted(maps.Keys(sources))
	if len(p.Globals) > 0 {
		c.global = &taskSpec{id: task.ID{Subtopology: -1}, subs: p.Globals}
		for _, sub := range p.Globals {
			for _, topic := range c.inputsOf(sub, matched) {
				for part := range c.topics[topic].Partitions {
					c.global.inputs = append(c.global.inputs, task.TopicPartition{Topic: topic, Partition: part})
				}
			}
		}
	}
}

func (c *catalog) inputsOf(sub *plan.Subtopology, matched map[string][]string) []string {
	var all []string
	for _, n := range sub.Nodes {
		if n.Kind != plan.SourceNode {
			continue
		}
		for _, topic := range slices.Concat(n.Topics, matched[n.Name]) {
			all = append(all, topic)
			c.resets[topic] = n.Reset
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// topic returns a topic, asking the brokers for one that isn't known yet: records may choose their own.
func (c *catalog) topic(ctx context.Context, client *kgo.Client, name string) (topics.Topic, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.topics[name]; ok {
		return t, nil
	}
	found, err := topics.Describe(ctx, client, name)
	if err != nil {
		return topics.Topic{}, err
	}
	t, ok := found[name]
	if !ok {
		return t, fmt.Errorf("topic %s doesn't exist: create it, topics of the user are never made by the engine", name)
	}
	c.topics[name] = t
	return t, nil
}

func (c *catalog) id(name string) [16]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.topics[name].ID
}
