package iceberg_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/iceberg/sqlite"
	"github.com/tributary-io/tributary/lake/sink"
)

// Play is a stream's value.
type Play struct {
	ID      string    `lake:"id,comment=given by the player"`
	Session string    `lake:"session_id"`
	At      time.Time `lake:"at"`
}

// A topology calls ToLake with such a sink, and the engine does the rest. Here the steps of the engine are made by hand.
func ExampleTable() {
	dir, err := os.MkdirTemp("", "iceberg")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	table := iceberg.Table("streaming.plays", sqlite.Catalog(dir+"/catalog.db", dir+"/warehouse"),
		iceberg.PartitionBy(iceberg.Day("at"), iceberg.Bucket(4, "session_id")), iceberg.SourceColumns())
	if err := table.Bind(reflect.TypeFor[string](), reflect.TypeFor[Play]()); err != nil {
		panic(err)
	}
	ctx := context.Background()
	w, err := table.Open(ctx, sink.Env{ApplicationID: "player", Name: "plays"})
	if err != nil {
		panic(err)
	}
	defer w.Close()

	from := sink.Partition{Topic: "plays", Partition: 0}
	batch := w.NewBatch()
	key := "s1"
	for i := range 3 {
		play := Play{fmt.Sprint("p", i), key, time.Date(2026, 6, 1+i, 12, 0, 0, 0, time.UTC)}
		if err := batch.Append(&key, &play, &sink.Meta{Topic: "plays", Offset: int64(i)}); err != nil {
			panic(err)
		}
	}
	commit, err := w.Commit(ctx, batch, []sink.Move{{Partition: from, From: sink.NoOffset, To: 3}})
	if err != nil {
		panic(err)
	}
	batch.Release()
	fmt.Println("rows", commit.Rows, "files", commit.Files)
	progress, err := w.Progress(ctx, []sink.Partition{from})
	if err != nil {
		panic(err)
	}
	fmt.Println("goes on at", progress[from])
	// Output:
	// rows 3 files 3
	// goes on at 3
}
