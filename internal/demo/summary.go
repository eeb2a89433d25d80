package demo

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tributary-io/tributary/engine"
	app "github.com/tributary-io/tributary/examples/orders"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/processors"
)

// Summary is what the demonstration has come to.
type Summary struct {
	Tables []TableSummary
	// Counts of this run.
	Emitted, AlreadyEmitted, Processed int64
	Duplicates, Late, Unjoined         int64
	// Quarantined counts the dead letters there are, those of earlier runs included.
	Quarantined int64
	Elapsed     time.Duration
	// Books says what does not agree with the reference model; empty: all does.
	Books []string
	Days  []string
	Dir   string
}

// TableSummary is one table.
type TableSummary struct {
	Place   string
	Version int64
	Rows    int64
	Files   int64
	// Next is the next offset to land by input partition, as the table says.
	Next []lake.Progress
}

func summarize(ctx context.Context, cfg *Config, c *Cluster, days *diary, e *engine.Engine, emission *Emission, took time.Duration) (*Summary, error) {
	stats := e.Stats()
	s := &Summary{
		Emitted: emission.Produced.Load(), AlreadyEmitted: emission.Skipped.Load(), Processed: stats.Processed, Elapsed: took,
		Days: days.Days, Dir: cfg.Dir,
	}
	for _, d := range stats.Dropped {
		switch d.Reason {
		case processors.DroppedDuplicate:
			s.Duplicates += d.Count
		case processors.DroppedLate, processors.DroppedExpired:
			s.Late += d.Count
		}
	}
	for _, name := range []string{app.RawTable, app.EnrichedTable, app.RevenueTable} {
		t, err := summarizeTable(ctx, cfg.lake()+"/"+name)
		if err != nil {
			return nil, err
		}
		s.Tables = append(s.Tables, t)
	}
	var err error
	if s.Quarantined, err = c.Count(ctx, app.DeadLetters()); err != nil {
		return nil, err
	}
	return s, s.closeBooks(days)
}

func summarizeTable(ctx context.Context, place string) (TableSummary, error) {
	info, err := lake.Show(ctx, place, 0)
	if err != nil {
		return TableSummary{}, err
	}
	return TableSummary{Place: place, Version: info.Version, Rows: info.Rows, Files: info.Files, Next: info.Progress}, nil
}

// closeBooks compares the tables with the model of all days.
func (s *Summary) closeBooks(days *diary) error {
	m, err := days.model()
	if err != nil {
		return err
	}
	check := func(what string, got, want int64) {
		if got != want {
			s.Books = append(s.Books, fmt.Sprintf("%s: %d, but the model says %d", what, got, want))
		}
	}
	check("rows of "+app.RawTable, s.Tables[0].Rows, m.Raw.Rows)
	check("rows of "+app.EnrichedTable, s.Tables[1].Rows, m.Enriched.Rows)
	check("windows in "+app.RevenueTable, s.Tables[2].Rows, int64(len(m.Windows.Closed())))
	return nil
}

// Print writes the summary for people.
func (s *Summary) Print(out io.Writer) {
	fmt.Fprintf(out, "\nLanded, each row once:\n")
	PrintTables(out, s.Tables)
	fmt.Fprintf(out, "Offsets landed in %s, by the table itself:", app.RawTable)
	for _, p := range s.Tables[0].Next {
		fmt.Fprintf(out, " %d up to %d", p.Partition, p.Next)
	}
	fmt.Fprintf(out, "\nThis run: %d emitted (%d were there already), %d processed, %d duplicates dropped, %d late for their window\n",
		s.Emitted, s.AlreadyEmitted, s.Processed, s.Duplicates, s.Late)
	fmt.Fprintf(out, "Quarantined in %s: %d\n", app.DeadLetters(), s.Quarantined)
	fmt.Fprintf(out, "Took %s, %.0f records/s\n", s.Elapsed.Round(10*time.Millisecond), float64(s.Processed)/s.Elapsed.Seconds())
	if len(s.Books) == 0 {
		fmt.Fprintln(out, "The books are closed: all tables agree with the reference model.")
	}
	for _, b := range s.Books {
		fmt.Fprintln(out, "The books do not close:", b)
	}
}
