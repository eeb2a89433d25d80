package plancommands

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// Subject is what the commands are about.
type Subject struct {
	// Use stands behind a command's name in its usage, with a space in front: which arguments choose a plan. Args checks them.
	Use  string
	Args cobra.PositionalArgs
	Plan func(args []string) (*topology.Plan, error)
	// Advice ends the help of a command: how to do the same elsewhere. Empty for none.
	Advice string
}

func (s Subject) long(text string) string {
	if s.Advice == "" {
		return text
	}
	return text + "\n\n" + s.Advice
}

// NewDescribe makes the command describe.
func NewDescribe(s Subject) *cobra.Command {
	return &cobra.Command{
		Use:   "describe" + s.Use,
		Short: "Print the topology: sub-topologies, stores, topics",
		Long: s.long("Prints the topology as Kafka Streams' Topology.describe() does, then the topics that it reads and writes and those that the engine\n" +
			"creates for it."),
		Args: s.Args,
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := s.Plan(args)
			if err == nil {
				describe(cmd.OutOrStdout(), plan)
			}
			return err
		},
	}
}

// NewExplain makes the command explain. saved gives the plan, which may be one that was saved.
func NewExplain(s Subject, saved func(args []string) (*plansafety.Plan, error)) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "explain" + s.Use,
		Short: "Tell what is durable in the topology, or save its plan for diff",
		Long: s.long("Lists the stores, internal topics and lake sinks with where their contents come from and what their names are: given, or generated, so\n" +
			"that they shift when an operator is inserted before them. With --json it prints the plan: save it with each release."),
		Args: s.Args,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := saved(args)
			if err != nil {
				return err
			}
			if asJSON {
				return p.Write(cmd.OutOrStdout())
			}
			explain(cmd.OutOrStdout(), p)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the plan as JSON")
	return cmd
}

// ErrLoses is the error of a diff that found something durable to be lost. The report has been printed.
var ErrLoses = errors.New("something durable is lost")

// CompareError is an error for which diff could not compare.
type CompareError struct{ cause error }

func (e *CompareError) Error() string { return e.cause.Error() }
func (e *CompareError) Unwrap() error { return e.cause }

// ExitCode is what a program should exit with after an error of a command: 0 for none, 1, or 2 where diff could not compare.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if uncompared := new(CompareError); errors.As(err, &uncompared) {
		return 2
	}
	return 1
}

// NewDiff makes the command diff. use names its n arguments and about says what they are; plans gives the versions to compare.
func NewDiff(use string, n int, about string, plans func(args []string) (before, after *plansafety.Plan, err error)) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "diff " + use,
		Short: "Compare two versions of the topology: what becomes of its state?",
		Long: about + " For every store, internal topic and lake sink it says whether it\n" +
			"is kept, renamed, orphaned, re-partitioned, changed or new, and what to do.\n\n" +
			"Exit code: 0 if nothing durable is lost, 1 if something is, 2 for errors.",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(n)(cmd, args); err != nil {
				return &CompareError{err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			before, after, err := plans(args)
			if err != nil {
				return &CompareError{err}
			}
			loses, err := diff(cmd.OutOrStdout(), before, after, asJSON)
			switch {
			case err != nil:
				return &CompareError{err}
			case loses:
				return ErrLoses
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &CompareError{err} })
	return cmd
}

// NewACLs makes the command acls. program stands in its example, and options says what the rights depend on.
func NewACLs(s Subject, program string, options func(args []string) engine.ACLOptions) *cobra.Command {
	var principal, server, config string
	cmd := &cobra.Command{
		Use:     "acls" + s.Use,
		Short:   "Print the commands that give the application's user the rights it needs",
		Long:    s.long("Prints kafka-acls.sh commands for the least rights with which the application runs."),
		Example: "  " + program + " --principal User:orders --bootstrap-server localhost:9092 --command-config admin.properties | sh",
		Args:    s.Args,
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := s.Plan(args)
			if err != nil {
				return err
			}
			reach := " --bootstrap-server " + server
			if config != "" {
				reach += " --command-config " + config
			}
			for _, a := range engine.RequiredACLs(plan, options(args)) {
				fmt.Fprintf(cmd.OutOrStdout(), "# %s\n%s%s\n", a.Why, a.Command(principal), reach)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&principal, "principal", "User:tributary", "who gets the rights, as kafka-acls.sh wants it")
	cmd.Flags().StringVar(&server, "bootstrap-server", "localhost:9092", "broker for the printed commands")
	cmd.Flags().StringVar(&config, "command-config", "", "file with the administrator's client settings, for the printed commands")
	return cmd
}
