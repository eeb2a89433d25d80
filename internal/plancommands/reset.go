package plancommands

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tributary-io/tributary/engine"
)

// lakeResets are what a reset may do with lake tables, by the names that commands have for it.
var lakeResets = map[string]engine.LakeReset{"refuse": engine.RefuseLake, "keep": engine.KeepLake, "truncate": engine.TruncateLake}

// LakeReset reads the value of a flag.
func LakeReset(flag, name string) (engine.LakeReset, error) {
	choice, ok := lakeResets[name]
	if !ok {
		return 0, fmt.Errorf("--%s %s: choose refuse, keep or truncate", flag, name)
	}
	return choice, nil
}

// WriteReset writes what a reset does, or has done, and passes its error on; where that asks what becomes of tables, with the flag that says it.
func WriteReset(w io.Writer, report *engine.ResetReport, err error, tablesFlag string) error {
	if refused := new(engine.ResetRefusedError); errors.As(err, &refused) && slices.ContainsFunc(refused.Reasons, func(r string) bool { return strings.HasPrefix(r, "table ") }) {
		err = fmt.Errorf("%w\n--%s keep or --%[2]s truncate says what becomes of tables", err, tablesFlag)
	}
	if report != nil {
		fmt.Fprint(w, strings.TrimRight(report.String(), "\n")+"\n")
	}
	if err == nil && !report.Done {
		fmt.Fprintln(w, "Nothing was changed: give --execute to do it.")
	}
	return err
}
