package appcmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/planreport"
)

func newACLs(app Application) *cobra.Command {
	var principal, server, config string
	cmd := &cobra.Command{
		Use:     "acls",
		Short:   "Print the commands that give the application's user the rights it needs",
		Long:    "Prints kafka-acls.sh commands for the least rights with which the application runs.",
		Example: "  " + program() + " acls --principal User:orders --bootstrap-server localhost:9092 --command-config admin.properties | sh",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := app.plan()
			if err != nil {
				return err
			}
			reach := " --bootstrap-server " + server
			if config != "" {
				reach += " --command-config " + config
			}
			all := engine.RequiredACLs(plan, engine.ACLOptions{Writes: app.Writes, Guarantee: app.Guarantee, TransactionalIDPrefix: app.TransactionalIDPrefix})
			planreport.ACLs(cmd.OutOrStdout(), all, principal, reach)
			return nil
		},
	}
	cmd.Flags().StringVar(&principal, "principal", "User:tributary", "who gets the rights, as kafka-acls.sh wants it")
	cmd.Flags().StringVar(&server, "bootstrap-server", "localhost:9092", "broker for the printed commands")
	cmd.Flags().StringVar(&config, "command-config", "", "file with the administrator's client settings, for the printed commands")
	return cmd
}

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
			choice, ok := planreport.LakeResets[lake]
			if !ok {
				return fmt.Errorf("--lake %s: choose refuse, keep or truncate", lake)
			}
			client, err := c.client()
			if err != nil {
				return err
			}
			report, err := engine.ResetApplication(cmd.Context(), plan, engine.ResetOptions{
				Brokers: c.brokers, Client: client, StateDir: c.stateDir, Lake: choice, Execute: execute})
			return planreport.Reset(cmd.OutOrStdout(), report, err, "lake")
		},
	}
	c.add(cmd.Flags(), app)
	cmd.Flags().StringVar(&lake, "lake", "refuse", "what becomes of lake tables: refuse, keep, or truncate (all of the input lands anew)")
	cmd.Flags().BoolVar(&execute, "execute", false, "do it, instead of saying what it would do")
	return cmd
}
