package topologytest

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// Driver runs a topology on simulated topics and a manual clock. It is used by one goroutine.
//
// Errors are returned; of a Driver made by New they also end the test at once, so that tests need not look at them.
type Driver struct {
	tb    testing.TB // nil if made by Open
	built *topology.Plan
	plan  *plan.Plan
	opts  options
	now   time.Time
	fatal error // once the topology has failed, nothing more can be done

	broker    *broker
	lastRead  *topic           // by Read: most tests read one
	resources *state.Resources // of stores on disk
	counts    map[string]int32 // partitions of internal topics, in the partitioned mode

	tasks    []*member
	global   *member         // nil without global stores
	patterns []*patternInput // of sources that read topics by a pattern

	letters letters // of the global tables

	open     []pending                // what the open transaction has written
	spare    []pending                // the last one's, to be used again
	gathers  bool                     // see gathered.go
	prompt   bool                     // not any more
	running  bool                     // within a record
	gathered int                      // records
	ends     []int64                  // scratch
	progress map[task.ID]*[]task.Mark // of the operators, committed
	tables   map[string]*table
	failures [opCount][]error
	aborted  int
	dropped  map[string]int64 // by reason, of tasks that are closed
}

// pending is a record of the open transaction.
type pending struct {
	to      *partition
	entry   entry
	headers []processors.Header
}

// position is a committed offset with its metadata.
type position struct{ offset, partitionTime int64 }

// New runs a plan in a test. It fails the test at the first error, and closes the driver at the end of the test.
func New(tb testing.TB, p *topology.Plan, opts ...Option) *Driver {
	tb.Helper()
	d, err := open(tb, p, opts)
	if err != nil {
		tb.Fatalf("topologytest: %v", err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Errorf("topologytest: closing: %v", err)
		}
	})
	return d
}

// Open runs a plan without a test: errors are returned only. Close it.
func Open(p *topology.Plan, opts ...Option) (*Driver, error) { return open(nil, p, opts) }

func open(tb testing.TB, p *topology.Plan, opts []Option) (*Driver, error) {
	if p == nil {
		return nil, errors.New("the plan is nil: look at the error of Build")
	}
	d := &Driver{
		tb: tb, built: p, plan: p.Internal(), opts: newOptions(opts), broker: newBroker(),
		progress: map[task.ID]*[]task.Mark{}, tables: map[string]*table{}, dropped: map[string]int64{},
	}
	d.patterns = patternInputs(d.plan)
	d.now = d.opts.start
	if d.opts.stateDir != "" {
		d.resources = state.NewResources(state.ResourceOptions{CacheBytes: 16 << 20})
	}
	if err := d.createTopics(); err != nil {
		return nil, errors.Join(err, d.releaseResources())
	}
	for topic := range d.opts.topicCounts {
		if d.broker.topics[topic] == nil {
			if err := d.unknownTopic(topic); err != nil {
				return nil, errors.Join(fmt.Errorf("option TopicPartitions: %w", err), d.releaseResources())
			}
		}
	}
	if err := d.start(); err != nil {
		return nil, errors.Join(err, d.stop(), d.releaseResources())
	}
	return d, nil
}

// partitioned tells the mode.
func (d *Driver) partitioned() bool { return d.opts.partitions > 0 }

// userPartitions is the number of partitions of a topic that the topology does not own.
func (d *Driver) userPartitions(topic string) int32 {
	if !d.partitioned() {
		return 1
	}
	if n, ok := d.opts.topicCounts[topic]; ok {
		return n
	}
	return d.opts.partitions
}

