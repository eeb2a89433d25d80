package appcmd

import (
	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/plancommands"
)

func newReset(app Application) *cobra.Command {
	var (
		c       cluster
		lake    string
		execute bool
	)
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Let the application begin anew: offsets, internal topics, local state",
		Long: "Prints what a reset would do, and with --execute does it: it deletes the internal topics, the groups with their committed offsets, and the\n" +
			"local state below --state-dir. Output topics stay. It refuses while an instance runs, and, unless --lake says what becomes of them, if\n" +
			"the application lands in tables.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := app.plan()
			if err != nil {
				return err
			}
			choice, err := plancommands.LakeReset("lake", lake)
			if err != nil {
				return err
			}
			client, err := c.client()
			if err != nil {
				return err
			}
			report, err := engine.ResetApplication(cmd.Context(), plan, engine.ResetOptions{
				Brokers: c.brokers, Client: client, StateDir: c.stateDir, Lake: choice, Execute: execute})
			return plancommands.WriteReset(cmd.OutOrStdout(), report, err, "lake")
		},
	}
	c.add(cmd.Flags(), app)
	cmd.Flags().StringVar(&lake, "lake", "refuse", "what becomes of lake tables: refuse, keep, or truncate (all of the input lands anew)")
	cmd.Flags().BoolVar(&execute, "execute", false, "do it, instead of saying what it would do")
	return cmd
}
