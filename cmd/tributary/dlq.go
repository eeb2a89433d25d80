package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-io/tributary/internal/dlq"
)

// dlqFlags choose letters.
type dlqFlags struct {
	cluster      clusterFlags
	filter       dlq.Filter
	since, until string
}

func (f *dlqFlags) add(cmd *cobra.Command) {
	f.cluster.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.filter.Reason, "reason", "", "a part of the reason, in any case")
	flags.StringVar(&f.filter.Producer, "producer", "", "the record's producer, by the header that --producer-header names")
	flags.StringVar(&f.filter.Source, "topic", "", "the topic that the record comes from")
	flags.StringVar(&f.since, "since", "", "from this time on: a time such as 2026-06-01T12:00:00Z, a day, or an age such as 24h")
	flags.StringVar(&f.until, "until", "", "before this time")
	flags.StringVar(&f.filter.ProducerHeader, "producer-header", dlq.DefaultProducerHeader, "header that names a record's producer")
}

// finish reads the times.
func (f *dlqFlags) finish(now time.Time) (err error) {
	if f.filter.Since, err = parseTime(f.since, now); err == nil {
		f.filter.Until, err = parseTime(f.until, now)
	}
	return err
}

// parseTime reads a time, a day, or an age; an empty text is no time.
func parseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if age, err := time.ParseDuration(text); err == nil {
		return now.Add(-age), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: give 2026-06-01T12:00:00Z, 2026-06-01, or an age such as 24h", text)
}

func newDLQ() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "Look after dead letters: list, group, replay",
		Long: "Dead letters are records that could not be read, processed or landed. They lie in a topic of their own, with the reason in their\n" +
			"headers. See docs/operations/dead-letters.md.",
	}
	cmd.AddCommand(newDLQList(), newDLQGroup(), newDLQReplay())
	return cmd
}

// letters runs a function on each chosen letter of a topic, until that says stop.
func (f *dlqFlags) letters(ctx context.Context, topic string, each func(*dlq.Letter) (more bool, err error)) (err error) {
	if err := f.finish(time.Now()); err != nil {
		return err
	}
	client, end, err := f.cluster.connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	for l, err := range dlq.Read(ctx, client, topic, f.filter) {
		if err != nil {
			return err
		}
		if more, err := each(l); err != nil || !more {
			return err
		}
	}
	return nil
}

func newDLQList() *cobra.Command {
	var (
		f      dlqFlags
		limit  int
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "list DEAD_LETTER_TOPIC",
		Short:   "List dead letters: when, whence, why",
		Example: "  tributary dlq list ods.demo.order_events.dead_letters --brokers localhost:9092 --since 24h --reason decimal",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			n := 0
			w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
			if !asJSON {
				fmt.Fprintln(w, "letter\ttime\tfrom\tproducer\treason")
			}
			err := f.letters(cmd.Context(), args[0], func(l *dlq.Letter) (bool, error) {
				n++
				if asJSON {
					return n != limit, json.NewEncoder(out).Encode(l)
				}
				fmt.Fprintf(w, "%d@%d\t%s\t%s\t%s\t%s\n", l.Partition, l.Offset, l.Time.Format(time.RFC3339), whence(l), cmp.Or(l.Producer, "?"), oneLine(l.Message))
				return n != limit, nil
			})
			if err != nil || asJSON {
				return err
			}
			return w.Flush()
		},
	}
	f.add(cmd)
	cmd.Flags().IntVarP(&limit, "limit", "n", 100, "how many to list; 0 lists all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one letter a line")
	return cmd
}

