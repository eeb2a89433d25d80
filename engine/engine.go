package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/goheap"
	"github.com/tributary-io/tributary/engine/internal/group"
	"github.com/tributary-io/tributary/engine/internal/holders"
	"github.com/tributary-io/tributary/engine/internal/identity"
	"github.com/tributary-io/tributary/engine/internal/lander"
	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/engine/internal/versions"
	"github.com/tributary-io/tributary/internal/filelimit"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// Engine is one instance of an application. Make it with New, and call Run once.
type Engine struct {
	built  *topology.Plan
	plan   *plan.Plan // what is in it
	cfg    config
	log    *slog.Logger
	states lifecycle
	stats  counters
	reg    *prometheus.Registry
	ran    atomic.Bool

	generated []string // durable names that were not chosen
	httpAddr  atomic.Value
	queries   queries
	renderer  func(store string) (topology.Renderer, bool)

	// life ends when everything has to end: CloseTimeout after Run's context, or at a failure.
	life    context.Context
	endLife context.CancelFunc
	// asking ends soon after Run's context: what tasks ask brokers for in the middle of a record must not keep the workers from stopping.
	asking    context.Context
	endAsking context.CancelFunc
	// sending ends with life, or earlier, where brokers that are away keep a task waiting for room while the instance closes.
	sending    context.Context
	endSending context.CancelFunc
	closing    atomic.Bool // Run's context has ended
	stopped    atomic.Bool // nothing is processed any more

	identity        *identity.Identity
	instance        atomic.Pointer[string] // to Instance
	control         *kgo.Client            // admin, group and offset requests
	restoreClient   *kgo.Client            // reads changelogs and global topics
	inputs          *fetch.Inputs
	intake          *intake
	goShare         goheap.Share // of a memory budget
	uncommitted     atomic.Int64 // bytes of uncommitted state: see tellWritten
	producer        *txn.Producer
	resources       *state.Resources
	resourcesShown  atomic.Pointer[state.Resources] // to Stats
	membership      group.Membership
	membershipShown atomic.Pointer[group.Membership] // to Stats
	protocol        Protocol                         // of the membership: Classic or Streams
	members         *members
	version         *versions.Version
	known           atomic.Pointer[catalog] // see catalog
	queue           *runQueue
	gate            *gate
	routes          routes
	mail            *mailbox
	look            chan struct{} // see lookAgain
	suspect         chan struct{} // see suspectInputs
	landers         map[string]*lander.Lander
	global          *runner
	letters         globalLetters
	follower        follower
	shipping        shipping

	openers      sync.WaitGroup
	openSlots    chan struct{}
	standbySlots chan struct{}

	commitWanted atomic.Bool
	pacer        *pacer
	writeShare   atomic.Int64          // bytes of write buffer of one task
	fatal        atomic.Pointer[error] // a task failed in the middle of a record: nothing may be committed
	broken       atomic.Pointer[error] // the producer did: all is to be taken back
	paused       atomic.Bool
	limits       limits
	refusals     refusals
	closed       closedLetters
	outages      outages

	// Pictures for Stats.
	shown            atomic.Pointer[[]*runner]
	standbysShown    atomic.Pointer[[]*standby]
	openLandersShown atomic.Pointer[map[string]*lander.Lander]

	// The conductor's own.
	runners   map[task.ID]*runner
	standbys  map[task.ID]*standby
	losses    int // of membership, that were dealt with
	held      bool
	troubled  bool
	failures  int // commits that failed in a row
	purging   bool
	purgedAt  time.Time
	trimmedAt time.Time
	purgedTo  map[task.TopicPartition]int64
	// purgeRefused are the topics of which it was said that their records may not be deleted.
	purgeRefused map[string]bool
	noCommits    error           // by stopCommits
	parting      map[task.ID]int // runners that are shut, and whose openers have their stores yet
	filesFor     int             // databases that there were when it was last said that they may need more files than there are
	tries        tries           // of what is parked
	next         *catalog        // waits for the end of a rebalance to become the known one; see patterns.go
}

