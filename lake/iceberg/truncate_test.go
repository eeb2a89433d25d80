package iceberg_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/apache/iceberg-go/catalog"

	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/icebergreaders"
	"github.com/tributary-io/tributary/lake/sink"
)

func truncate(s sink.Sink, execute bool) (sink.Truncation, error) {
	return s.(sink.Truncater).Truncate(ctx, testEnv(), []string{"orders"}, execute)
}

// landFrom lands offsets of partition 0, and returns what the table says to it.
func landFrom(t *testing.T, w sink.Writer, from, to int64) error {
	t.Helper()
	b := fill(t, w, 0, max(from, 0), to)
	defer b.Release()
	_, err := w.Commit(ctx, b, []sink.Move{move(0, from, to)})
	return err
}

// TestTruncate empties a table under a sink: a dry run changes nothing, what was made before is fenced, everything lands anew and once, and the readers of
// others agree, on the version before, too.
func TestTruncate(t *testing.T) {
	p := newPlace(t)
	s := func() sink.Sink {
		return iceberg.Table("db.t", p.catalog(), iceberg.PartitionBy(iceberg.Bucket(2, "o")))
	}
	if out, err := truncate(s(), true); err != nil || out.Version != -1 || out.Changed {
		t.Fatalf("without a table: %+v, %v", out, err)
	}
	w := openSink[string, numbered](t, s())
	land(t, w, 0, 0, 10)
	land(t, w, 0, 10, 15)
	out, err := truncate(s(), false)
	if err != nil || !out.Changed || out.Rows != 15 || out.Files != 4 || out.Partitions != 1 || out.Version != 2 || out.Bytes == 0 {
		t.Fatalf("a dry run says %+v, %v", out, err)
	}
	if got := progress(t, w, 0); got != 15 {
		t.Fatalf("after a dry run the progress is %d", got)
	}
	if out, err = truncate(s(), true); err != nil || out.Version != 3 || out.Rows != 15 {
		t.Fatalf("truncated: %+v, %v", out, err)
	}
	if err := landFrom(t, w, 15, 17); !sink.IsFenced(err) {
		t.Fatalf("a batch that was made before landed: %v", err)
	}
	tbl := icebergreaders.Open(t).Table(t, p.readers(), "db.t")
	if n := icebergreaders.Int(t, tbl.DuckDB("select count(*) as n from t")[0], "n"); n != 0 {
		t.Errorf("DuckDB finds %d rows in the emptied table", n)
	}
	if out, err = truncate(s(), true); err != nil || out.Changed || out.Version != 3 {
		t.Fatalf("a second time: %+v, %v", out, err)
	}
	again := openSink[string, numbered](t, s())
	for _, w := range []sink.Writer{w, again} { // both believe to own the partition
		if got := progress(t, w, 0); got != sink.NoOffset {
			t.Fatalf("the emptied table has progress %d", got)
		}
	}
	if err := landFrom(t, again, sink.NoOffset, 3); err != nil {
		t.Fatal(err)
	}
	if err := landFrom(t, w, sink.NoOffset, 3); !sink.IsFenced(err) {
		t.Fatalf("the same rows landed twice: %v", err)
	}
	if err := landFrom(t, again, 3, 8); err != nil {
		t.Fatal(err)
	}
	wantOnce(t, icebergreaders.Open(t).Table(t, p.readers(), "db.t"), 1, 8)
	info := icebergreaders.Open(t).Table(t, p.readers(), "db.t").Info()
	if len(info.Snapshots) != 5 || info.Snapshots[2].Summary["tributary.truncated-by"] != "app/orders-sink" {
		t.Errorf("PyIceberg finds the snapshots %v", info.Snapshots)
	}
}

// TestTruncateProgressAlone: a table without rows has progress to forget, too, and a batch of before is refused all the same.
func TestTruncateProgressAlone(t *testing.T) {
	cat := memoryPlace(t)
	w := openSink[string, numbered](t, iceberg.Table("db.t", cat))
	b := w.NewBatch()
	defer b.Release()
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 4)}); err != nil {
		t.Fatal(err)
	}
	if out, err := truncate(iceberg.Table("db.t", cat), true); err != nil || !out.Changed || out.Files != 0 || out.Partitions != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if err := landFrom(t, w, 4, 6); !sink.IsFenced(err) {
		t.Fatalf("a batch that was made before landed: %v", err)
	}
	if got := progress(t, w, 0); got != sink.NoOffset {
		t.Errorf("progress %d", got)
	}
}

func TestTruncateRefused(t *testing.T) {
	cat := memoryPlace(t)
	w := openSink[string, numbered](t, iceberg.Table("db.t", cat))
	land(t, w, 0, 0, 3)
	env := testEnv()
	env.Name = "another"
	for _, execute := range []bool{false, true} {
		_, err := iceberg.Table("db.t", cat).(sink.Truncater).Truncate(ctx, env, []string{"orders"}, execute)
		wantRefused(t, err, "others land in it", "app/orders-sink/orders@")
	}
	if got := progress(t, w, 0); got != 3 {
		t.Errorf("progress %d", got)
	}
}

// TestTruncateWhateverHappens breaks every operation of an emptying in every way. Done again, the table is empty, and takes the input anew.
func TestTruncateWhateverHappens(t *testing.T) {
	for _, what := range []fault{fail, loseReply, lose, crash, crashAfter} {
		for n, over := 1, false; !over; n++ {
			cat := memoryPlace(t)
			w, err := tryOpen[string, numbered](iceberg.Table("db.t", cat, iceberg.Compression("snappy", 0)))
			if err != nil {
				t.Fatal(err)
			}
			land(t, w, 0, 0, 4)
			calls := 0
			s := iceberg.Table("db.t", cat)
			iceberg.WithCatalog(s, func(c catalog.Catalog) catalog.Catalog {
				return &faulty{Catalog: c, plan: func(string) fault {
					if calls++; calls == n {
						return what
					}
					return noFault
				}}
			})
			_, err = truncate(s, true)
			if over = calls < n; err != nil && (over || !errors.Is(err, errFault) && !errors.Is(err, errCrashed) && !errors.Is(err, context.DeadlineExceeded)) {
				t.Errorf("fault %d at operation %d: %v", what, n, err)
			}
			if _, err := truncate(iceberg.Table("db.t", cat), true); err != nil {
				t.Fatalf("fault %d at operation %d, again: %v", what, n, err)
			}
			if err := landFrom(t, w, 4, 6); !sink.IsFenced(err) {
				t.Fatalf("fault %d at operation %d: a batch that was made before landed: %v", what, n, err)
			}
			if err := landFrom(t, w, sink.NoOffset, 6); err != nil {
				t.Fatal(err)
			}
			var got []string
			for row, err := range iceberg.ReadRows(ctx, "db.t", cat) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprint(row["o"]))
			}
			if len(got) != 6 {
				t.Errorf("fault %d at operation %d: the rows are %v", what, n, got)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
