package playback

import (
	"context"
	"log/slog"
	"time"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// LanderID names the lander's application, LanderSink its table within it. Both are part of the keys under which the table keeps progress.
const (
	LanderID   = "playback-lander"
	LanderSink = "landing"

	// drainLimit bounds how long a lander takes to commit what it holds once it is told to stop.
	drainLimit = 2 * time.Minute
)

// LandingTopology is the lander's topology: each event a row, nothing else.
func LandingTopology(s Settings, application, table string) (*topology.Plan, error) {
	b := topology.NewBuilder(application)
	b.Stream(s.Topic, serde.String, eventSerde, topology.Timestamps(eventTime)).
		MapValues(landed, topology.ValueSerde(serde.JSON[Landed]())).
		ToLake(s.table(table, s.run()), topology.Name(LanderSink))
	return b.Build()
}

// Land lands events exactly once until ctx ends; then it commits what it holds and returns. Micro-batches close by rows or age,
// whichever comes first. Several sharded landers share the partitions; an unsharded one refuses to start beside another.
func Land(ctx context.Context, s Settings, log *slog.Logger) error {
	if err := claim(ctx, s, LanderID, s.Table, log); err != nil {
		return err
	}
	return run(ctx, s, LanderID, s.Table, log)
}

func run(ctx context.Context, s Settings, application, table string, log *slog.Logger) error {
	plan, err := LandingTopology(s, application, table)
	if err != nil {
		return err
	}
	opts := []engine.Option{
		engine.Brokers(s.Brokers...), engine.StateDir(s.StateDir), engine.Logger(log), engine.ReplicationFactor(int16(s.Replication)),
		engine.Lake(engine.LakeBatches{Rows: s.MaxRows, Every: s.MaxAge}),
		engine.CloseTimeout(drainLimit),
		engine.OutOfRange(engine.Earliest), // what retention has taken is recorded in the table as a gap
		engine.ErrorHandlers(processors.Handlers{Deserialization: processors.DeadLetterOnError(DeadLetters), Processing: processors.DeadLetterOnError(DeadLetters)}),
	}
	if s.HTTP != "" {
		opts = append(opts, engine.HTTP(s.HTTP))
	}
	e, err := engine.New(plan, opts...)
	if err != nil {
		return err
	}
	return e.Run(ctx)
}
