package task

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// ID names a task: a sub-topology and a partition.
type ID struct {
	Subtopology int
	Partition   int32
}

// String gives the id as Kafka Streams writes it: "0_3".
func (id ID) String() string { return fmt.Sprintf("%d_%d", id.Subtopology, id.Partition) }

// TopicPartition names an input or output partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

func (tp TopicPartition) String() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }

// Config is what a task is made of.
type Config struct {
	ApplicationID string
	ID            ID
	// Subtopologies are run as one: usually one, in the harness' driver mode all of the plan's.
	Subtopologies []*plan.Subtopology
	// Inputs are the source partitions that the task reads; each must belong to a source node by topic or pattern.
	Inputs []TopicPartition
	// DB holds the task's stores; nil for a task without. GlobalStores finds the global ones; may be nil.
	DB           DB
	GlobalStores state.Stores
	// Collector takes what the task produces.
	Collector Collector
	// Lake returns where rows of a lake node go. It may be nil if the task has none.
	Lake func(node *plan.Node) (processors.LakeAppender, error)
	// Handlers are the application's; of a task of global tables those for it are taken.
	Handlers processors.Handlers
	// Clock is the wall clock.
	Clock  func() time.Time
	Logger *slog.Logger
	// MaxIdle is how long a task with records on some inputs waits for an empty input that has nothing to read (KIP-695), where its
	// source doesn't say otherwise.
	// Negative: it never waits, not even for an input that is known to have records to be fetched.
	MaxIdle time.Duration
	// Lag tells how many records of an empty input are still to be fetched, and whether that is known. Nil: nothing is.
	Lag func(TopicPartition) (lag int64, known bool)
}

// DB is what a task needs of its state.DB; committing and restoring are the host's.
type DB interface {
	state.Stores
	// Bind tells the stores where to read the current record's time and headers.
	Bind(*state.Context)
}

// Collector takes what a task produces.
type Collector interface {
	// Send sends out to its topic. Its bytes are copied or written before Send returns. A partition of -1 is chosen by the key.
	// A *processors.RefusedError goes to the production-error handler; any other error is fatal for the task.
	Send(out *Out) error
	// Partitions returns the number of partitions of a topic.
	Partitions(topic string) (int32, error)
}

// Out is a record to be produced. It is valid during the call only.
type Out struct {
	Topic      string
	Partition  int32
	Key, Value []byte // nil is null
	Timestamp  int64  // ms
	Headers    []processors.Header
	Node       string // the node that produced it
	// About is, of a dead letter or an entry of the ledger, the record that it is about. It need not be the current one: records are decoded
	// ahead of their turn. Nil for any other record.
	About *processors.ErrorContext
}

// Task is one running task.
type Task struct {
	cfg     Config
	logger  *slog.Logger
	context processors.Context

	nodes  []*node // in topological order
	queues []*queue
	byTP   map[TopicPartition]*queue

	streamTime int64
	ready      timeHeap[*queue] // queues whose head is deserialized
	waiting    []*queue         // queues that came to have a new head, in that order
	limit      int64            // of event time; see SetLimit
	ahead      bool             // the next record is above it
	schedules  schedules
	progress   progress
	idle       idleTime
	onCommit   []func() error // of nodes that hold updates back until the commit
	shared     map[string]any // what nodes have in common

	panicked        map[string]bool // nodes and places whose stack was logged
	ledgerErr       error
	committing      bool // within PrepareCommit
	dirty           bool // something was processed since the last TakeDirty
	commitRequested bool
	idleSince       map[*queue]time.Time
	waitsFor        *queue // empty, while others have records

	processed atomic.Int64
	enforced  atomic.Int64
}

// New makes a task and wires its nodes. Stores may still be restoring: nodes touch them first in Init.
func New(cfg Config) (*Task, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.ID.Subtopology < 0 {
		cfg.Handlers = cfg.Handlers.ForGlobal()
	}
	t := &Task{
		cfg:        cfg,
		logger:     cfg.Logger,
		streamTime: processors.NoTimestamp,
		limit:      math.MaxInt64,
		byTP:       map[TopicPartition]*queue{},
		shared:     map[string]any{},
		idleSince:  map[*queue]time.Time{},
		idle:       newIdleTime(cfg.Subtopologies),
	}
	t.resetContext(0)
	if cfg.DB != nil {
		cfg.DB.Bind(&t.context.Context)
	}
	if err := t.wire(); err != nil {
		return nil, fmt.Errorf("task %s: %w", cfg.ID, err)
	}
	return t, nil
}