// New makes an instance. Everything that is wrong with the options is in the error. Nothing is started, and nothing needs closing, before Run.
func New(p *topology.Plan, opts ...Option) (*Engine, error) {
	cfg := defaults()
	for _, o := range opts {
		o(&cfg)
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	if p == nil {
		return nil, errors.New("engine: the plan is nil: Build gave an error, probably, that was not looked at")
	}
	if in := p.Internal(); len(in.Subtopologies)+len(in.Globals) == 0 {
		return nil, fmt.Errorf("engine: topology %s reads no topic: there is nothing to run", in.ApplicationID)
	}
	e := &Engine{
		built: p, plan: p.Internal(), version: versions.New(p.Internal(), plansafety.Snapshot(p)), generated: p.GeneratedNames(), renderer: p.Renderer,
		cfg: cfg, log: cfg.log.With("application", p.ApplicationID()),
		states: lifecycle{listener: cfg.onState, clock: cfg.clock, since: cfg.clock()},
		queue:  newRunQueue(), gate: newGate(), mail: newMailbox(), look: make(chan struct{}, 1), suspect: make(chan struct{}, 1),
		runners: map[task.ID]*runner{}, standbys: map[task.ID]*standby{}, parting: map[task.ID]int{}, landers: map[string]*lander.Lander{},
		routes:    routes{to: map[fetch.Partition]*runner{}},
		openSlots: make(chan struct{}, cfg.openAtOnce), standbySlots: make(chan struct{}, standbysAtOnce),
		purgedTo: map[task.TopicPartition]int64{}, purgeRefused: map[string]bool{},
		tries: tries{tables: map[*lander.Lander]int{}, tasks: map[task.ID]int{}},
	}
	e.letters.e = e
	e.queries.holders = holders.NewBook(e.askHolders, cfg.clock)
	e.outages.log = e.log
	e.intake = newIntake(cfg.inputBuffer)
	e.pacer = newPacer(e.plan, cfg.maxSkew)
	e.writeShare.Store(cfg.writeBuffer)
	e.reg = newRegistry(e)
	return e, nil
}

// Run runs the instance until ctx ends; then it finishes the records in hand, commits, closes everything and leaves the group, and
// returns nil; or an error in which errors.As finds an *UncommittedError, where brokers or a table's store are away and it has to close without its last
// commit. It returns another error if it can't start or can't go on, having released everything as well. It can be called once.
func (e *Engine) Run(ctx context.Context) error {
	if e.ran.Swap(true) {
		return errors.New("engine: Run was called before: make a new Engine")
	}
	e.life, e.endLife = context.WithCancel(context.WithoutCancel(ctx))
	defer e.endLife()
	e.asking, e.endAsking = context.WithCancel(e.life)
	defer e.endAsking()
	e.sending, e.endSending = context.WithCancel(e.life)
	defer e.endSending()
	e.states.set(Starting)
	err := e.run(ctx)
	if err != nil {
		e.states.set(Failed)
		return fmt.Errorf("application %s: %w", e.plan.ApplicationID, filelimit.Explain(explainAccess(e.plan, ACLOptions{Guarantee: e.cfg.guarantee, TransactionalIDPrefix: e.cfg.txnPrefix}, err)))
	}
	e.states.set(Stopped)
	return nil
}

// lastAnswers is how long tasks may still wait, while the instance closes, for what they ask brokers, and for brokers to take a record: those that
// are there answer within that.
const lastAnswers = time.Second

// UncommittedError says that an instance has closed without its last commit: what it did since the one before is done again after the next start, or
// by the instance that takes its tasks over. Nothing is lost; under AtLeastOnce outputs of that may come twice, and rows for a table come late.
type UncommittedError struct{ Err error }

func (e *UncommittedError) Error() string {
	return "closed without the last commit, what was done since the one before is done again after the next start: " + e.Err.Error()
}

func (e *UncommittedError) Unwrap() error { return e.Err }

func (e *Engine) run(ctx context.Context) (err error) {
	var started closers
	defer func() { err = errors.Join(err, started.close()) }()
	if err := e.start(ctx, &started); err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil // asked to end while starting
		}
		return fmt.Errorf("start: %w", err)
	}
	e.states.set(Rebalancing)
	stopped := context.AfterFunc(ctx, func() { // a hanging broker must not hold up the end for ever
		e.closing.Store(true)
		e.states.set(Draining)
		time.AfterFunc(min(lastAnswers, e.cfg.closing), e.endAsking)
		time.AfterFunc(e.cfg.closing, e.endLife)
		e.watchSending()
	})
	defer stopped()

	e.retryTables()
	joined, leave := e.join()
	err = e.conduct(ctx)
	if err == nil {
		err = e.drain()
	}
	var last error // that the last commit met
	if onlyUncommitted(err) {
		e.log.Warn("the instance closes without its last commit: what was done since the one before is done again", "error", err)
		last, err = err, nil // it is closed in order all the same
	}
	e.step(stepDrained)
	leave()
	if jerr := <-joined; jerr != nil && err == nil {
		err = jerr
	}
	if doneByOthers(last) {
		last = nil
	}
	if err = errors.Join(last, e.closeTasks(err)); err == nil {
		e.log.Info("closed")
	}
	return err
}

