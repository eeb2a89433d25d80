package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tributary-io/tributary/internal/task"
)

// CheckpointStore is an object store where checkpoints can be kept. The stores of package lake/object are such. Put is atomic, durable and
// replaces what is there; a Get of what isn't there is an error, a Delete of it is none. It is used by several goroutines.
type CheckpointStore interface {
	String() string
	Put(ctx context.Context, name string, data []byte) error
	Get(ctx context.Context, name string) ([]byte, error)
	Delete(ctx context.Context, name string) error
}

// KeepCheckpoints has each instance put checkpoints of the stateful tasks that it runs into an object store, one after the other, every so
// often, if they have changed; only tables that aren't there yet are sent. An instance that has to restore much of a task takes that one over,
// where no other instance has one (see ShipCheckpoints, which need not be on), and reads the rest from the changelogs: also when all other instances
// and their disks are gone.
func KeepCheckpoints(store CheckpointStore, every time.Duration) Option {
	return func(c *config) { c.vault, c.keep = store, every }
}

const uploadDir = "upload"

// keepCheckpoints puts checkpoints into the vault until ctx ends.
func (e *Engine) keepCheckpoints(ctx context.Context) {
	kept := map[task.ID]keptState{}
	defer os.RemoveAll(filepath.Join(e.appDir(), uploadDir))
	for sleep(ctx, e.cfg.keep) == nil {
		running := map[task.ID]bool{}
		for _, r := range e.runnersShown() {
			id := r.spec.id
			if !e.catalog().stateful[int32(id.Subtopology)] || !r.runs.Load() || !e.queries.tasks.Has(id) {
				continue
			}
			running[id] = true
			now := keptState{r, r.changelogSize.Load()}
			if kept[id] == now {
				continue
			}
			if kept[id].r != r {
				e.shipping.vault.Forget(id.String())
			}
			if err := e.keepCheckpoint(ctx, id); err != nil {
				if ctx.Err() != nil {
					return
				}
				e.shipping.failed.Add(1)
				e.log.Warn("a checkpoint can't be kept at the moment", "task", id.String(), "error", err)
				continue
			}
			kept[id] = now
		}
		for id := range kept {
			if !running[id] {
				delete(kept, id)
			}
		}
	}
}

// keptState tells whether a task has changed since it was kept: another runner, or more in its changelogs.
type keptState struct {
	r       *runner
	records int64
}

func (e *Engine) keepCheckpoint(ctx context.Context, id task.ID) error {
	began := e.cfg.clock()
	dir := filepath.Join(e.appDir(), uploadDir)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("make room for a checkpoint: %w", err)
	}
	defer os.RemoveAll(dir)
	m, err := e.takeCheckpoint(id.String(), dir)
	if err == nil {
		err = m.Describe(dir)
	}
	if err != nil {
		return err
	}
	sent, err := e.shipping.vault.Put(ctx, m, dir)
	if err != nil {
		return err
	}
	e.shipping.keptCount.Add(1)
	e.log.Info("checkpoint kept", "task", id.String(), "in", e.shipping.vault.String(), "bytes", m.Bytes(), "sent", sent, "took", e.cfg.clock().Sub(began).Round(time.Millisecond))
	return nil
}
