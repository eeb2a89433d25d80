package chaos

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/child"
)

// roleName is what an instance is called in child.Main.
const roleName = "chaos-instance"

// Instance is the role of an instance, for child.Main.
func Instance() map[string]child.Role { return map[string]child.Role{roleName: child.As(serve)} }

// instanceArgs are what an instance is told.
type instanceArgs struct {
	Brokers     []string
	State, Lake string
	HTTP        string
	Guarantee   engine.Guarantee
	Setup       Setup
	Debug       bool
}

// sessionTimeout of the instances; to be stopped for longer means to be thrown out.
const sessionTimeout = 4 * time.Second

func serve(ctx context.Context, args instanceArgs) error {
	p, err := plan(args.Lake)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if args.Debug {
		level = slog.LevelDebug
	}
	opts := append(args.Setup.options(),
		engine.Brokers(args.Brokers...), engine.StateDir(args.State), engine.Processing(args.Guarantee),
		engine.SessionTimeout(sessionTimeout), engine.RebalanceTimeout(8*time.Second), engine.TransactionTimeout(6*time.Second),
		engine.PurgeInterval(5*time.Second), engine.CleanStateAfter(20*time.Second),
		engine.Lake(engine.LakeBatches{Every: 2 * time.Second}),
		engine.HTTP(args.HTTP), engine.Queries(),
		engine.Logger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))))
	e, err := engine.New(p, opts...)
	if err != nil {
		return err
	}
	err = e.Run(ctx)
	if errors.As(err, new(*engine.UncommittedError)) { // it was stopped while brokers were away
		return nil
	}
	return err
}
