package iceberg

import (
	"context"
	"testing"
	"time"

	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tributary-io/tributary/lake/sink"
)

// WithCatalog opens a sink on a client that a function makes of the sink's own.
func WithCatalog(s sink.Sink, wrap func(catalog.Catalog) catalog.Catalog) {
	s.(*tableSink).catalog.wrap = wrap
}

// RowGroups makes a sink's row groups small.
func RowGroups(s sink.Sink, bytes int64) { s.(*tableSink).opts.parquet.RowGroupBytes = bytes }

// ShortPauses makes waits between attempts short.
func ShortPauses() { pauseUnit = time.Millisecond }

// RemoveOrphansNow is RemoveOrphans for files of any age.
func RemoveOrphansNow(ctx context.Context, name string, c Catalog) (Orphans, error) {
	return removeOrphans(ctx, name, c, 0, false)
}

// Partitions groups the rows of one column by a transform, and returns for each row the number of its group, and each group's value.
func Partitions(fn icebergo.Transform, typ icebergo.Type, a arrow.Array) (of []int, values []any, err error) {
	groups, err := groupRows(a.Len(), []source{{1000, fn, typ, a}})
	of = make([]int, a.Len())
	for n, g := range groups {
		values = append(values, g.values[1000])
		for _, row := range g.rows {
			of[row] = n
		}
	}
	return of, values, err
}

var (
	Literal      = literal
	UpperText    = upperText
	DecimalBytes = decimalBytes
)

// TableOf reads the newest version of a writer's table.
func TableOf(w sink.Writer) *table.Table {
	iw := w.(*writer)
	if err := iw.refresh(context.Background()); err != nil {
		panic(err)
	}
	return iw.table
}

// DataFiles lists the data files of the newest version of a writer's table.
func DataFiles(t testing.TB, w sink.Writer) (names []string) {
	tasks, err := TableOf(w).Scan().PlanFiles(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		names = append(names, task.File.FilePath())
	}
	return names
}

// WriteFilesOnly writes a batch's files as Commit does first.
func WriteFilesOnly(t testing.TB, sb sink.Batch) {
	b := sb.(*batch)
	f, err := b.w.fit(context.Background())
	if err == nil {
		err = b.encode(context.Background(), f)
	}
	if err != nil {
		t.Fatal(err)
	}
}
