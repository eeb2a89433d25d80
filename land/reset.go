package land

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
)

// Reset lets the streams of a configuration land anew: it empties their tables (engine.TruncateLake) or keeps them, and deletes what the group
// has committed of their topics. Other streams of the group stay as they are, but no instance may run meanwhile. Without execute it only says
// what it would do. It is an engine.ResetApplication of the streams alone; see there for what it refuses.
func Reset(ctx context.Context, cfg Config, tables engine.LakeReset, execute bool) (*engine.ResetReport, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	plan, err := Topology(cfg, nil)
	if err != nil {
		return nil, err
	}
	var topics []string
	for i := range cfg.Streams {
		topics = append(topics, cfg.Streams[i].Topic)
	}
	return engine.ResetApplication(ctx, plan, engine.ResetOptions{Client: append([]kgo.Opt{kgo.SeedBrokers(cfg.Brokers...)}, cfg.Client...),
		StateDir: cfg.State, Lake: tables, Inputs: topics, Execute: execute})
}