// Init initializes the nodes, in topological order. The stores must be complete.
func (t *Task) Init() error {
	t.becameIdle()
	for _, n := range t.nodes {
		if n.instance.Init == nil {
			continue
		}
		t.resetContext(t.nowMs())
		if err := n.init(); err != nil {
			t.logStack(n.spec.Name, err)
			return fmt.Errorf("task %s: node %s can't be initialized: %w", t.cfg.ID, n.spec.Name, err)
		}
	}
	return nil
}

// Close closes the nodes, not the DB, which belongs to the host. It returns all errors.
func (t *Task) Close() error {
	var errs []error
	for _, n := range slices.Backward(t.nodes) {
		if n.instance.Close == nil {
			continue
		}
		if err := n.close(); err != nil {
			t.logStack(n.spec.Name, err)
			errs = append(errs, fmt.Errorf("task %s: node %s: %w", t.cfg.ID, n.spec.Name, err))
		}
	}
	t.nodes, t.schedules, t.onCommit, t.idle = nil, schedules{}, nil, idleTime{}
	return errors.Join(errs...)
}

// ID returns the task's id.
func (t *Task) ID() ID { return t.cfg.ID }

// Inputs returns the input partitions.
func (t *Task) Inputs() []TopicPartition { return t.cfg.Inputs }

// StreamTime is the largest event time processed, in ms, or processors.NoTimestamp.
func (t *Task) StreamTime() int64 { return t.streamTime }

// Processed counts the records processed. It may be called by any goroutine.
func (t *Task) Processed() int64 { return t.processed.Load() }

// Enforced counts the records that were processed although an input was still empty after MaxIdle. Any goroutine may call it.
func (t *Task) Enforced() int64 { return t.enforced.Load() }

// HoldsSince is since when an input, which is empty, has kept the task from processing what it has of others (see Config.MaxIdle); ok is
// false if it doesn't. Any goroutine may call it.
func (t *Task) HoldsSince(tp TopicPartition) (since time.Time, ok bool) {
	q := t.byTP[tp]
	if q == nil {
		return since, false
	}
	ms := q.holdsSince.Load()
	return time.UnixMilli(ms), ms != 0
}

// WaitEnds is when the task has waited long enough for the input that keeps it from what it has of others; ok is false if it waits for none, or
// without an end. It is the task's own goroutine's to call.
func (t *Task) WaitEnds() (at time.Time, ok bool) {
	since, ok := t.idleSince[t.waitsFor]
	if !ok {
		return at, false
	}
	maxIdle := t.waitsFor.maxIdle(t.cfg.MaxIdle)
	return since.Add(maxIdle), maxIdle < math.MaxInt64
}

// Drops lists how many records each node left out, by reason. Any goroutine may call it.
func (t *Task) Drops() []Drop {
	var all []Drop
	for _, n := range t.nodes {
		all = n.drops.appendTo(all, n.spec.Name)
	}
	return all
}

// TakeDirty reports whether anything was processed or punctuated since it was last called.
func (t *Task) TakeDirty() bool {
	d := t.dirty
	t.dirty, t.commitRequested = false, false
	return d
}

// Dirty reports what TakeDirty would.
func (t *Task) Dirty() bool { return t.dirty }

// CommitRequested reports whether a processor has asked for a commit.
func (t *Task) CommitRequested() bool { return t.commitRequested }

func (t *Task) nowMs() int64 { return t.cfg.Clock().UnixMilli() }

// resetContext sets the context of code that runs for no record: initialization and punctuation.
func (t *Task) resetContext(timestamp int64) {
	t.context = processors.Context{Context: state.Context{Timestamp: timestamp, Offset: -1, Partition: -1}}
}

// Current is the input record being processed: its topic and partition, and its offset. In a punctuation the topic is empty.
func (t *Task) Current() (TopicPartition, int64) {
	return TopicPartition{t.context.Topic, t.context.Partition}, t.context.Offset
}

// HoldsBack reports whether any node sends something in PrepareCommit.
func (t *Task) HoldsBack() bool { return len(t.onCommit) > 0 }

// PrepareCommit lets the nodes send what they hold back until the commit. The host calls it before it seals the stores and takes the
// positions. Errors are fatal for the task.
func (t *Task) PrepareCommit() error {
	t.committing = true
	defer func() { t.committing = false }()
	for _, f := range t.onCommit {
		if err := runHook(f); err != nil {
			return t.located("", err)
		}
	}
	if len(t.onCommit) > 0 {
		t.resetContext(t.nowMs())
	}
	return nil
}

func runHook(f func() error) (err error) {
	defer recoverTo(&err)
	return f()
}
