package after

import (
	"github.com/lovoo/goka"

	"github.com/tributary-io/tributary/engine"
	loyalty "github.com/tributary-io/tributary/examples/goka"
	"github.com/tributary-io/tributary/gokacompat"
	"github.com/tributary-io/tributary/topology"
)

// Config is where an instance finds things.
type Config struct {
	Brokers  []string
	Group    goka.Group
	StateDir string
	Options  []engine.Option // more of them
}

// New makes an instance: what visits its keys, and what runs it.
func New(cfg Config) (*gokacompat.Application, *engine.Engine, error) {
	app, err := gokacompat.New(loyalty.Group(cfg.Group), gokacompat.StartAt(topology.Earliest))
	if err != nil {
		return nil, nil, err
	}
	plan, err := app.Plan()
	if err != nil {
		return nil, nil, err
	}
	e, err := engine.New(plan, append([]engine.Option{engine.Brokers(cfg.Brokers...), engine.StateDir(cfg.StateDir)}, cfg.Options...)...)
	return app, e, err
}