// onlyUncommitted tells that nothing is wrong but that the last work isn't committed. What is joined with another error is not: rows may wait for the next
// start, and the last commit fail for good behind them.
func onlyUncommitted(err error) bool {
	switch e := err.(type) {
	case *UncommittedError:
		return true
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !onlyUncommitted(err) })
	case interface{ Unwrap() error }:
		return onlyUncommitted(e.Unwrap())
	}
	return false
}

// doneByOthers tells that an instance lost its tasks before its last commit, as it may in any rebalance: others do its work already.
func doneByOthers(err error) bool {
	uncommitted, ok := err.(*UncommittedError)
	return ok && offsets.LostMembership(uncommitted.Err)
}

// watchSending ends the sending where a task, while the instance closes, waits for room and brokers take no record for a while: it would wait in the middle
// of its record, and nothing could be committed before.
func (e *Engine) watchSending() {
	const looks = 4
	tick := time.NewTicker(lastAnswers / looks)
	defer tick.Stop()
	for still, before := 0, int64(-1); still < looks; {
		select {
		case <-e.life.Done():
			return
		case <-tick.C:
		}
		taken, waiting := e.producer.Waiting()
		if still++; !waiting || taken != before {
			still, before = 0, taken
		}
	}
	e.log.Warn("brokers take no records, and a task waits for room: its work is given up, since the instance closes")
	e.endSending()
}

// join starts the membership. leave ends it; joined then has its error.
func (e *Engine) join() (joined chan error, leave func()) {
	joined = make(chan error, 1)
	ctx, cancel := context.WithCancel(e.life)
	go func() {
		err := e.membership.Run(ctx)
		if err != nil {
			e.failed(err)
		}
		joined <- err
	}()
	return joined, cancel
}

// drain commits what is done and lands what is open.
func (e *Engine) drain() error {
	e.closing.Store(true)
	e.log.Info("closing: committing what is done")
	e.states.set(Draining)
	if e.held { // a generation is being made: a commit has to wait for it
		e.awaitGeneration()
	}
	var unlanded error
	if len(e.landers) > 0 {
		ctx, cancel := context.WithTimeout(e.life, e.cfg.closing/2)
		err := e.landAll(ctx, slices.Collect(maps.Values(e.landers)))
		cancel()
		if errors.As(err, new(*UncommittedError)) { // a commit came to nothing, whatever its cause
			return err
		}
		if errors.Is(err, errDeadLettersOpen) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) { // brokers or the tables' store are away
			err = &UncommittedError{fmt.Errorf("rows in hand are not landed: %w", err)}
		}
		unlanded = err
	}
	e.stopWork()
	err := e.commitNow()
	if err == nil {
		err = e.drainGlobal()
	}
	if unlanded != nil {
		return errors.Join(unlanded, err)
	}
	return err
}

