package iceberg_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/icebergreaders"
	"github.com/tributary-io/tributary/lake/sink"
)

func TestSecondWriterOfAPartitionIsFenced(t *testing.T) {
	p := newPlace(t)
	open := func() sink.Writer { return openSink[string, numbered](t, iceberg.Table("db.t", p.catalog())) }
	a, b := open(), open()
	land(t, a, 0, 0, 10)
	stale := fill(t, b, 0, 0, 12)
	_, err := b.Commit(ctx, stale, []sink.Move{move(0, sink.NoOffset, 12)})
	var fenced *sink.FencedError
	if !errors.As(err, &fenced) || fenced.Want != sink.NoOffset || fenced.Got != 10 || fenced.Partition != part(0) {
		t.Fatalf("want a fenced writer, got %v", err)
	}
	stale.Release()
	if got := progress(t, b, 0); got != 10 {
		t.Errorf("progress is %d", got)
	}
	land(t, b, 0, 10, 15)
	// Both have batches of the same rows on the way, and files written: one lands.
	x, y := fill(t, a, 0, 15, 20), fill(t, b, 0, 15, 20)
	defer x.Release()
	defer y.Release()
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, w := range []sink.Writer{a, b} {
		wg.Go(func() { _, errs[i] = w.Commit(ctx, []sink.Batch{x, y}[i], []sink.Move{move(0, 15, 20)}) })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || !sink.IsFenced(errors.Join(errs...)) {
		t.Fatalf("want one winner and one fenced, got %v and %v", errs[0], errs[1])
	}
	if rows := len(iceberg.DataFiles(t, a)); rows != 3 || len(p.files(t, ".parquet")) != 3 {
		t.Errorf("%d files in the table, %d in the folder, want 3 and 3: the fenced batches' must be gone", rows, len(p.files(t, ".parquet")))
	}
}

func TestWritersOfDifferentPartitionsLandAtOnce(t *testing.T) {
	const writers, commits = 4, 8
	p := newPlace(t)
	var wg sync.WaitGroup
	attempts := make([]int, writers)
	for n := range writers {
		w := openSink[string, numbered](t, iceberg.Table("db.t", p.catalog(), iceberg.PartitionBy(iceberg.Bucket(2, "o"))))
		wg.Go(func() {
			for c := range int64(commits) {
				attempts[n] += land(t, w, int32(n), c*10, c*10+10).Attempts
			}
		})
	}
	wg.Wait()
	tbl := icebergreaders.Open(t).Table(t, p.readers(), "db.t")
	wantOnce(t, tbl, writers, commits*10)
	info := tbl.Info()
	if len(info.Snapshots) != writers*commits {
		t.Errorf("%d snapshots, want %d", len(info.Snapshots), writers*commits)
	}
	if parquet := p.files(t, ".parquet"); len(parquet) != info.Files {
		t.Errorf("%d files in the folder, %d in the table: lost races must leave none", len(parquet), info.Files)
	}
	var lists int
	for _, f := range p.files(t, ".avro") {
		if strings.Contains(f, "/snap-") {
			lists++
		}
	}
	if lists != len(info.Snapshots) {
		t.Errorf("%d manifest lists, want one a snapshot, %d: %v attempts", lists, len(info.Snapshots), attempts)
	}
}

func TestFoldersHaveNothingThatNobodyRefersTo(t *testing.T) {
	p := newPlace(t)
	a := openSink[string, numbered](t, iceberg.Table("db.t", p.catalog()))
	b := openSink[string, numbered](t, iceberg.Table("db.t", p.catalog()))
	for i := range int64(5) {
		land(t, a, 0, i*10, i*10+10)
		stale := fill(t, b, 0, i*10, i*10+5)
		if _, err := b.Commit(ctx, stale, []sink.Move{move(0, i*10-1, i*10+5)}); !sink.IsFenced(err) {
			t.Fatal(err)
		}
		stale.Release()
		land(t, b, 1, i*10, i*10+10)
	}
	if o, err := iceberg.RemoveOrphansNow(ctx, "db.t", p.catalog()); err != nil || o.Files != 0 {
		t.Errorf("%d files that nothing refers to, %v", o.Files, err)
	}
}

func TestUnclearOutcomesOfAREST(t *testing.T) {
	iceberg.ShortPauses()
	dir := t.TempDir()
	server := icebergreaders.ServeREST(t, dir)
	w := openSink[string, numbered](t, iceberg.Table("db.t", iceberg.REST(server.URI, nil), iceberg.PartitionBy(iceberg.Bucket(2, "o"))))
	next := int64(0)
	for _, c := range []struct {
		name   string
		n      int
		status int
		done   bool
	}{
		{"no fault", 0, 0, false}, {"refused twice", 2, http.StatusConflict, false}, {"unavailable", 2, http.StatusServiceUnavailable, false},
		{"reply lost", 1, 0, true}, {"gateway gave up, commit done", 1, http.StatusGatewayTimeout, true}, {"connection broken before", 2, 0, false},
	} {
		server.Fail(c.n, c.status, c.done)
		got := land(t, w, 0, next, next+10)
		next += 10
		if want := c.n + 1; !c.done && got.Attempts != want || c.done && got.Attempts != 1 {
			t.Errorf("%s: %d attempts", c.name, got.Attempts)
		}
	}
	// Whoever gives up leaves the batch as it was: the same call lands it.
	server.Fail(6, http.StatusServiceUnavailable, false)
	b := fill(t, w, 0, next, next+10)
	defer b.Release()
	moves := []sink.Move{move(0, next, next+10)}
	if _, err := w.Commit(ctx, b, moves); err == nil {
		t.Fatal("six failures in a row go unnoticed")
	}
	if _, err := w.Commit(ctx, b, moves); err != nil {
		t.Fatal(err)
	}
	next += 10
	server.Fail(1, http.StatusForbidden, false)
	c := fill(t, w, 0, next, next+10)
	if _, err := w.Commit(ctx, c, []sink.Move{move(0, next, next+10)}); err == nil {
		t.Fatal("a forbidden commit goes unnoticed")
	}
	c.Release()
	tbl := icebergreaders.Open(t).Table(t, icebergreaders.REST(server.URI), "db.t")
	wantOnce(t, tbl, 1, next)
	if got := progress(t, w, 0); got != next {
		t.Errorf("progress is %d, want %d", got, next)
	}
}

func TestOthersChangeTheTable(t *testing.T) {
	p := newPlace(t)
	w := openSink[string, numbered](t, iceberg.Table("db.t", p.catalog(), iceberg.PartitionBy(iceberg.Bucket(2, "o"))))
	other := openSink[string, numbered](t, iceberg.Table("db.t", p.catalog()))
	tbl := icebergreaders.Open(t).Table(t, p.readers(), "db.t")
	next := int64(0)
	step := func() {
		t.Helper()
		land(t, w, 0, next, next+10)
		land(t, other, 1, next, next+10)
		next += 10
		wantOnce(t, tbl, 2, next)
	}
	step()
	step()
	// Compaction: the same rows in other files.
	tbl.Python("table.overwrite(table.scan().to_arrow())", nil)
	step()
	// All snapshots but the newest expire, and with them the summaries of the sink's commits.
	tbl.Python("import time\nwith table.maintenance.expire_snapshots() as e:\n    e.by_ids([s.snapshot_id for s in table.snapshots()][:-1])", nil)
	if n := len(tbl.Info().Snapshots); n != 1 {
		t.Fatalf("%d snapshots are left, want 1", n)
	}
	step()
	// Properties, a new column, a dropped comment.
	tbl.Python(`
with table.transaction() as tx:
    tx.set_properties({"owner": "someone"})
with table.update_schema() as u:
    from pyiceberg.types import StringType
    u.add_column("theirs", StringType(), "a column of somebody else")`, nil)
	step()
	// Another partition spec: rows are landed as the table wants them.
	tbl.Python("from pyiceberg.transforms import IdentityTransform\nwith table.update_spec() as u:\n    u.remove_field('o_bucket')\n    u.add_identity('p')", nil)
	step()
	if got := icebergreaders.Int(t, tbl.Partitions()[0], "spec_id"); len(tbl.Partitions()) != 4 || got > 1 {
		t.Errorf("want partitions of both specs, got %v", tbl.Partitions())
	}
	// Rows of another writer.
	tbl.Python(`table.append(pa.table({"p": pa.array([9], pa.int32()), "o": pa.array([1], pa.int64()), "S": ["theirs"]}))`, nil)
	land(t, w, 0, next, next+10)
	if got := icebergreaders.Int(t, tbl.DuckDB(`select count(*) as n from t where p = 9`)[0], "n"); got != 1 {
		t.Errorf("%d rows of the other writer, want 1", got)
	}
	if info := tbl.Info(); info.Properties["owner"] != "someone" {
		t.Errorf("a foreign property is gone: %v", info.Properties)
	}
	// A column of the sink is dropped while a batch is on its way: it is added again, and the files are written for it.
	tbl.Python("with table.update_schema(allow_incompatible_changes=True) as u:\n    u.delete_column('S')", nil)
	land(t, w, 0, next+10, next+20)
	if got := icebergreaders.Int(t, tbl.DuckDB(`select count("S") as n from t`)[0], "n"); got != 10 {
		t.Errorf("%d rows have the column that was dropped and added again, want the 10 that landed since", got)
	}
}

func TestTableThatWasDroppedOrReplacedIsRefused(t *testing.T) {
	p := newPlace(t)
	s := iceberg.Table("db.t", p.catalog())
	w := openSink[string, numbered](t, s)
	land(t, w, 0, 0, 10)
	tbl := icebergreaders.Open(t).Table(t, p.readers(), "db.t")
	tbl.Python("catalog.drop_table('db.t')", nil)
	b := fill(t, w, 0, 10, 20)
	defer b.Release()
	_, err := w.Commit(ctx, b, []sink.Move{move(0, 10, 20)})
	wantRefused(t, err, "dropped")
	openSink[string, numbered](t, iceberg.Table("db.t", p.catalog()))
	_, err = w.Commit(ctx, b, []sink.Move{move(0, 10, 20)})
	wantRefused(t, err, "another table")
	_, err = w.Progress(ctx, []sink.Partition{part(0)})
	wantRefused(t, err, "another table")
}

func TestNewerFormatIsRefused(t *testing.T) {
	p := newPlace(t)
	_, err := tryOpen[string, numbered](iceberg.Table("db.t", p.catalog(), iceberg.Properties(map[string]string{"format-version": "3"})))
	wantRefused(t, err, "format version 3")
}

func TestProgressThatIsNoOffsetIsRefused(t *testing.T) {
	p := newPlace(t)
	w := openSink[string, numbered](t, iceberg.Table("db.t", p.catalog(), iceberg.Properties(map[string]string{
		"tributary.progress.app/orders-sink/orders@01020300-0000-0000-0000-000000000000/0": "ten"})))
	_, err := w.Progress(ctx, []sink.Partition{part(0)})
	wantRefused(t, err, "ten", "no offset")
}

func TestOrphansOfKilledWritersAreFound(t *testing.T) {
	p := newPlace(t)
	w := openSink[string, numbered](t, iceberg.Table("db.t", p.catalog()))
	land(t, w, 0, 0, 10)
	before := p.files(t, "")
	iceberg.WriteFilesOnly(t, fill(t, w, 0, 10, 20)) // and then the process is killed
	if _, err := iceberg.RemoveOrphans(ctx, "db.t", p.catalog(), 0, false); err == nil {
		t.Error("files of commits on their way are not spared")
	}
	if len(p.files(t, ".parquet")) != 2 {
		t.Fatal("no orphan to find")
	}
	if o, err := iceberg.RemoveOrphansNow(ctx, "db.t", p.catalog()); err != nil || o.Files != 1 || o.Bytes == 0 {
		t.Errorf("%+v, %v", o, err)
	}
	if after := p.files(t, ""); !slices.Equal(before, after) {
		t.Errorf("files are %v, want %v", after, before)
	}
	wantOnce(t, icebergreaders.Open(t).Table(t, p.readers(), "db.t"), 1, 10)
}
