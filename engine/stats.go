package engine

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/engine/internal/lander"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
)

// counters count what the instance has done. Any goroutine may look.
type counters struct {
	commits     atomic.Int64
	aborted     atomic.Int64
	produced    atomic.Int64 // records in committed transactions
	sealedEarly atomic.Int64 // lake batches cut for lack of memory
	// Of restores from changelogs, standbys' and global tables' included.
	restoredRecords, restoredBytes atomic.Int64

	gone retired

	mu         sync.Mutex
	lastCommit time.Time
	latency    time.Duration // of the last commit
	observe    func(time.Duration)
}

func (c *counters) committed(took time.Duration, records int64, now time.Time) {
	c.commits.Add(1)
	c.produced.Add(records)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastCommit, c.latency = now, took
	if c.observe != nil {
		c.observe(took)
	}
}

// retired keeps the counts of tasks that don't run here any more, so that totals don't go down.
type retired struct {
	mu        sync.Mutex
	processed int64
	drops     map[dropKey]int64
}

type dropKey struct{ node, reason string }

func (r *retired) add(t *task.Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.processed += t.Processed()
	for _, d := range t.Drops() {
		if r.drops == nil {
			r.drops = map[dropKey]int64{}
		}
		r.drops[dropKey{d.Node, d.Reason}] += d.Count
	}
}

// Stats is a picture of an instance at a moment.
type Stats struct {
	State State
	Since time.Time // of the state
	// Reason says why the state is Recovering, where it isn't a commit that failed: the answer of /readyz.
	Reason string
	// Heard is when the group's coordinator last took a heartbeat, or a join, of this instance; zero before the first. None is sent while the group
	// shares its tasks anew.
	Heard time.Time
	Tasks []TaskStats
	// Standbys are the copies that this instance keeps of tasks that run elsewhere.
	Standbys []StandbyStats
	// OtherVersions says in lines how the topologies of other members of the group differ from this instance's, the other one first: of the
	// one that leads the group, or of all if this instance leads it. Empty where all are equal, and under the streams protocol.
	OtherVersions []string
	// Dropped counts the records left out since the start, by node and reason, over all tasks that ran here.
	Dropped []Dropped
	Lake    []LakeStats
	Memory  MemoryStats
	// Processed counts input records, those of work that was done twice included; Produced the records in committed transactions.
	Processed, Produced int64
	Commits, Aborted    int64
	LastCommit          time.Time
	CommitTook          time.Duration
	// Lag is the number of input records that wait to be processed, over all tasks.
	Lag int64
	// StandbyRecords counts changelog records applied to standbys that follow; restores don't count.
	StandbyRecords int64
	// RestoredRecords and RestoredBytes are what was put into stores by restores from changelogs since the start, those of standbys and of global
	// tables included.
	RestoredRecords, RestoredBytes int64
	Checkpoints                    CheckpointStats
}

// CheckpointStats counts what was done with checkpoints since the start; see ShipCheckpoints.
type CheckpointStats struct {
	Made, SentBytes                int64 // for others
	Adopted, Failed, ReceivedBytes int64 // Failed counts tries that ended in another origin or the changelogs, or in nothing kept
	Kept                           int64 // in the object store
}

func (e *Engine) checkpointStats() CheckpointStats {
	s := CheckpointStats{Adopted: e.shipping.adopted.Load(), Failed: e.shipping.failed.Load(), ReceivedBytes: e.shipping.received.Load(), Kept: e.shipping.keptCount.Load()}
	if desk := e.shipping.desk.Load(); desk != nil {
		s.Made, s.SentBytes = desk.Taken.Load(), desk.Sent.Load()
	}
	return s
}

// StandbyStats is a picture of a standby.
type StandbyStats struct {
	Name      string // "<sub-topology>_<partition>"
	Following bool   // false while it is restored
	Warmup    bool   // the task is to move here
	// Lag is how many changelog offsets it is behind what is committed, as far as known. While it is restored: what is left; before that -1.
	Lag     int64
	Restore RestoreStats
}

func (e *Engine) standbyStats() (all []StandbyStats) {
	for _, s := range e.standbysNow() {
		all = append(all, StandbyStats{
			Name: s.r.spec.id.String(), Following: s.following.Load(), Warmup: s.warmup.Load(), Lag: shownLag(s.lag()), Restore: s.r.restore.seen(e.cfg.clock()),
		})
	}
	return all
}

// TaskStats is a picture of a task.
type TaskStats struct {
	Name       string // "<sub-topology>_<partition>", or "global"
	Running    bool   // false while its state is brought up to date
	Lake       bool
	Processed  int64
	StreamTime int64 // ms, or -1
	// Enforced counts the records processed although an input was still empty after MaxTaskIdle.
	Enforced    int64
	Inputs      []InputStats
	Restore     RestoreStats
	StateBytes  int64     // of writes to its stores that wait for a commit
	LastCommit  time.Time // the last that something of the task was in, zero before the first; of a lake task see LakeStats
	Parked      error     // why it waits, see ParkLake; also while a row can't be made yet. nil if it doesn't
	ParkedSince time.Time
}

