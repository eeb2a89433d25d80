package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/kafkaflags"
	"github.com/tributary-io/tributary/topology"
)

func newReset() *cobra.Command {
	var (
		brokers  []string
		security kafkaflags.Flags
		stateDir string
		lake     string
		execute  bool
	)
	cmd := &cobra.Command{
		Use:   "reset orders|flights",
		Short: "Let an application begin anew: offsets, internal topics, local state",
		Long: "Prints what a reset would do, and with --execute does it: it deletes the internal topics, the group with its committed offsets, and the\n" +
			"local state below --state-dir. Output topics stay. It refuses while an instance runs, and, unless --lake says what becomes of them, if\n" +
			"the application lands in tables. For streams that `tributary land` lands, use `tributary land reset`. For an application of your own, call\n" +
			"engine.ResetApplication in your program.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := application(args[0])
			if err != nil {
				return err
			}
			keep, err := lakeReset(lake)
			if err != nil {
				return err
			}
			client, err := securityOptions(&security, brokers)
			if err != nil {
				return err
			}
			return reset(cmd.Context(), cmd.OutOrStdout(), plan, engine.ResetOptions{
				Client: append(client, kgo.SeedBrokers(brokers...)), StateDir: stateDir, Lake: keep, Execute: execute})
		},
	}
	cmd.Flags().StringSliceVar(&brokers, "brokers", nil, "brokers of the cluster, host:port")
	if err := cmd.MarkFlagRequired("brokers"); err != nil {
		panic(err)
	}
	security.Add(cmd.Flags())
	cmd.Flags().StringVar(&stateDir, "state-dir", "", "state directory of the instance on this machine")
	cmd.Flags().StringVar(&lake, "lake", "refuse", "what becomes of lake tables: refuse, keep, or truncate (all of the input lands anew)")
	cmd.Flags().BoolVar(&execute, "execute", false, "do it, instead of saying what it would do")
	return cmd
}

func lakeReset(name string) (engine.LakeReset, error) {
	switch name {
	case "refuse":
		return engine.RefuseLake, nil
	case "keep":
		return engine.KeepLake, nil
	case "truncate":
		return engine.TruncateLake, nil
	}
	return 0, fmt.Errorf("%s: choose refuse, keep or truncate", name)
}

func reset(ctx context.Context, out io.Writer, plan *topology.Plan, opts engine.ResetOptions) error {
	report, err := engine.ResetApplication(ctx, plan, opts)
	return printReset(out, report, err)
}

// printReset says what a reset does, or has done.
func printReset(out io.Writer, report *engine.ResetReport, err error) error {
	if report != nil {
		fmt.Fprint(out, strings.TrimRight(report.String(), "\n")+"\n")
	}
	if err == nil && !report.Done {
		fmt.Fprintln(out, "Nothing was changed: give --execute to do it.")
	}
	return err
}
