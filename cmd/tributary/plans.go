package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/internal/planreport"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// exitCode is an error that asks for an exit code of its own. Without a cause nothing more is printed.
type exitCode struct {
	code  int
	cause error
}

func (e *exitCode) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.cause.Error()
}

func (e *exitCode) Unwrap() error { return e.cause }

// savedPlan is that of an application by name, or of a file.
func savedPlan(arg string) (*plansafety.Plan, error) {
	if _, ok := applications[arg]; ok {
		p, err := application(arg)
		if err != nil {
			return nil, err
		}
		return plansafety.Snapshot(p), nil
	}
	p, err := plansafety.ReadFile(arg)
	if err != nil {
		return nil, fmt.Errorf("%s is no application (%s) and can't be read as a saved plan: %w", arg, strings.Join(applicationNames(), ", "), err)
	}
	return p, nil
}

func newExplain() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain [orders|flights|PLAN.json]",
		Short: "Tell what is durable in a topology, or save its plan for tributary diff",
		Long: "Lists the stores, internal topics and lake sinks of a topology with where their contents come from and what their names are: given, or\n" +
			"generated, so that they shift when an operator is inserted before them. With --json it prints the plan to be saved. In your own program:\n" +
			"plansafety.Snapshot(plan).Write(file).",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "orders"
			if len(args) == 1 {
				name = args[0]
			}
			p, err := savedPlan(name)
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

func newDiff() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Compare two versions of a topology: what becomes of its state?",
		Long: "OLD and NEW are files that tributary explain --json has printed, or names of applications. For every store, internal topic and lake sink it\n" +
			"says whether it is kept, renamed, orphaned, re-partitioned, changed or new, and what to do.\n\n" +
			"Exit code: 0 if nothing durable is lost, 1 if something is, 2 for errors.",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(2)(cmd, args); err != nil {
				return &exitCode{2, err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			before, err := savedPlan(args[0])
			after, err2 := savedPlan(args[1])
			if err := errors.Join(err, err2); err != nil {
				return &exitCode{2, err}
			}
			loses, err := planreport.Diff(cmd.OutOrStdout(), before, after, asJSON)
			switch {
			case err != nil:
				return &exitCode{2, err}
			case loses:
				return &exitCode{1, nil}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitCode{2, err} })
	return cmd
}
