package engine

import (
	"maps"
	"time"
)

// The options for scaling out; docs/operations/scaling.md tells how they work together. The instance that leads the group decides by its own,
// so give all instances the same.

// Standbys keeps n copies of each stateful task's state on other instances, up to date from the changelogs, so that one of them goes on at
// once when the task's instance fails. Kafka Streams: num.standby.replicas. Default: 0.
func Standbys(n int) Option { return func(c *config) { c.spread.Standbys = n } }

// WarmupReplicas bounds how many tasks at a time, over the whole group, are prepared to move: the instance that is to have one catches up with
// its state first, and the task runs where it is meanwhile (KIP-441; Kafka Streams: max.warmup.replicas). With 0 tasks move at once, and stand
// still while they are restored. Default: 2.
func WarmupReplicas(n int) Option { return func(c *config) { c.spread.Warmups = n } }

// AcceptableLag is how many changelog records a copy may lack and still take its task over at once (Kafka Streams:
// acceptable.recovery.lag). A task with no more records in its changelogs moves without a warm-up. Default: 10,000.
func AcceptableLag(records int64) Option { return func(c *config) { c.spread.AcceptableLag = records } }

// ProbingInterval is how often the group looks whether tasks can move on while there are warm-ups. It is a safety net only: an instance that
// has caught up says so by itself. Default: 10 minutes.
func ProbingInterval(d time.Duration) Option { return func(c *config) { c.probing = d } }

// Tags describe where this instance runs: Tags(map[string]string{"zone": "eu-1a", "rack": "r12"}). See SpreadStandbys.
func Tags(tags map[string]string) Option { return func(c *config) { c.tags = maps.Clone(tags) } }

// SpreadStandbys names the tags, the most important first, in which the copies of a task should differ from one another and from the task,
// so that a zone or rack can fail as a whole (KIP-708; Kafka Streams: rack.aware.assignment.tags).
func SpreadStandbys(tags ...string) Option { return func(c *config) { c.spread.SpreadTags = tags } }

// standbysAtOnce is how many standbys are restored at the same time.
const standbysAtOnce = 2

func (c *config) checkSpread(bad func(format string, args ...any)) {
	if c.spread.Standbys < 0 || c.spread.Warmups < 0 || c.spread.AcceptableLag < 0 {
		bad("%d standbys, %d warm-ups, an acceptable lag of %d: none can be below zero", c.spread.Standbys, c.spread.Warmups, c.spread.AcceptableLag)
	}
	if c.vault != nil && c.keep <= 0 {
		bad("checkpoints are kept every %v, it must be above zero", c.keep)
	}
	if c.probing <= 0 {
		bad("the probing interval is %v, it must be above zero", c.probing)
	}
}

// RestorePhase is what happens to a task's state.
type RestorePhase int

// The phases. Those of standbys alone say so; the others are of tasks and standbys alike.
const (
	RestoreBegan      RestorePhase = iota + 1 // changelogs are being read
	RestoreEnded                              // up to the end that they had
	StandbyFollows                            // the copy is kept up to date from now on
	StandbyCaughtUp                           // a warm-up asks for its task
	StandbyTakesOver                          // the copy becomes the task's state; it isn't closed in between
	StandbyClosed                             // the copy isn't kept any more
	CheckpointAdopted                         // the state was replaced by a checkpoint of another instance
	RestoreGoesOn                             // changelogs are being read still: every 5 s
	CheckpointComes                           // a checkpoint of another instance is being fetched: every 5 s
)

func (p RestorePhase) String() string {
	return [...]string{"", "restore began", "restore ended", "standby follows", "standby caught up", "standby takes over", "standby closed", "checkpoint adopted", "restore goes on", "checkpoint comes"}[p]
}

// RestoreEvent tells what happens to a task's state on this instance.
type RestoreEvent struct {
	Task    string // "<sub-topology>_<partition>", or "global"
	Standby bool   // it is a copy; false: the task itself
	Phase   RestorePhase
	Records int64         // read so far
	Left    int64         // offsets still to be read; -1 at StandbyTakesOver of a copy that was being opened
	Took    time.Duration // since RestoreBegan; at CheckpointComes and CheckpointAdopted: the transfer
	Bytes   int64         // of keys and values read so far; at CheckpointComes: what has come of it; at CheckpointAdopted: of the checkpoint
	// At RestoreGoesOn and RestoreEnded: records a second so far. At RestoreGoesOn and CheckpointComes: how long what is left takes at this pace.
	Rate     float64
	TimeLeft time.Duration
	From     string // where it came from
}

// OnRestore is called when state is restored, and when standbys begin to follow, take over or end. It is called by several goroutines, and must
// not block. For how far a restore is at any moment see Stats.
func OnRestore(f func(RestoreEvent)) Option { return func(c *config) { c.onRestore = f } }

func (e *Engine) restoring(event RestoreEvent) {
	if e.cfg.onRestore != nil {
		e.cfg.onRestore(event)
	}
}
