package demo

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tributary-io/tributary/engine"
	app "github.com/tributary-io/tributary/examples/orders"
	"github.com/tributary-io/tributary/examples/shop"
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
	return s, s.closeBooks(ctx, days)
}

func summarizeTable(ctx context.Context, place string) (TableSummary, error) {
	info, err := lake.Show(ctx, place, 0)
	if err != nil {
		return TableSummary{}, err
	}
	return TableSummary{Place: place, Version: info.Version, Rows: info.Rows, Files: info.Files, Next: info.Progress}, nil
}

// closeBooks compares the tables with the model of all days.
func (s *Summary) closeBooks(ctx context.Context, days *diary) error {
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
	faults, err := windowFaults(ctx, s.Tables[2].Place, m)
	s.Books = append(s.Books, faults...)
	return err
}

// windowFaults compares the landed windows with the model. Which records are late depends a little on how the partitions were read: where
// traffic is thin a late one may come in time. So the model gives the least and the most that a window may hold; which windows have closed
// does not depend on it.
func windowFaults(ctx context.Context, place string, m *shop.Model) (faults []string, err error) {
	type window struct {
		region string
		start  int64
	}
	least, most := map[window]int64{}, map[window]int64{}
	closed := map[window]bool{}
	for _, w := range m.Strict.All() {
		least[window{w.Region, w.Start}] = w.Count
	}
	for _, w := range m.Windows.All() {
		most[window{w.Region, w.Start}] = w.Count + w.LateCount
		closed[window{w.Region, w.Start}] = m.Windows.IsClosed(w)
	}
	fault := func(w window, format string, args ...any) {
		at := time.UnixMilli(w.start).UTC().Format(time.RFC3339)
		faults = append(faults, fmt.Sprintf("window of %s at %s: %s", w.region, at, fmt.Sprintf(format, args...)))
	}
	for row, err := range lake.ReadRows(ctx, place) {
		if err != nil {
			return faults, err
		}
		region, _ := row["region"].(string)
		start, _ := row["window_start"].(time.Time)
		events, _ := row["events"].(int64)
		w := window{region, start.UnixMilli()}
		if !closed[w] {
			fault(w, "it landed twice, or has not closed yet")
		} else if events < max(1, least[w]) || events > most[w] {
			fault(w, "%d events, but the model says %d to %d", events, least[w], most[w])
		}
		closed[w] = false
	}
	for w, missing := range closed {
		if missing && least[w] > 0 {
			fault(w, "it is missing")
		}
	}
	return faults, nil
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