// createTopics creates the topics that are known from the plan, and checks in the partitioned mode what the engine checks at start.
func (d *Driver) createTopics() error {
	for _, sub := range slices.Concat(d.plan.Subtopologies, d.plan.Globals) {
		for _, t := range sub.SourceTopics {
			if d.plan.InternalTopics[t] == nil {
				d.broker.create(t, d.userPartitions(t))
			}
		}
		for _, n := range sub.Nodes {
			if n.Kind == plan.SinkNode && !n.Dynamic && d.plan.InternalTopics[n.Topic] == nil {
				d.broker.create(n.Topic, d.userPartitions(n.Topic))
			}
		}
	}
	d.counts = map[string]int32{}
	if d.partitioned() {
		count := func(topic string) (int32, bool) { return d.userPartitions(topic), true }
		counts, err := d.plan.Partitions(count, d.matched())
		if err != nil {
			return err
		}
		d.counts = counts
	}
	for _, name := range sortedNames(d.plan.InternalTopics) {
		d.broker.create(name, max(d.counts[name], 1))
	}
	return nil
}

// matched lists, by source, the topics that its pattern matches.
func (d *Driver) matched() map[string][]string {
	m := map[string][]string{}
	for _, p := range d.patterns {
		for _, t := range d.broker.order {
			if p.expr.MatchString(t.name) {
				m[p.node.Name] = append(m[p.node.Name], t.name)
			}
		}
	}
	return m
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// here marks its caller as no place of a failure: a failure is the test's line that called it.
func (d *Driver) here() interface{ Helper() } {
	if d.tb == nil {
		return nobody{}
	}
	return d.tb
}

type nobody struct{}

func (nobody) Helper() {}

// report ends the test with err, if there is one, and returns err.
func (d *Driver) report(err error) error {
	if d.tb != nil && err != nil {
		d.tb.Helper()
		d.tb.Fatalf("topologytest: %v", err)
	}
	return err
}

// Close closes the tasks and their stores, without a commit. It may be called again.
func (d *Driver) Close() error {
	err := errors.Join(d.commitGathered(), d.stop())
	if d.fatal == nil {
		d.fatal = errors.New("the driver is closed")
	}
	return errors.Join(err, d.releaseResources())
}

func (d *Driver) releaseResources() error {
	if d.resources == nil {
		return nil
	}
	err := d.resources.Close()
	d.resources = nil
	return err
}

// Pipe appends a record to a topic that the topology reads, and runs the topology until nothing is left to be done. A negative
// partition is chosen by the key. The offset is the topic's to give.
func (d *Driver) Pipe(r Record) error {
	d.here().Helper()
	return d.report(d.pipe(r))
}

func (d *Driver) pipe(r Record) error {
	if d.fatal != nil {
		return fmt.Errorf("the topology has stopped: %w", d.fatal)
	}
	t, err := d.inputTopic(r.Topic)
	if err != nil {
		return err
	}
	return d.pipeTo(t, r.Partition, d.broker.kept.keep(r.Timestamp, r.Key, r.Value), r.Headers)
}

// pipeTo pipes a record, which is kept, to its topic, which is that of inputTopic.
func (d *Driver) pipeTo(t *topic, number int32, e entry, headers []processors.Header) error {
	if d.fatal != nil {
		return fmt.Errorf("the topology has stopped: %w", d.fatal)
	}
	if !d.partitioned() {
		number = 0
	} else if number < 0 {
		key, _ := d.broker.kept.bytes(&e)
		number = t.choose(key)
	}
	p, err := t.find(number)
	if err != nil {
		return err
	}
	if err := d.deliver(p, p.append(e, keepHeaders(headers))); err != nil {
		return d.failed(err)
	}
	return d.failed(d.settle())
}

// inputTopic finds a topic that is read, and makes one that a pattern matches.
func (d *Driver) inputTopic(name string) (*topic, error) {
	if t := d.broker.topics[name]; t != nil {
		return t, nil
	}
	for _, p := range d.patterns {
		if p.expr.MatchString(name) {
			return d.broker.create(name, d.userPartitions(name)), d.readNewTopic(name)
		}
	}
	return nil, fmt.Errorf("topic %q is not read by the topology; it reads %v", name, d.inputs())
}

// inputs names the topics of the user that are read.
func (d *Driver) inputs() []string {
	names := map[string]bool{}
	for _, sub := range slices.Concat(d.plan.Subtopologies, d.plan.Globals) {
		for _, t := range sub.SourceTopics {
			if d.plan.InternalTopics[t] == nil {
				names[t] = true
			}
		}
	}
	for _, p := range d.patterns {
		names["/"+p.node.Pattern+"/"] = true
	}
	return sortedNames(names)
}

// failed notes that the topology has stopped.
func (d *Driver) failed(err error) error {
	if err != nil && d.fatal == nil {
		d.fatal = err
	}
	return err
}

// AdvanceWallClock moves the wall clock on, fires the punctuations that are due, once each, and runs the topology until nothing is
// left to be done.
func (d *Driver) AdvanceWallClock(by time.Duration) error {
	d.here().Helper()
	if d.fatal != nil {
		return d.report(fmt.Errorf("the topology has stopped: %w", d.fatal))
	}
	d.now = d.now.Add(by)
	for _, m := range d.tasks {
		if _, err := m.task.PunctuateWallClock(); err != nil {
			d.discard()
			return d.report(d.failed(err))
		}
	}
	return d.report(d.failed(d.settle()))
}

// Now is the wall clock.
func (d *Driver) Now() time.Time { return d.now }

// Topics names the topics that the topology has written to, in order.
func (d *Driver) Topics() []string {
	d.noteError(d.commitGathered())
	var names []string
	for _, t := range d.broker.order {
		if len(t.produced) > 0 {
			names = append(names, t.name)
		}
	}
	sort.Strings(names)
	return names
}

// Records returns all records of one partition of a topic, those that were piped in as well. Their bytes are the driver's: don't change
// them.
func (d *Driver) Records(topic string, partition int32) []Record {
	p := d.broker.partition(task.TopicPartition{Topic: topic, Partition: partition})
	if p == nil {
		return nil
	}
	if p.topic.changelog {
		d.noteError(d.commitGathered())
	}
	return p.span(0, int64(p.n))
}

// Read returns the records that the topology has written to a topic, and committed, since the last call, over all partitions.
//
// A topic that the topology doesn't have and can't choose for a record is an error.
func (d *Driver) Read(topic string) []Record {
	d.here().Helper()
	if d.lastRead == nil || d.lastRead.name != topic {
		t := d.broker.topics[topic]
		if t == nil {
			d.report(d.unknownTopic(topic))
			return nil
		}
		d.lastRead = t
	}
	if d.lastRead.changelog {
		d.noteError(d.commitGathered())
	}
	return d.lastRead.unread()
}

// unknownTopic is the error of reading a topic that there isn't, nil if it may still come to be: where sinks choose topics, handlers name those of
// dead letters, or a pattern matches it.
func (d *Driver) unknownTopic(name string) error {
	h := d.opts.handlers
	if h.Deserialization != nil || h.Processing != nil || h.Production != nil || h.Global != nil || h.DroppedTopic == name {
		return nil
	}
	for _, n := range d.plan.Nodes {
		if n.Dynamic {
			return nil
		}
	}
	for _, p := range d.patterns {
		if p.expr.MatchString(name) {
			return nil
		}
	}
	return fmt.Errorf("the topology has no topic %q: it has %v", name, sortedNames(d.broker.topics))
}

// Aborted counts the transactions that failed to commit.
func (d *Driver) Aborted() int { return d.aborted }

// Dropped counts the records that were left out, by reason; see the Dropped… constants of package processors.
func (d *Driver) Dropped() map[string]int64 {
	sum := map[string]int64{}
	for reason, n := range d.dropped {
		sum[reason] += n
	}
	for _, m := range d.members() {
		for _, drop := range m.task.Drops() {
			sum[drop.Reason] += drop.Count
		}
	}
	return sum
}

func (d *Driver) members() []*member {
	if d.global == nil {
		return d.tasks
	}
	return append([]*member{d.global}, d.tasks...)
}

func (d *Driver) tableNames() []string { return sortedNames(d.tables) }
