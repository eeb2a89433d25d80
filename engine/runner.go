package engine

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// runner is a task of this instance with all that belongs to it: its stores, its inbox, its place in the run queue.
//
// The conductor makes, opens and closes runners. A worker holds runMu while it runs one; the conductor touches what a worker uses only while
// the gate is closed.
type runner struct {
	spec *taskSpec
	task *task.Task // nil until open
	db   *state.DB  // nil without stores
	copy bool       // belongs to a standby, and never has a task
	kept bool       // the database was open before the runner, and nearly complete
	out  *collector

	phase   atomic.Int32 // of the run queue: see workers.go
	halted  bool         // a pause has kept it from its records; its worker's
	restore restoreProgress
	gone    *retired // where its counts go in the end

	// The inbox: what was fetched and the task has not taken yet.
	inMu      sync.Mutex
	inbox     []delivery
	inBytes   map[task.TopicPartition]int
	paused    map[task.TopicPartition]bool
	ends      map[task.TopicPartition]int64 // last stable offset, where known
	taken     map[task.TopicPartition]int64 // the position up to which the task has the records
	delivered map[task.TopicPartition]int64 // the position up to which the inbox had them
	intake    *intake
	told      struct { // to the intake
		bytes   int64
		hungry  bool
		written int64
	}
	uncommitted *atomic.Int64   // bytes of state, of all runners
	done        []task.Position // how far the task has come, after its last slice
	closed      bool            // nothing is taken any more
	pauseCap    int             // bytes of one input above which it is paused, if the intake is full

	// The conductor's own.
	open      bool                          // processes
	opening   bool                          // an opener has it
	leaving   bool                          // is to be closed, and processes nothing more
	cancel    func()                        // ends the opening
	committed map[task.TopicPartition]int64 // the offset last committed, or begun from
	progress  map[string]int64              // of the operators, as last committed
	redo      bool                          // something is to be committed although the task says it has nothing
	lake      *lakeSide
	deadFloor map[task.TopicPartition]int64 // of lake tasks: dead letters before it are written already
	deadSent  atomic.Bool                   // a dead letter is in the open transaction
	changelog []*txn.End                    // by store
	timer     *time.Timer
	parking

	// Pacing: see pacing.go.
	pace struct {
		next     atomic.Int64 // event time of the next record in ms; of a task that is being opened, how far it was; math.MaxInt64: it has nothing to read
		held     atomic.Bool  // waits for its siblings
		dueSince atomic.Int64 // Unix time in ns since when the next records are due: there was nothing more in hand, or more was known to be there
		siblings atomic.Pointer[[]*runner]
		timer    *time.Timer
	}

	// changelogSize is about how many changelog records somebody without the state would have to read: what there were when the task was
	// opened, and what it has written since.
	changelogSize atomic.Int64
	sealed        int64 // changelog records of the generation that is being committed; the conductor's

	// For others to look at: the task while it counts, whether it runs, its time.
	counting   atomic.Pointer[task.Task]
	runs       atomic.Bool
	streamTime atomic.Int64
	// committedAt is when something of it was last committed, Unix time in ns; 0 before.
	committedAt atomic.Int64
}

// delivery is what one fetch brought of one input.
type delivery struct {
	tp      task.TopicPartition
	records []processors.RawRecord
	next    int64
	bytes   int
}

func (e *Engine) newRunner(spec *taskSpec, pauseCap int) *runner {
	r := &runner{
		spec: spec, pauseCap: pauseCap, gone: &e.stats.gone,
		inBytes: map[task.TopicPartition]int{}, paused: map[task.TopicPartition]bool{}, ends: map[task.TopicPartition]int64{},
		taken: map[task.TopicPartition]int64{}, delivered: map[task.TopicPartition]int64{}, intake: e.intake, uncommitted: &e.uncommitted,
		committed: map[task.TopicPartition]int64{}, deadFloor: map[task.TopicPartition]int64{},
	}
	r.streamTime.Store(processors.NoTimestamp)
	r.pace.next.Store(processors.NoTimestamp)
	r.pace.dueSince.Store(e.cfg.clock().UnixNano())
	return r
}

// pauser is fetch.Inputs, as far as a runner uses it. It is called with inMu locked: a worker that has processed what just came would else
// resume an input before it is paused, and nothing more of it would ever come.
type pauser interface {
	Pause(parts ...fetch.Partition)
	Resume(parts ...fetch.Partition)
}

// deliver puts a batch into the inbox, and pauses the input if it has more than its share and others have too little.
func (r *runner) deliver(b *fetch.Batch, inputs pauser) {
	tp := task.TopicPartition(b.Partition)
	d := delivery{tp: tp, records: rawRecords(b.Records), next: b.Next}
	for i := range d.records {
		d.bytes += len(d.records[i].Key) + len(d.records[i].Value) + recordOverhead
	}
	r.inMu.Lock()
	defer r.inMu.Unlock()
	if r.closed {
		return
	}
	r.inbox = append(r.inbox, d)
	r.inBytes[tp] += d.bytes
	r.ends[tp] = max(r.ends[tp], b.Stable)
	r.delivered[tp] = max(r.delivered[tp], d.next)
	r.tellIntake()
	if r.inBytes[tp] > r.pauseCap && !r.paused[tp] && (r.intake == nil || r.intake.full()) {
		r.paused[tp] = true
		inputs.Pause(b.Partition)
	}
}

