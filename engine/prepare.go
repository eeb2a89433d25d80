package engine

import (
	"context"
	"errors"
	"time"

	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/serde"
)

// prepare initializes a task whose stores are complete, and makes its serdes ready to write. A schema registry that is away is waited for.
func (e *Engine) prepare(ctx context.Context, t *task.Task) error {
	if err := t.Init(); err != nil {
		return err
	}
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := t.Prepare(ctx)
		if err == nil || !serde.Retriable(err) {
			return err
		}
		e.log.Warn("a task waits to make its serdes ready", "task", t.ID().String(), "error", err, "again_in", pause)
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}
