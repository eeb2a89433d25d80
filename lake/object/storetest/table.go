package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

var oneColumn = &delta.StructType{Fields: []delta.Field{{Name: "id", Type: delta.Long, Nullable: true}}}

// LostReplies commits through a store on f that drops replies after it has stored: the table must find out that the commit is its own, also
// where the client tries again by itself and is told that the object exists.
func LostReplies(t *testing.T, f *Fake, s object.Store) {
	t.Helper()
	table, err := delta.Create(t.Context(), s, delta.Spec{Schema: oneColumn}, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	f.Fault = func(key string) int {
		if n++; strings.HasSuffix(key, ".json") && n%2 == 1 {
			return DropReply
		}
		return 0
	}
	recovered := 0
	for i := range int64(6) {
		landed, err := table.Commit(t.Context(), delta.Commit{Moves: []delta.Move{{AppID: "a", First: i == 0, From: i, To: i + 1}}})
		if err != nil {
			t.Fatal(err)
		}
		if landed.Recovered {
			recovered++
		}
		if landed.Version != i+1 {
			t.Errorf("commit %d landed at %d", i, landed.Version)
		}
	}
	if recovered == 0 {
		t.Error("no reply was lost")
	}
}

// Writers has four writers commit to one new table at once, each through the same store.
func Writers(t *testing.T, s object.Store) {
	t.Helper()
	const writers, commits = 4, 15
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() { errs[w] = write(t.Context(), s, fmt.Sprint("w", w), commits) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	table, err := delta.Open(t.Context(), s, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if h := table.Head(); h.Version != writers*commits || len(h.Txns) != writers {
		t.Errorf("version %d with %d ids", h.Version, len(h.Txns))
	}
}

func write(ctx context.Context, s object.Store, id string, commits int64) error {
	table, _, err := delta.OpenOrCreate(ctx, s, delta.Spec{Schema: oneColumn, Configuration: map[string]string{"delta.checkpointInterval": "10"}}, delta.Options{})
	if err != nil {
		return err
	}
	for i := range commits {
		if _, err := table.Commit(ctx, delta.Commit{Moves: []delta.Move{{AppID: id, First: i == 0, From: i, To: i + 1}}}); err != nil {
			return err
		}
		if err := table.Maintain(ctx); err != nil {
			return err
		}
	}
	return nil
}

// order is a row of Sink's table.
type order struct {
	ID     int64  `lake:"id"`
	Region string `lake:"region,partition"`
	Note   string `lake:"note"`
}

// Sink lands rows through package lake at a place whose store is linked in, twice with a new process in between, compacts and vacuums the table, and reads
// it back.
func Sink(t *testing.T, place string) {
	t.Helper()
	ctx := t.Context()
	input := sink.Partition{Topic: "orders"}
	at := int64(sink.NoOffset)
	for range 2 {
		s := lake.Delta(place)
		if err := s.Bind(reflect.TypeFor[string](), reflect.TypeFor[order]()); err != nil {
			t.Fatal(err)
		}
		w, err := s.Open(ctx, sink.Env{ApplicationID: "storetest", Name: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		progress, err := w.Progress(ctx, []sink.Partition{input})
		if err != nil || progress[input] != at {
			t.Fatalf("progress %v, %v, want %d", progress, err, at)
		}
		for range 3 {
			b, from := w.NewBatch(), max(at, 0)
			for o := from; o < from+100; o++ {
				if err := b.Append("k", &order{o, fmt.Sprint("r %/", o%3), strings.Repeat("n", int(o%50))}, &sink.Meta{Topic: "orders", Offset: o}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.Commit(ctx, b, []sink.Move{{Partition: input, From: at, To: from + 100}}); err != nil {
				t.Fatal(err)
			}
			b.Release()
			at = from + 100
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	done, err := lake.Optimize(ctx, place, lake.OptimizeOptions{})
	if err != nil || done.FilesRemoved != 18 || done.FilesAdded != 3 {
		t.Errorf("compaction: %+v, %v", done, err)
	}
	if _, err := lake.Vacuum(ctx, place, lake.VacuumOptions{}); err != nil {
		t.Errorf("vacuum: %v", err)
	}
	sum, rows := int64(0), int64(0)
	for row, err := range lake.ReadRows(ctx, place) {
		if err != nil {
			t.Fatal(err)
		}
		sum += row["id"].(int64)
		rows++
	}
	if rows != at || sum != at*(at-1)/2 {
		t.Errorf("%d rows with the sum %d, want %d with %d", rows, sum, at, at*(at-1)/2)
	}
}
