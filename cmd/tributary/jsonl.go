package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/lake/jsonl"
	"github.com/tributary-io/tributary/lake/sink"
)

func newJSONL() *cobra.Command {
	cmd := &cobra.Command{Use: "jsonl", Short: "Look at landings in JSON Lines, and look after them",
		Long: "PLACE is what the sink was given: a folder or the URL of a store. docs/format/jsonl.md says what is there."}
	cmd.AddCommand(newJSONLShow(), newJSONLFiles(), newJSONLGap(), newJSONLVacuum())
	return cmd
}

func newJSONLShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show PLACE",
		Short: "Show how far each partition has landed, with rows, rejects and gaps",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := jsonl.Open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			parts, err := l.Partitions(cmd.Context())
			if err != nil {
				return err
			}
			if len(parts) == 0 && !asJSON {
				return nothingLanded(cmd.Context(), args[0])
			}
			all := []jsonl.Coverage{}
			for _, p := range parts {
				c, err := l.Coverage(cmd.Context(), p)
				if err != nil {
					return err
				}
				all = append(all, c)
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(all)
			}
			return printCoverage(cmd.OutOrStdout(), all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// nothingLanded says of a place that nothing has landed there in JSON Lines, and what there is.
func nothingLanded(ctx context.Context, place string) error {
	err := fmt.Errorf("%s: nothing has landed here in JSON Lines", place)
	all, findErr := findBelow(ctx, place)
	switch {
	case findErr != nil || len(all) == 0:
		return err
	case all[0] == found{"", deltaTable}:
		return fmt.Errorf("%w, but this is a Delta table: tributary lake show %s", err, place)
	}
	return fmt.Errorf("%w, %s", err, whatIsThere(place, all))
}

func printCoverage(out io.Writer, all []jsonl.Coverage) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "topic\tpartition\tnext offset\tlargest\trows\trejects\ttombstones\tfiles\tbytes\tgaps\ttopic id")
	for _, c := range all {
		var gaps []string
		for _, g := range c.Gaps {
			gaps = append(gaps, fmt.Sprintf("%d-%d (%s)", g.Start, g.End, g.Reason))
		}
		if gaps == nil {
			gaps = []string{"-"}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", c.Partition.Topic, c.Partition.Partition, c.Next, c.LargestOffset, c.Rows, c.Rejects,
			c.Tombstones, c.Files, c.Bytes, strings.Join(gaps, ", "), uuid.UUID(c.Partition.TopicID))
	}
	return w.Flush()
}

func newJSONLFiles() *cobra.Command {
	var what jsonl.Select
	cmd := &cobra.Command{
		Use:   "files PLACE",
		Short: "Print the files that manifests name, one a line: those that another program should read",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := jsonl.Open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			for f, err := range l.Files(cmd.Context(), what) {
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), strings.TrimRight(args[0], "/")+"/"+f.Name)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&what.Topic, "topic", "", "only this input topic")
	cmd.Flags().StringVar(&what.FirstDate, "from", "", "first event date, YYYY-MM-DD")
	cmd.Flags().StringVar(&what.LastDate, "to", "", "last event date, YYYY-MM-DD")
	return cmd
}

func newJSONLGap() *cobra.Command {
	var (
		topic, topicID, reason string
		partition              int32
		next                   int64
	)
	cmd := &cobra.Command{
		Use:   "gap PLACE",
		Short: "Leave offsets out on purpose, from where a partition has landed to the one before --next",
		Long:  "The sink goes on at --next. One that runs finds that out by itself. Readers see the gap with its reason.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := jsonl.Open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			parts, err := l.Partitions(cmd.Context())
			if err != nil {
				return err
			}
			p, err := findPartition(parts, topic, topicID, partition)
			if err != nil {
				return err
			}
			m, err := jsonl.RecordGap(cmd.Context(), args[0], p, next, reason)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s goes on at offset %d; %d to %d are a gap: %s\n", p, m.Next(), m.Start, m.End, reason)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&topic, "topic", "", "input topic")
	f.StringVar(&topicID, "topic-id", "", "its id, where the landing has several of that name")
	f.Int32Var(&partition, "partition", 0, "partition of the topic")
	f.Int64Var(&next, "next", 0, "offset to go on at")
	f.StringVar(&reason, "reason", "", "why, for those who read the landing")
	for _, name := range []string{"topic", "partition", "next", "reason"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

// findPartition finds the one partition that is meant.
func findPartition(parts []sink.Partition, topic, topicID string, partition int32) (found sink.Partition, err error) {
	n := 0
	for _, p := range parts {
		if p.Topic == topic && p.Partition == partition && (topicID == "" || uuid.UUID(p.TopicID).String() == topicID) {
			found = p
			n++
		}
	}
	switch n {
	case 0:
		return found, fmt.Errorf("the landing has no partition %d of topic %q: `tributary jsonl show` lists what it has", partition, topic)
	case 1:
		return found, nil
	}
	return found, fmt.Errorf("the landing has %d topics named %s: say which one with --topic-id", n, topic)
}

func newJSONLVacuum() *cobra.Command {
	var (
		age    time.Duration
		dryRun bool
	)
	cmd := &cobra.Command{
		Use:   "vacuum PLACE",
		Short: "Remove files that no manifest names: those of commits that failed",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if age < time.Hour {
				return fmt.Errorf("--older-than is %v: give an hour or more, since files of a commit that is under way are not named yet", age)
			}
			removed, err := jsonl.Vacuum(cmd.Context(), args[0], time.Now().Add(-age), dryRun)
			for _, name := range removed {
				fmt.Fprintln(cmd.OutOrStdout(), name)
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&age, "older-than", 24*time.Hour, "spare younger files")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only list them")
	return cmd
}
