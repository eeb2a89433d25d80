package plancommands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ExplainMistakes makes the mistakes of a command line say how it's done right: an unknown command of a group is an error with what is alike, a wrong
// number of arguments shows the usage, and an unknown flag the one that is meant.
func ExplainMistakes(cmd *cobra.Command) {
	if cmd.HasSubCommands() && !cmd.Runnable() && cmd.HasParent() {
		cmd.RunE = chooseCommand
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return fmt.Errorf("%w\nusage: %s", err, cmd.UseLine())
			}
			return nil
		}
	}
	if !cmd.HasParent() {
		cmd.SetFlagErrorFunc(explainFlag)
	}
	for _, sub := range cmd.Commands() {
		ExplainMistakes(sub)
	}
}

// chooseCommand is what a group of commands does by itself.
func chooseCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := ""
	if alike := cmd.SuggestionsFor(args[0]); len(alike) > 0 {
		hint = "; did you mean " + strings.Join(alike, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q%s\nsee %[2]s --help", args[0], cmd.CommandPath(), hint)
}

func explainFlag(cmd *cobra.Command, err error) error {
	hint := ""
	if name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.HasPrefix(f.Name, name) || strings.HasPrefix(name, f.Name) {
				hint = "; did you mean --" + f.Name + "?"
			}
		})
	}
	return fmt.Errorf("%w%s\nsee %s --help", err, hint, cmd.CommandPath())
}
