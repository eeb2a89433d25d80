package appcmd

import (
	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/internal/planreport"
	"github.com/tributary-io/tributary/topology/plansafety"
)

func newDescribe(app Application) *cobra.Command {
	return &cobra.Command{
		Use:   "describe",
		Short: "Print the topology: sub-topologies, stores, topics",
		Long: "Prints the topology as Kafka Streams' Topology.describe() does, then the topics that it reads and writes and those that the engine\n" +
			"creates for it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := app.plan()
			if err == nil {
				planreport.Describe(cmd.OutOrStdout(), plan)
			}
			return err
		},
	}
}

func newExplain(app Application) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Tell what is durable in the topology, or save its plan for diff",
		Long: "Lists the stores, internal topics and lake sinks with where their contents come from and what their names are: given, or generated, so\n" +
			"that they shift when an operator is inserted before them. With --json it prints the plan: save it with each release.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := app.snapshot()
			if err != nil {
				return err
			}
			if asJSON {
				return p.Write(cmd.OutOrStdout())
			}
			planreport.Explain(cmd.OutOrStdout(), p)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the plan as JSON")
	return cmd
}

// compareError is an error for which nothing could be compared.
type compareError struct{ cause error }

func (e *compareError) Error() string { return e.cause.Error() }
func (e *compareError) Unwrap() error { return e.cause }

func newDiff(app Application) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "diff OLD.json",
		Short: "Compare with a saved plan: what becomes of the state?",
		Long: "OLD.json is what explain --json has printed of the version that runs. For every store, internal topic and lake sink it says whether it is\n" +
			"kept, renamed, orphaned, re-partitioned, changed or new, and what to do.\n\n" +
			"Exit code: 0 if nothing durable is lost, 1 if something is, 2 for errors.",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return &compareError{err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			before, err := plansafety.ReadFile(args[0])
			if err != nil {
				return &compareError{err}
			}
			after, err := app.snapshot()
			if err != nil {
				return &compareError{err}
			}
			loses, err := planreport.Diff(cmd.OutOrStdout(), before, after, asJSON)
			switch {
			case err != nil:
				return &compareError{err}
			case loses:
				return ErrLoses
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &compareError{err} })
	return cmd
}