const recordOverhead = 128 // about what the structs around a record take

func rawRecords(records []*kgo.Record) []processors.RawRecord {
	if len(records) == 0 {
		return nil
	}
	raw := make([]processors.RawRecord, len(records))
	for i, r := range records {
		raw[i] = processors.RawRecord{
			Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(),
			Key: r.Key, Value: r.Value, Headers: headers(r.Headers),
		}
	}
	return raw
}

func headers(in []kgo.RecordHeader) []processors.Header {
	if len(in) == 0 {
		return nil
	}
	out := make([]processors.Header, len(in))
	for i, h := range in {
		out[i] = processors.Header{Key: h.Key, Value: h.Value}
	}
	return out
}

// takeInbox moves the inbox into the task.
func (r *runner) takeInbox() error {
	r.inMu.Lock()
	inbox := r.inbox
	r.inbox = nil
	for i := range inbox {
		r.taken[inbox[i].tp] = max(r.taken[inbox[i].tp], inbox[i].next)
	}
	r.inMu.Unlock()
	for i := range inbox {
		if err := r.task.Add(inbox[i].tp, inbox[i].records, inbox[i].next); err != nil {
			return err
		}
	}
	return nil
}

// afterSlice notes how far the task has come, and resumes the paused inputs of which enough is processed.
func (r *runner) afterSlice(inputs pauser) {
	r.inMu.Lock()
	defer r.inMu.Unlock()
	r.done = r.task.Positions(r.done[:0])
	clear(r.inBytes)
	for _, d := range r.inbox {
		r.inBytes[d.tp] += d.bytes
	}
	for _, tp := range r.spec.inputs {
		_, bytes := r.task.Buffered(tp)
		r.inBytes[tp] += bytes
		if r.paused[tp] && r.inBytes[tp] < r.pauseCap/2 {
			delete(r.paused, tp)
			inputs.Resume(fetch.Partition(tp))
		}
	}
	r.tellIntake()
	r.tellWritten()
}

// lag tells how many records of an input are still to be fetched.
func (r *runner) lag(tp task.TopicPartition) (int64, bool) {
	r.inMu.Lock()
	defer r.inMu.Unlock()
	end, known := r.ends[tp]
	if !known {
		return 0, false
	}
	return max(0, end-r.taken[tp]), true
}

// dirty tells whether there is something to commit. The gate must be closed.
func (r *runner) dirty() bool {
	return r.redo || r.task.Dirty() || r.db != nil && r.db.BufferedBytes() > 0
}

// moved lists the positions that differ from what was last committed. The gate must be closed.
func (r *runner) moved() []task.Position {
	var all []task.Position
	again := !maps.Equal(r.progress, r.task.Progress())
	for _, p := range r.task.Positions(nil) {
		if p.Offset >= 0 && (again || p.Offset != r.committed[p.TopicPartition]) {
			all = append(all, p)
		}
	}
	return all
}

// shut takes the runner out of work for good or until it is opened again. The gate must be closed, or the runner never opened.
func (r *runner) shut() error {
	r.inMu.Lock()
	r.closed, r.inbox = true, nil
	r.tellIntake()
	r.tellWritten()
	if r.cancel != nil {
		r.cancel()
	}
	r.inMu.Unlock()
	r.open = false
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.pace.timer != nil {
		r.pace.timer.Stop()
	}
	if r.opening { // its opener still uses the rest; see takeOpened
		return nil
	}
	var err error
	r.runs.Store(false)
	if t := r.counting.Swap(nil); t != nil {
		r.gone.add(t)
	}
	if r.task != nil {
		err = r.task.Close()
		r.task = nil
	}
	if r.out != nil {
		err = errors.Join(err, r.out.close())
	}
	return err
}

// close shuts the runner and its stores.
func (r *runner) close() error {
	return errors.Join(r.shut(), r.closeStores())
}

func (r *runner) closeStores() error {
	if r.db == nil {
		return nil
	}
	return r.db.Close()
}

func (r *runner) partitions() []fetch.Partition {
	parts := make([]fetch.Partition, len(r.spec.inputs))
	for i, tp := range r.spec.inputs {
		parts[i] = fetch.Partition(tp)
	}
	return parts
}

// sortedRunners gives a stable order to what is done for each runner.
func sortedRunners(all map[task.ID]*runner) []*runner {
	return slices.SortedFunc(maps.Values(all), func(a, b *runner) int { return compareIDs(a.spec.id, b.spec.id) })
}