// whence is where a letter comes from, as far as its headers say so.
func whence(l *dlq.Letter) string {
	if l.Source == "" {
		return "?"
	}
	return fmt.Sprintf("%s-%d@%d", l.Source, l.SourcePartition, l.SourceOffset)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func newDLQGroup() *cobra.Command {
	var (
		f      dlqFlags
		by     []string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "group DEAD_LETTER_TOPIC",
		Short: "Count dead letters by reason, producer, topic or time",
		Long:  "Reasons are taken without what differs from record to record: numbers and quoted texts.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []dlq.By
			for _, b := range by {
				all = append(all, dlq.By(b))
			}
			g, err := dlq.NewGroups(all...)
			if err != nil {
				return err
			}
			err = f.letters(cmd.Context(), args[0], func(l *dlq.Letter) (bool, error) { g.Add(l); return true, nil })
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(g.Sorted())
			}
			return printGroups(cmd.OutOrStdout(), by, g.Sorted())
		},
	}
	f.add(cmd)
	cmd.Flags().StringSliceVar(&by, "by", []string{string(dlq.ByReason)}, fmt.Sprintf("what to group by, one or more of %v", dlq.Groupings))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with an example of each group")
	return cmd
}

func printGroups(out io.Writer, by []string, groups []*dlq.Group) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "letters\tfirst\tlast\t%s\n", strings.Join(by, "\t"))
	for _, g := range groups {
		values := make([]string, len(g.Values))
		for i, v := range g.Values {
			values[i] = oneLine(v)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", g.Count, g.First.Format(time.RFC3339), g.Last.Format(time.RFC3339), strings.Join(values, "\t"))
	}
	return w.Flush()
}

func newDLQReplay() *cobra.Command {
	var (
		f          dlqFlags
		yes, again bool
	)
	cmd := &cobra.Command{
		Use:   "replay DEAD_LETTER_TOPIC",
		Short: "Send dead letters to where they come from; without --yes only say what would be sent",
		Long: "Says what it would do, and does it with --yes. Each letter goes to its own topic and partition, with a header that tells of the\n" +
			"replay. A letter is replayed once: the topic's group <topic>.replays notes which were, in the same transaction.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return dlqReplay(cmd.Context(), cmd.OutOrStdout(), &f, args[0], yes, again)
		},
	}
	f.add(cmd)
	addReplay(cmd.Flags(), &yes, &again)
	return cmd
}

func addReplay(flags *pflag.FlagSet, yes, again *bool) {
	flags.BoolVar(yes, "yes", false, "do it")
	flags.BoolVar(again, "again", false, "also replay letters that were replayed before and have failed again")
}

func dlqReplay(ctx context.Context, out io.Writer, f *dlqFlags, topic string, yes, again bool) (err error) {
	if err := f.finish(time.Now()); err != nil {
		return err
	}
	client, end, err := f.cluster.connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	cfg := dlq.Config{Client: client, Topic: topic, Filter: f.filter, Again: again,
		Progress: func(done int) { fmt.Fprintf(out, "%d replayed\n", done) }}
	plan := dlq.Preview
	if yes {
		plan = dlq.Plan
	}
	r, err := plan(ctx, cfg)
	if err != nil {
		return err
	}
	defer r.Close()
	printReplay(out, r)
	switch {
	case len(r.Todo) == 0:
		fmt.Fprintln(out, "nothing to replay")
		return nil
	case !yes:
		fmt.Fprintln(out, "nothing was sent: repeat the command with --yes to replay them")
		return nil
	}
	_, err = r.Run(ctx)
	return err
}

func printReplay(out io.Writer, r *dlq.Replay) {
	for _, to := range slices.Sorted(maps.Keys(r.To)) {
		fmt.Fprintf(out, "%s to replay to %s\n", counted(r.To[to], "letter"), to)
	}
	skipped := func(n int, why string) {
		if n > 0 {
			fmt.Fprintf(out, "%d left out: %s\n", n, why)
		}
	}
	skipped(r.Replayed, "replayed before")
	skipped(r.Again, "they failed again after a replay (--again replays them)")
	skipped(r.Homeless, "they don't say whence they come")
	for _, topic := range slices.Sorted(maps.Keys(r.Gone)) {
		skipped(r.Gone[topic], "topic "+topic+", or its partition, is not there any more")
	}
}
