package lake_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
)

// Payment is a stream's value. Its tags name columns, and give types, tags and comments where Go can't.
type Payment struct {
	ID     string    `json:"id" lake:"id,comment=given by the shop"`
	Cents  int64     `json:"cents" lake:"amount,decimal(12,2)"`
	Payer  *string   `json:"payer" lake:"payer,ods.pii=true"`
	Booked time.Time `json:"booked"`
}

// A topology calls ToLake with such a sink, and the engine does the rest. Here the steps of the engine are made by hand.
func ExampleDelta() {
	dir, err := os.MkdirTemp("", "lake")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	table := lake.Delta(dir, lake.KeyColumn("key"), lake.SourceColumns(), lake.Comment("payments as they came"))
	if err := table.Bind(reflect.TypeFor[string](), reflect.TypeFor[Payment]()); err != nil {
		panic(err)
	}
	ctx := context.Background()
	w, err := table.Open(ctx, sink.Env{ApplicationID: "shop", Name: "payments", Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		panic(err)
	}
	defer w.Close()

	from := sink.Partition{Topic: "payments", Partition: 0}
	batch := w.NewBatch()
	key, value := "k1", Payment{ID: "p-1", Cents: 1999, Booked: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
	if err := batch.Append(&key, &value, &sink.Meta{Topic: "payments", Offset: 41, BrokerTimestamp: value.Booked.UnixMilli()}); err != nil {
		panic(err)
	}
	commit, err := w.Commit(ctx, batch, []sink.Move{{Partition: from, From: sink.NoOffset, To: 42}})
	if err != nil {
		panic(err)
	}
	batch.Release()
	fmt.Println("version", commit.Version, "rows", commit.Rows)

	for row, err := range lake.ReadRows(ctx, dir) {
		if err != nil {
			panic(err)
		}
		fmt.Println(row["key"], row["id"], row["amount"], row["payer"], row[lake.SourceOffset])
	}
	progress, err := w.Progress(ctx, []sink.Partition{from})
	if err != nil {
		panic(err)
	}
	fmt.Println("goes on at", progress[from])
	info, err := lake.Show(ctx, dir, 1)
	if err != nil {
		panic(err)
	}
	for _, c := range info.Columns[:4] {
		fmt.Println(c.Name, c.Type, c.Comment, c.Tags)
	}
	// Output:
	// version 1 rows 1
	// k1 p-1 19.99 <nil> 41
	// goes on at 42
	// key string  map[]
	// id string given by the shop map[]
	// amount decimal(12,2)  map[]
	// payer string  map[ods.pii:true]
}

// Small files of a table are compacted, sorted by the time of the events, in the partitions of this year; files that nobody needs any more are
// counted.
func ExampleOptimize() {
	ctx := context.Background()
	thisYear, err := lake.ParseCondition("day >= 2026-01-01")
	if err != nil {
		panic(err)
	}
	done, err := lake.Optimize(ctx, "s3://lake/raw/shop__orders", lake.OptimizeOptions{SortBy: "event_time", Where: []lake.Condition{thisYear}})
	if err != nil {
		panic(err)
	}
	old, err := lake.Vacuum(ctx, "s3://lake/raw/shop__orders", lake.VacuumOptions{DryRun: true})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d files became %d; %d bytes could go\n", done.FilesRemoved, done.FilesAdded, old.Bytes)
}
