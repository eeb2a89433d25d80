package lake

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
)

// Application ids of the claims that instances take before they do upkeep of a table beside their commits. See claim.
const (
	claimPrefix   = "tributary/upkeep/"
	optimizeClaim = claimPrefix + "optimize"
	vacuumClaim   = claimPrefix + "vacuum"
)

// minChoreInterval is how often upkeep may run at the most: each run costs at least one version of the table.
const minChoreInterval = time.Minute

// AutoOptimize makes the sink's instances compact the table while they land rows: one of them at a time, so often (at least each minute; an hour
// is a good start). opts are as for Optimize; without Parallel one file is written at a time. Commits go on meanwhile, on other cores if there
// are any; of a process's tables one is compacted or vacuumed at a time.
func AutoOptimize(every time.Duration, opts OptimizeOptions) Option {
	return func(o *options) {
		o.addChore("AutoOptimize", optimizeClaim, every, func(ctx context.Context, t *delta.Table, c *claim, log *slog.Logger) (string, error) {
			opts := opts
			opts.Logger, opts.Now, opts.Parallel = log, c.now, max(opts.Parallel, 1)
			z := &optimizer{table: t, opts: opts.withDefaults(), claim: c}
			r, err := z.run(ctx)
			return fmt.Sprintf("compacted %d files to %d", r.FilesRemoved, r.FilesAdded), err
		})
	}
}

// AutoVacuum makes the sink's instances vacuum the table while they land rows: one of them at a time, so often (at least each minute; a day is
// a good start). opts are as for Vacuum.
func AutoVacuum(every time.Duration, opts VacuumOptions) Option {
	return func(o *options) {
		o.addChore("AutoVacuum", vacuumClaim, every, func(ctx context.Context, t *delta.Table, _ *claim, _ *slog.Logger) (string, error) {
			r, err := t.Vacuum(ctx, opts)
			return fmt.Sprintf("vacuumed %d files of %d bytes", r.Removed+r.Orphans, r.Bytes), err
		})
	}
}

func (o *options) addChore(name, appID string, every time.Duration, run choreFunc) {
	if every < minChoreInterval {
		o.errs = append(o.errs, fmt.Errorf("%s: each %v is too often: at least each %v", name, every, minChoreInterval))
	}
	o.chores = append(o.chores, chore{appID, every, run})
}

// choreFunc does a piece of upkeep, and says what it did.
type choreFunc func(ctx context.Context, t *delta.Table, c *claim, log *slog.Logger) (did string, err error)

// chore is a piece of upkeep that one instance does at a time.
type chore struct {
	appID string
	every time.Duration
	run   choreFunc
}

// chores runs them in a goroutine of its own, when commits have woken it: a table to which nobody commits needs none. Errors are logged; the
// chore is due again when its claim has run out.
type chores struct {
	all    []chore
	table  *delta.Table
	log    *slog.Logger
	now    func() time.Time
	inline bool

	ctx    context.Context
	cancel context.CancelFunc
	signal chan struct{}
	done   sync.WaitGroup
}

func startChores(all []chore, t *delta.Table, log *slog.Logger, now func() time.Time, inline bool) *chores {
	c := &chores{all: all, table: t, log: log, now: now, inline: inline, signal: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if len(all) > 0 && !inline {
		c.done.Go(c.loop)
	}
	return c
}

// wake is called after each commit. It costs nothing where nothing is due.
func (c *chores) wake() {
	switch {
	case len(c.all) == 0:
	case c.inline:
		c.round()
	default:
		select {
		case c.signal <- struct{}{}:
		default:
		}
	}
}

func (c *chores) loop() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.signal:
			c.round()
		}
	}
}

func (c *chores) round() {
	for i := range c.all {
		ch := &c.all[i]
		if until, ok := c.table.Head().Txn(ch.appID); ok && until > c.now().UnixMilli() {
			continue
		}
		if err := c.do(ch); err != nil && c.ctx.Err() == nil {
			c.log.Warn("upkeep of the table failed; it is tried again when it is due", "claim", ch.appID, "error", err)
		}
	}
}

// turn lets a process do one piece of upkeep at a time: each holds row groups in memory, and a process that lands hundreds of tables
// would find all of them due at once.
var turn = make(chan struct{}, 1)

func (c *chores) do(ch *chore) error {
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
	mine := &claim{table: c.table, appID: ch.appID, every: ch.every, now: c.now}
	if ok, err := mine.take(c.ctx); err != nil || !ok {
		return err
	}
	did, err := ch.run(c.ctx, c.table, mine, c.log)
	if err == nil {
		c.log.Info("upkeep of the table", "did", did)
	}
	return err
}

// stop ends what is under way: what has been committed stays.
func (c *chores) stop() {
	c.cancel()
	c.done.Wait()
}
