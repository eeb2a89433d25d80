package main

import (
	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/internal/plancommands"
	"github.com/tributary-io/tributary/land"
)

func newLandReset() *cobra.Command {
	var (
		f       landFlags
		tables  string
		execute bool
	)
	cmd := &cobra.Command{
		Use:   "reset [TOPIC]",
		Short: "Let a stream, or all of a configuration, land anew",
		Long: "Prints what it would do, and with --execute does it: with --tables truncate it empties each stream's table in one commit, which also makes the\n" +
			"table forget how far it has come, and deletes the group's offsets of the topic. The next start lands all that the topic holds, each record\n" +
			"once. Stop all instances of the group before. Older versions of a table stay readable until `tributary lake vacuum`.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := f.resolve(cmd.Context(), args)
			if err != nil {
				return err
			}
			choice, err := plancommands.LakeReset("tables", tables)
			if err != nil {
				return err
			}
			report, err := land.Reset(cmd.Context(), cfg, choice, execute)
			return plancommands.WriteReset(cmd.OutOrStdout(), report, err, "tables")
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&f.over.State, "state", "", "folder of the instance on this machine (ODS_SINK_STATE)")
	cmd.Flags().StringVar(&tables, "tables", "refuse", "what becomes of the tables: refuse, keep, or truncate")
	cmd.Flags().BoolVar(&execute, "execute", false, "do it, instead of saying what it would do")
	return cmd
}
