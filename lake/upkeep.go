package lake

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
)

// upkeepLimit bounds one round of upkeep, so that closing a writer doesn't hang on a store that doesn't answer.
const upkeepLimit = 2 * time.Minute

// upkeep keeps a table's log short beside the commits: checksums, checkpoints, clean-up; and in tables of current state the files of deletions. Its errors are logged and change
// nothing: the next round tries again.
type upkeep struct {
	table  *delta.Table
	log    *slog.Logger
	inline bool
	sweep  *sweeper // of a table of current state; else nil
	signal chan struct{}
	done   chan struct{}
	once   sync.Once
}

// startUpkeep starts the goroutine; inline does without one, and every wake is a round.
func startUpkeep(t *delta.Table, log *slog.Logger, inline bool, sweep *sweeper) *upkeep {
	u := &upkeep{table: t, log: log, inline: inline, sweep: sweep, signal: make(chan struct{}, 1), done: make(chan struct{})}
	if inline {
		close(u.done)
	} else {
		go u.run()
	}
	return u
}

// wake asks for a round. Rounds that are asked for meanwhile fall together.
func (u *upkeep) wake() {
	if u.inline {
		u.round()
		return
	}
	select {
	case u.signal <- struct{}{}:
	default:
	}
}

func (u *upkeep) run() {
	defer close(u.done)
	for range u.signal {
		u.round()
	}
}

func (u *upkeep) round() {
	ctx, cancel := context.WithTimeout(context.Background(), upkeepLimit)
	defer cancel()
	if err := u.table.Maintain(ctx); err != nil {
		u.log.Warn("upkeep of the table's log failed; the next commit tries again", "error", err)
	}
	if u.sweep == nil {
		return
	}
	if err := u.sweep.round(ctx, u.table, u.log); err != nil {
		u.log.Warn("upkeep of the table's deletions failed; the next commit tries again", "error", err)
	}
}

// stop ends the goroutine after the rounds that were asked for.
func (u *upkeep) stop() {
	u.once.Do(func() { close(u.signal) })
	<-u.done
}