// InputStats is a picture of an input partition.
type InputStats struct {
	Topic     string
	Partition int32
	Position  int64 // the next offset to process; -1 if unknown
	End       int64 // of what can be read (the last stable offset), as far as known
	Lag       int64
	Time      int64 // the largest event time processed, ms, or -1
	// HoldsSince is since when this input, which is empty, has kept the task from what it has of its other inputs; zero if it doesn't.
	HoldsSince time.Time
}

// Dropped counts the records that a node left out for one reason.
type Dropped struct {
	Node, Reason string
	Count        int64
}

// LakeStats is a picture of a table that the instance lands rows in.
type LakeStats struct {
	Sink string
	lander.Stats
}

// publish shows the runners to those who look at Stats.
func (e *Engine) publish() {
	all := sortedRunners(e.runners)
	if e.global != nil {
		all = append(all, e.global)
	}
	if old := e.shown.Load(); old != nil && slices.Equal(*old, all) {
		return
	}
	e.shown.Store(&all)
	e.pair()
}

// Stats gives a picture of the instance. It may be called at any time, from any goroutine.
func (e *Engine) Stats() Stats {
	s := Stats{Commits: e.stats.commits.Load(), Aborted: e.stats.aborted.Load(), Produced: e.stats.produced.Load()}
	s.State, s.Since = e.states.get()
	s.Reason = e.states.reason()
	if m := e.membershipShown.Load(); m != nil {
		s.Heard = (*m).Heard()
	}
	s.Checkpoints = e.checkpointStats()
	s.Memory = e.memoryStats()
	s.OtherVersions = e.version.Differs()
	s.Standbys, s.StandbyRecords = e.standbyStats(), e.follower.applied.Load()
	s.RestoredRecords, s.RestoredBytes = e.stats.restoredRecords.Load(), e.stats.restoredBytes.Load()
	e.stats.mu.Lock()
	s.LastCommit, s.CommitTook = e.stats.lastCommit, e.stats.latency
	e.stats.mu.Unlock()
	drops := map[dropKey]int64{}
	e.stats.gone.mu.Lock()
	s.Processed = e.stats.gone.processed
	for k, n := range e.stats.gone.drops {
		drops[k] += n
	}
	e.stats.gone.mu.Unlock()
	if shown := e.shown.Load(); shown != nil {
		now := e.cfg.clock()
		for _, r := range *shown {
			t, d := r.stats(now)
			s.Tasks = append(s.Tasks, t)
			s.Processed += t.Processed
			for _, in := range t.Inputs {
				s.Lag += in.Lag
			}
			for _, x := range d {
				drops[dropKey{x.Node, x.Reason}] += x.Count
			}
		}
	}
	for k, n := range drops {
		s.Dropped = append(s.Dropped, Dropped{k.node, k.reason, n})
	}
	slices.SortFunc(s.Dropped, func(a, b Dropped) int { return strings.Compare(a.Node+"\x00"+a.Reason, b.Node+"\x00"+b.Reason) })
	for name, l := range e.landersNow() {
		s.Lake = append(s.Lake, LakeStats{Sink: name, Stats: l.Stats()})
	}
	slices.SortFunc(s.Lake, func(a, b LakeStats) int { return strings.Compare(a.Sink, b.Sink) })
	return s
}

// landersNow are the tables, once they are open.
func (e *Engine) landersNow() map[string]*lander.Lander {
	if shown := e.openLandersShown.Load(); shown != nil {
		return *shown
	}
	return nil
}

// stats gives a picture of the runner. It may run beside everything.
func (r *runner) stats(now time.Time) (TaskStats, []task.Drop) {
	s := TaskStats{Name: taskOf(r.spec.id), Lake: r.spec.lake, StreamTime: r.streamTime.Load(), Restore: r.restore.seen(now)}
	if p := r.parked.Load(); p != nil {
		s.Parked, s.ParkedSince = p.err, p.since
	}
	if at := r.committedAt.Load(); at != 0 {
		s.LastCommit = time.Unix(0, at)
	}
	var drops []task.Drop
	t := r.counting.Load()
	if t != nil {
		s.Running = r.runs.Load()
		s.Processed, s.Enforced, drops = t.Processed(), t.Enforced(), t.Drops()
	}
	r.inMu.Lock()
	defer r.inMu.Unlock()
	s.StateBytes = r.told.written
	for _, tp := range r.spec.inputs {
		in := InputStats{Topic: tp.Topic, Partition: tp.Partition, Position: -1, End: r.ends[tp], Time: processors.NoTimestamp}
		for _, p := range r.done {
			if p.TopicPartition == tp {
				in.Position, in.Time = p.Offset, p.PartitionTime
			}
		}
		if in.Position >= 0 {
			in.Lag = max(0, in.End-in.Position)
		}
		if t != nil {
			if since, ok := t.HoldsSince(tp); ok {
				in.HoldsSince = since
			}
		}
		s.Inputs = append(s.Inputs, in)
	}
	return s, drops
}
