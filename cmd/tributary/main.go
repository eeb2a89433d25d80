// Command tributary runs the demonstration and looks after topics and tables. `tributary help` lists what it can do.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/internal/plancommands"
	_ "github.com/tributary-io/tributary/lake/object/azurestore" // tables at az:// and abfss://
	_ "github.com/tributary-io/tributary/lake/object/gcsstore"   // tables at gs://
	_ "github.com/tributary-io/tributary/lake/object/s3store"    // tables at s3://
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run is the command without the process: it returns the exit code.
func run(args []string) int {
	ctx, stop := plancommands.UntilInterrupted()
	defer stop()

	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "interrupted: nothing is lost, the same command goes on from here")
		return 130
	}
	if !errors.Is(err, plancommands.ErrLoses) { // which has been said
		fmt.Fprintln(os.Stderr, "tributary:", err)
	}
	return plancommands.ExitCode(err)
}

func newRoot() *cobra.Command {
	var verbose bool
	root := &cobra.Command{
		Use:   "tributary",
		Short: "Stream processing in Go that ends in the lake",
		Long: "Tributary runs topologies of Kafka topics, state and windows, and lands their results in Delta tables.\n" +
			"Topologies are Go programs that use the library; this command runs the demonstration, and looks after topics and tables.\n\n" +
			"Begin with: tributary demo",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			level := slog.LevelWarn
			if cmd.Name() == "demo" {
				level = slog.LevelError // its input is bad here and there on purpose, and its summary counts that
			}
			if verbose {
				level = slog.LevelInfo
			}
			slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
		},
	}
	root.PersistentFlags().BoolVarP(&verbose, "verbose", "v", false, "log what the engine does, not only warnings")
	root.AddCommand(newDemo(), newDev(), newDescribe(), newExplain(), newACLs(), newDiff(), newTopics(), newLand(), newReset(), newDLQ(), newLake(), newJSONL())
	plancommands.ExplainMistakes(root)
	return root
}
