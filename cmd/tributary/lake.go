package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/lake"
)

func newLake() *cobra.Command {
	cmd := &cobra.Command{Use: "lake", Short: "Look at Delta tables and look after them"}
	cmd.AddCommand(newLakeShow(), newLakeLog(), newLakeVerify(), newLakeOptimize(), newLakeVacuum(), newLakeRewrite())
	sayWhatIsThere(cmd.Commands()...)
	return cmd
}

func newLakeShow() *cobra.Command {
	var (
		history int
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "show TABLE",
		Short: "Show a table: schema, rows, progress by input partition, last commits",
		Long:  "TABLE is a folder or the URL of a store, such as tributary-demo/lake/raw/demo__order_events.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			info, err := lake.Show(cmd.Context(), args[0], history)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(info)
			}
			printTable(cmd.OutOrStdout(), info)
			return nil
		},
	}
	cmd.Flags().IntVar(&history, "history", 5, "how many commits to list, newest first")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printTable(out io.Writer, info *lake.TableInfo) {
	rows := counted(info.Rows, "row")
	if info.Rows < 0 {
		rows = "unknown rows"
	}
	fmt.Fprintf(out, "%s  version %d\n", info.Place, info.Version)
	if info.Description != "" {
		fmt.Fprintf(out, "  %s\n", info.Description)
	}
	fmt.Fprintf(out, "  %s, %s, %s; protocol %d/%d", rows, counted(info.Files, "file"), counted(info.Bytes, "byte"), info.MinReaderVersion, info.MinWriterVersion)
	if len(info.Features) > 0 {
		fmt.Fprintf(out, " with %s", strings.Join(info.Features, ", "))
	}
	if len(info.PartitionColumns) > 0 {
		fmt.Fprintf(out, "; partitioned by %s", strings.Join(info.PartitionColumns, ", "))
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\ncolumn\ttype\ttags\tcomment")
	for _, c := range info.Columns {
		kind := c.Type
		if !c.Nullable {
			kind += " not null"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Name, kind, tags(c.Tags), c.Comment)
	}
	if len(info.Progress) > 0 {
		fmt.Fprintln(w, "\nprogress of\tpartition\tnext offset\tupdated")
		for _, p := range info.Progress {
			name := p.AppID
			if p.Topic != "" {
				name = p.Topic
			}
			next := fmt.Sprint(p.Next)
			if p.Next < 0 {
				next = "none: emptied"
			}
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", name, p.Partition, next, time.UnixMilli(p.Updated).UTC().Format(time.RFC3339))
		}
	}
	if len(info.History) > 0 {
		fmt.Fprintln(w, "\nversion\ttime\toperation\trows\tfiles added\tfiles removed\tby")
		for _, h := range info.History {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%d\t%s\n", h.Version, h.Time.UTC().Format(time.RFC3339), h.Operation, h.Rows, h.Added, h.Removed, h.Engine)
		}
	}
	w.Flush()
}

func tags(m map[string]any) string {
	var all []string
	for k, v := range m {
		all = append(all, fmt.Sprintf("%s=%v", k, v))
	}
	sort.Strings(all)
	return strings.Join(all, " ")
}
