package delta

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

// commits is the length of the log that the benchmarks work on; TRIBUTARY_BENCH_COMMITS sets another.
func commits(b *testing.B) int {
	if n, err := strconv.Atoi(os.Getenv("TRIBUTARY_BENCH_COMMITS")); err == nil {
		return n
	}
	if testing.Short() {
		return 50
	}
	return 500
}

// longTable makes a table of n commits on local disk, with one small file and four moves each. It writes the log without
// syncs, as only its content matters.
func longTable(b *testing.B, n int) object.Store {
	b.Helper()
	dir := b.TempDir()
	store := must(object.NewLocal(dir))
	memory := object.NewMemory("build")
	table := mustCreate(b, memory, Spec{}, Options{})
	data := bytes.Repeat([]byte("x"), 1000)
	var c Commit
	for i := range int64(n) {
		a := mustFile(b, memory, 1000)
		c.Add = []Add{a}
		c.Moves = c.Moves[:0]
		for p := range 4 {
			c.Moves = append(c.Moves, Move{AppID: fmt.Sprint("app/sink/topic/", p), First: i == 0, From: i, To: i + 1})
		}
		mustCommit(b, table, c)
		if err := table.Maintain(b.Context()); err != nil {
			b.Fatal(err)
		}
		_ = memory.Put(b.Context(), a.Path, data)
	}
	for info, err := range memory.List(b.Context(), "", "") {
		if err != nil {
			b.Fatal(err)
		}
		content, err := memory.Get(b.Context(), info.Name)
		if err != nil {
			b.Fatal(err)
		}
		w, err := store.Create(b.Context(), info.Name)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	pointer, err := memory.Get(b.Context(), lastCheckpoint)
	if err == nil {
		err = store.Put(b.Context(), lastCheckpoint, pointer)
	}
	if err != nil {
		b.Log("no checkpoint: ", err)
	}
	return store
}

// BenchmarkCommit is one commit of a data file (already written, not yet synced) with four moves, on local disk, onto a table
// with a long log. Upkeep runs after each, off the clock, and is reported apart.
func BenchmarkCommit(b *testing.B) {
	table := mustOpen(b, longTable(b, commits(b)), Options{})
	var took []time.Duration
	var upkeep time.Duration
	for b.Loop() {
		a := mustFile(b, table.store, 1000)
		c := Commit{Add: []Add{a}}
		for p := range 4 {
			id := fmt.Sprint("app/sink/topic/", p)
			from, ok := table.Head().Txn(id)
			c.Moves = append(c.Moves, Move{AppID: id, First: !ok, From: from, To: from + 250})
		}
		start := time.Now()
		mustCommit(b, table, c)
		took = append(took, time.Since(start))
		start = time.Now()
		if err := table.Maintain(b.Context()); err != nil {
			b.Fatal(err)
		}
		upkeep += time.Since(start)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms/commit")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms/commit")
	b.ReportMetric(float64(upkeep.Microseconds())/1000/float64(len(took)), "upkeep-ms/commit")
}

// BenchmarkOpen opens a table with a long log for a sink.
func BenchmarkOpen(b *testing.B) {
	store := longTable(b, commits(b))
	for b.Loop() {
		mustOpen(b, store, Options{})
	}
}

// BenchmarkReplay rebuilds the same table from all of its commits: what opening would cost without checksums and checkpoints.
func BenchmarkReplay(b *testing.B) {
	store := longTable(b, commits(b))
	for b.Loop() {
		table := newTable(store, Options{})
		l, err := listLog(b.Context(), store, 0)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := table.snapshotOn(b.Context(), l, base{version: -1}, l.newest()); err != nil {
			b.Fatal(err)
		}
	}
}
