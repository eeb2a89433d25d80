package task

import (
	"context"
	"fmt"

	"github.com/tributary-io/tributary/processors"
)

var _ processors.Preparation = (*runtime)(nil)

func (rt *runtime) Prepare(step func(context.Context) error) {
	rt.node.preparations = append(rt.node.preparations, step)
}

// Prepare makes the serdes ready that the task writes with, such as by registering schemas. It is called after Init, may do I/O, and may
// be called again after an error.
func (t *Task) Prepare(ctx context.Context) error {
	for _, n := range t.nodes {
		for len(n.preparations) > 0 {
			if err := n.preparations[0](ctx); err != nil {
				return fmt.Errorf("task %s: node %s: %w", t.cfg.ID, n.spec.Name, err)
			}
			n.preparations = n.preparations[1:]
		}
	}
	return nil
}
