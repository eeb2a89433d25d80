package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/lake/sink"
)

// tableReset is a table that a reset empties.
type tableReset struct {
	lake   *plan.Lake
	table  sink.Truncater
	inputs []string // topics that the sink reads
}

// lookAtTables finds out what becomes of the tables.
func (r *resetter) lookAtTables(ctx context.Context) error {
	for _, sub := range r.p.Subtopologies {
		for _, n := range sub.Nodes {
			if n.Lake == nil {
				continue
			}
			if err := r.lookAtTable(ctx, n.Lake, sub.SourceTopics); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *resetter) lookAtTable(ctx context.Context, l *plan.Lake, inputs []string) error {
	if r.opts.Lake == TruncateLake {
		return r.lookAtTruncation(ctx, l, inputs)
	}
	anew := slices.DeleteFunc(slices.Clone(inputs), func(t string) bool { return r.p.InternalTopics[t] == nil })
	what := "goes on behind what it has landed"
	if len(anew) > 0 {
		what = fmt.Sprintf("keeps its rows, and gets those that come through %s once more", strings.Join(anew, ", "))
	}
	if r.opts.Lake != KeepLake {
		r.refuse("table %s (sink %s) has rows and progress of the application: say that tables are kept (it then %s), or that they are emptied, so that everything lands anew", l.Sink, l.Name, what)
		return nil
	}
	r.report.Tables = append(r.report.Tables, fmt.Sprintf("keep table %s (sink %s): %s", l.Sink, l.Name, what))
	return nil
}

func (r *resetter) lookAtTruncation(ctx context.Context, l *plan.Lake, inputs []string) error {
	table, ok := l.Sink.(sink.Truncater)
	if !ok {
		r.refuse("table %s (sink %s) is of a kind that a reset can't empty: delete it yourself, and say that tables are kept", l.Sink, l.Name)
		return nil
	}
	found, err := table.Truncate(ctx, r.sinkEnv(l), inputs, false)
	var refused *sink.RefusedError
	switch {
	case errors.As(err, &refused):
		r.refuse("sink %s: %v", l.Name, refused)
		return nil
	case err != nil:
		return fmt.Errorf("sink %s: %w", l.Name, err)
	}
	r.tables = append(r.tables, tableReset{l, table, inputs})
	switch {
	case found.Version < 0:
	case !found.Changed:
		r.report.Tables = append(r.report.Tables, fmt.Sprintf("table %s (sink %s) is empty, and has no progress", l.Sink, l.Name))
	default:
		rows := fmt.Sprint(found.Rows)
		if found.Rows < 0 {
			rows = "an unknown number of"
		}
		r.report.Tables = append(r.report.Tables, fmt.Sprintf("empty table %s (sink %s): %s rows in %d files, and forget the progress of %d partitions; the files stay until a vacuum, for readers of older versions",
			l.Sink, l.Name, rows, found.Files, found.Partitions))
	}
	return nil
}

func (r *resetter) sinkEnv(l *plan.Lake) sink.Env {
	return sink.Env{ApplicationID: r.p.ApplicationID, Name: l.Name, Logger: slog.New(slog.DiscardHandler), Now: time.Now}
}

func (r *resetter) truncateTables(ctx context.Context) error {
	for _, t := range r.tables {
		if _, err := t.table.Truncate(ctx, r.sinkEnv(t.lake), t.inputs, true); err != nil {
			return fmt.Errorf("sink %s: %w", t.lake.Name, err)
		}
	}
	return nil
}

// forgetInputs deletes the committed offsets of some topics, and leaves the groups and what else is in them.
func (r *resetter) forgetInputs(ctx context.Context) error {
	for group := range maps.Keys(r.report.Offsets) { // those that have any
		listed, err := r.admin.FetchOffsets(ctx, group)
		if err != nil {
			return fmt.Errorf("read offsets of group %s: %w", group, err)
		}
		set := kadm.TopicsSet{}
		listed.Each(func(o kadm.OffsetResponse) {
			if slices.Contains(r.opts.Inputs, o.Topic) {
				set.Add(o.Topic, o.Partition)
			}
		})
		deleted, err := r.admin.DeleteOffsets(ctx, group, set)
		if err == nil {
			err = deleted.Error()
		}
		if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return fmt.Errorf("delete offsets of group %s: %w", group, err)
		}
	}
	return nil
}
