package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/land"
)

func newLandRewrite() *cobra.Command {
	var (
		f       landFlags
		execute bool
	)
	cmd := &cobra.Command{
		Use:   "rewrite [TOPIC]",
		Short: "Drop comments, tags and properties from tables that their streams don't declare any more",
		Long: "A sink that starts publishes what its stream declares, and leaves what it doesn't: that may be of others. This makes each table's metadata\n" +
			"what is declared. It prints what would go, and with --execute does it, in one commit of metadata alone. Instances may run meanwhile.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := f.resolve(cmd.Context(), args)
			if err != nil {
				return err
			}
			if len(cfg.Streams) == 0 || cfg.Lake == "" {
				return errors.New("nothing to rewrite: give a topic, --config or --declarations, and --lake")
			}
			out := cmd.OutOrStdout()
			for i := range cfg.Streams {
				place := cfg.TablePlace(&cfg.Streams[i])
				r, err := land.Rewrite(cmd.Context(), cfg, &cfg.Streams[i], execute)
				if errors.Is(err, lake.ErrNoTable) {
					fmt.Fprintf(out, "%s: there is no table yet\n", place)
					continue
				}
				if err != nil {
					return err
				}
				printRewritten(out, place, r)
			}
			if !execute {
				fmt.Fprintln(out, nothingChanged)
			}
			return nil
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&execute, "execute", false, "do it, instead of saying what it would do")
	return cmd
}
