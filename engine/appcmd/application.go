package appcmd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/plancommands"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// Application is what the commands know of an application.
type Application struct {
	// Build makes its topology, as it returns from Builder.Build. Commands other than run call it, too, without a cluster at hand: it should
	// do no more than build.
	Build func() (*topology.Plan, error)
	// Brokers and StateDir are what the flags of these names have where they aren't given: localhost:9092 and "state" if empty.
	Brokers  []string
	StateDir string
	// Guarantee and TransactionalIDPrefix are what the options Processing and TransactionalIDPrefix say. They are fields because acls needs them, too.
	Guarantee             engine.Guarantee
	TransactionalIDPrefix string
	// ErrorHandlers are what the option of this name says; acls knows by them where dead letters go.
	ErrorHandlers processors.Handlers
	// Options are all others with which it runs: standbys, queries, batches of the lake.
	Options []engine.Option
	// Writes names topics that it writes to beside the topology's sinks and the dead letters of ErrorHandlers: those that records choose.
	// acls needs them.
	Writes []string
	// Short is a line of help.
	Short string
}

// ErrLoses is the error of a diff that found something durable to be lost. The report has been printed.
var ErrLoses = plancommands.ErrLoses

// ExitCode is what a program should exit with after an error of one of the commands: 0 for none, 1, or 2 where diff could not compare.
func ExitCode(err error) int { return plancommands.ExitCode(err) }

// Main runs the command line of a program that is nothing but the application, and ends the process: with 0, with 1 after an error, or
// with 2 where diff could not compare. The first interrupt or SIGTERM closes in good order; one that comes more than a second later ends the process at once.
func Main(app Application) {
	os.Exit(main(app, os.Args[1:]))
}

func main(app Application, args []string) int {
	ctx, stop := plancommands.UntilInterrupted()
	defer stop()
	root := newRoot(app)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, ErrLoses) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", root.Name(), err)
	}
	return ExitCode(err)
}

func program() string { return filepath.Base(os.Args[0]) }

func newRoot(app Application) *cobra.Command {
	verbose := false
	root := &cobra.Command{
		Use:           program(),
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
	plancommands.ExplainMistakes(root)
	return root
}

// Commands are run, describe, explain, diff, acls and reset, for a program with commands of its own. Logs go to slog.Default, unless the
// application's options say otherwise. ExitCode tells what to exit with after their errors; ErrLoses has been said already.
func Commands(app Application) []*cobra.Command {
	s := plancommands.Subject{Args: cobra.NoArgs, Plan: func([]string) (*topology.Plan, error) { return app.plan() }}
	return []*cobra.Command{
		newRun(app),
		plancommands.NewDescribe(s),
		plancommands.NewExplain(s, func([]string) (*plansafety.Plan, error) { return app.snapshot() }),
		plancommands.NewDiff("OLD.json", 1, "OLD.json is what explain --json has printed of the version that runs.", app.versions),
		plancommands.NewACLs(s, program()+" acls", func([]string) engine.ACLOptions {
			return engine.ACLOptions{Writes: slices.Concat(app.Writes, app.ErrorHandlers.Topics()), Guarantee: app.Guarantee, TransactionalIDPrefix: app.TransactionalIDPrefix}
		}),
		newReset(app),
	}
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

// versions are a saved plan and that of this program.
func (app Application) versions(args []string) (before, after *plansafety.Plan, err error) {
	if before, err = plansafety.ReadFile(args[0]); err != nil {
		return nil, nil, err
	}
	after, err = app.snapshot()
	return before, after, err
}
