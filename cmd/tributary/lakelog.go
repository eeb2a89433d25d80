package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/lake"
)

func newLakeLog() *cobra.Command {
	var (
		limit           int
		columns, asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "log TABLE",
		Short: "Show a table's history: what each commit landed, from which offsets, by which run",
		Long: "Lists the commits that the table's log still holds, newest first. With --columns each has a profile of its columns, by the\n" +
			"statistics of its files: nulls, bounds, and about how many different values.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			n := 0
			for e, err := range lake.Log(cmd.Context(), args[0]) {
				if err != nil {
					return err
				}
				if asJSON {
					err = json.NewEncoder(out).Encode(e)
				} else {
					err = printLogEntry(out, &e, columns)
				}
				if err != nil {
					return err
				}
				if n++; n == limit {
					break
				}
			}
			return nil
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "how many commits to list; 0 lists all")
	cmd.Flags().BoolVar(&columns, "columns", false, "print the profile of each column")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one commit a line, always with the columns")
	return cmd
}

func printLogEntry(out io.Writer, e *lake.LogEntry, columns bool) error {
	fmt.Fprintf(out, "version %d  %s  %s", e.Version, e.Time.UTC().Format(time.RFC3339), cmp.Or(e.Operation, "(nothing said)"))
	switch e.Rows {
	case "":
	case "1":
		fmt.Fprint(out, "  1 row")
	default:
		fmt.Fprintf(out, "  %s rows", e.Rows)
	}
	fmt.Fprintf(out, "  +%s (%s)", counted(e.Added, "file"), counted(e.Bytes, "byte"))
	if e.Removed > 0 {
		fmt.Fprintf(out, " -%s", counted(e.Removed, "file"))
	}
	if e.Metadata {
		fmt.Fprint(out, "  metadata")
	}
	fmt.Fprintln(out)
	if by := strings.Join(nonEmpty(e.Run, e.Application, e.Sink, e.Engine), ", "); by != "" {
		fmt.Fprintf(out, "  by       %s\n", by)
	}
	if e.SourceOffsets != "" {
		fmt.Fprintf(out, "  offsets  %s\n", e.SourceOffsets)
	}
	if !e.Oldest.IsZero() {
		fmt.Fprintf(out, "  from     %s to %s\n", e.Oldest.Format(time.RFC3339Nano), e.Newest.Format(time.RFC3339Nano))
	}
	if !columns || len(e.Profile) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "  column\tnulls\tdistinct\tmin\tmax")
	for _, p := range e.Profile {
		known := func(n int64, unknown int64) string {
			if n == unknown {
				return "?"
			}
			return fmt.Sprint(n)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", p.Column, known(p.Nulls, -1), known(p.Distinct, 0), string(p.Min), string(p.Max))
	}
	return w.Flush()
}

func nonEmpty(all ...string) (out []string) {
	for _, s := range all {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}
