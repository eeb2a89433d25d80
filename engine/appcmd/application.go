package appcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// Application is what the commands know of an application.
type Application struct {
	// Build makes its topology, as it returns from Builder.Build. Commands other than run call it, too, without a cluster at hand: it should
	// do no more than build.
	Build func() (*topology.Plan, error)
	// Options are those with which it runs: error handlers, guarantees, standbys. What flags say goes before them.
	Options []engine.Option
	// Writes names topics that it writes to beside the topology's sinks: dead letters, and those that records choose. The rights need them.
	Writes []string
	// TransactionalIDPrefix and Guarantee are what the options of these names say. The rights need them.
	TransactionalIDPrefix string
	Guarantee             engine.Guarantee
	// Short is a line of help.
	Short string
}

// errLoses is the error of a diff that loses something: it has been said, and the exit code is 1.
var errLoses = errors.New("something durable is lost")

// Main runs the command line of a program that is nothing but the application, and ends the process: with 0, with 1 after an error, or
// with 2 where `diff` could not compare. The first interrupt or SIGTERM closes in good order, the second one ends the process at once.
func Main(app Application) {
	os.Exit(main(app, os.Args[1:]))
}

func main(app Application, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root := newRoot(app)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errLoses):
		return 1
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", root.Name(), err)
	if uncompared := new(compareError); errors.As(err, &uncompared) {
		return 2
	}
	return 1
}

func newRoot(app Application) *cobra.Command {
	verbose := false
	root := &cobra.Command{
		Use:           filepath.Base(os.Args[0]),
		Short:         app.Short,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			level := slog.LevelWarn
			if verbose || cmd.Name() == "run" {
				level = slog.LevelInfo
			}
			slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
		},
	}
	root.PersistentFlags().BoolVarP(&verbose, "verbose", "v", false, "log more than warnings")
	root.AddCommand(Commands(app)...)
	return root
}

// Commands are run, describe, explain, diff, acls and reset, for a program with commands of its own. Logs go to slog.Default, unless the
// application's options say otherwise. The error of diff says that something is lost, if nothing else was wrong.
func Commands(app Application) []*cobra.Command {
	return []*cobra.Command{newRun(app), newDescribe(app), newExplain(app), newDiff(app), newACLs(app), newReset(app)}
}

// plan builds the topology.
func (app Application) plan() (*topology.Plan, error) {
	plan, err := app.Build()
	if err != nil {
		return nil, err
	}
	if plan == nil {
		return nil, errors.New("the application's Build returned neither a plan nor an error")
	}
	return plan, nil
}

func (app Application) snapshot() (*plansafety.Plan, error) {
	plan, err := app.plan()
	if err != nil {
		return nil, err
	}
	return plansafety.Snapshot(plan), nil
}
