package iceberg_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/sink"
)

type benchRow struct {
	ID      string    `lake:"id"`
	Session string    `lake:"session"`
	Title   string    `lake:"title"`
	At      time.Time `lake:"at"`
	Seconds int64     `lake:"seconds"`
	Bitrate int32     `lake:"bitrate"`
}

// BenchmarkCommit lands batches of 50,000 rows of six columns, by hour and bucket (24 files) or in one file.
func BenchmarkCommit(b *testing.B) {
	const rows = 50_000
	for name, opts := range map[string][]iceberg.Option{"one file": nil, "24 files": {iceberg.PartitionBy(iceberg.Hour("at"))}} {
		b.Run(name, func(b *testing.B) {
			p := newPlace(b)
			w := openSink[string, benchRow](b, iceberg.Table("db.t", p.catalog(), opts...))
			from := sink.NoOffset
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for b.Loop() {
				batch := w.NewBatch()
				var meta sink.Meta
				for i := range rows {
					row := benchRow{fmt.Sprintf("event-%016d", i), "session-12345678", "title-42", start.Add(time.Duration(i) * 86400 * time.Second / rows), int64(i), 4500}
					if err := batch.Append(nil, &row, &meta); err != nil {
						b.Fatal(err)
					}
				}
				to := max(from, 0) + rows
				if _, err := w.Commit(ctx, batch, []sink.Move{move(0, from, to)}); err != nil {
					b.Fatal(err)
				}
				batch.Release()
				from = to
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