// stopWork has the workers end. What they would do from here on is in no commit: it would be done again, and without transactions be there twice.
func (e *Engine) stopWork() {
	e.stopped.Store(true)
	e.queue.close()
}

// awaitGeneration handles mails until commits are possible, for a bounded time.
func (e *Engine) awaitGeneration() {
	limit := time.After(min(e.cfg.rebalance, e.cfg.closing/3))
	for e.held {
		select {
		case <-limit:
			return
		case <-e.mail.ready:
			for _, mail := range e.mail.take() {
				switch m := mail.(type) {
				case hold:
					close(m.done)
				case rebalanced:
					_, assigned := e.members.target()
					e.held = !assigned
				case opened:
					m.r.opening = false
					if e.runners[m.r.spec.id] != m.r { // given up meanwhile
						e.parted(m.r)
						if err := m.r.close(); err != nil {
							e.log.Error("a task that was given up can't be closed", "task", taskOf(m.r.spec.id), "error", err)
						}
					}
				}
			}
		}
	}
}

// closeTasks ends the workers and closes all runners, after a failure without a commit.
func (e *Engine) closeTasks(cause error) error {
	e.queue.close()
	e.gate.close() // for good: nothing is processed any more
	defer e.gate.open()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var errs []error
	if cause != nil {
		e.endLife() // nothing waits for brokers any more
	} else if e.cfg.guarantee == ExactlyOnce {
		if err := e.producer.Abort(ctx); err != nil { // what came after the last commit
			e.log.Warn("the open transaction can't be ended: the next start, or its timeout, ends it", "error", err)
		}
	}
	errs = append(errs, e.closeRunners(sortedRunners(e.runners)), e.closeStandbys())
	if cause == nil && !e.cfg.stay {
		if err := e.membership.Leave(ctx); err != nil {
			e.log.Warn("the group was not left in order: others take over after the session timeout", "error", err)
		}
	}
	e.endLife()
	e.openers.Wait()
	for _, mail := range e.mail.take() {
		switch m := mail.(type) {
		case opened: // its opener ended last
			m.r.opening = false
			errs = append(errs, m.r.close())
		case hold:
			close(m.done)
		}
	}
	for _, l := range e.landers {
		_ = e.awaitLanders(ctx, []*lander.Lander{l}) // its context has ended, so it returns at once
	}
	return errors.Join(append([]error{cause}, errs...)...)
}

// Plan is the topology that the instance runs.
func (e *Engine) Plan() *topology.Plan { return e.built }

// Instance is the UUID by which the instance knows itself again after a restart, kept in the state directory; empty before Run.
func (e *Engine) Instance() string {
	if id := e.instance.Load(); id != nil {
		return *id
	}
	return ""
}

// catalog is what is known of the brokers' topics. It is replaced when topics of a pattern appear or go.
func (e *Engine) catalog() *catalog { return e.known.Load() }

// appDir is the application's part of the state directory.
func (e *Engine) appDir() string { return filepath.Join(e.cfg.stateDir, e.plan.ApplicationID) }

func (e *Engine) taskDir(id task.ID) string { return filepath.Join(e.appDir(), taskOf(id)) }

// group is the consumer group; deadGroup remembers, in the transactions themselves, which dead letters of lake tasks and global tables are written.
func (e *Engine) group() string     { return e.plan.ApplicationID }
func (e *Engine) deadGroup() string { return deadGroupOf(e.plan.ApplicationID) }

// closers are called in reverse order.
type closers struct{ all []func() error }

func (c *closers) add(f func() error) { c.all = append(c.all, f) }

func (c *closers) close() error {
	var errs []error
	for _, f := range slices.Backward(c.all) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}
