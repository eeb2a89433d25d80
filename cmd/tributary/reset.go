package main

import (
	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/kafkaflags"
	"github.com/tributary-io/tributary/internal/plancommands"
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
			"the application lands in tables. For streams that `tributary land` lands, use `tributary land reset`. For an application of your own, use\n" +
			"package engine/appcmd, or call engine.ResetApplication.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := application(args[0])
			if err != nil {
				return err
			}
			keep, err := plancommands.LakeReset("lake", lake)
			if err != nil {
				return err
			}
			client, err := securityOptions(&security, brokers)
			if err != nil {
				return err
			}
			report, err := engine.ResetApplication(cmd.Context(), plan, engine.ResetOptions{
				Brokers: brokers, Client: client, StateDir: stateDir, Lake: keep, Execute: execute})
			return plancommands.WriteReset(cmd.OutOrStdout(), report, err, "lake")
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
