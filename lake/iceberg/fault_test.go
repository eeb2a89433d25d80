package iceberg_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/tributary-io/tributary/internal/sinktest"
	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/iceberg/sqlite"
	"github.com/tributary-io/tributary/lake/sink"
)

// fault says what becomes of an operation of a catalog or of its files.
type fault int

const (
	noFault    fault = iota
	fail             // nothing happens
	loseReply        // it happens, and the caller is told that it failed
	lose             // a commit only: it is refused as if another came first
	crash            // nothing happens, then or later, as if the process had died
	crashAfter       // it happens, and then the process dies
)

var (
	errFault   = errors.New("injected fault")
	errCrashed = errors.New("injected crash")
)

// faulty is a catalog whose operations fail as a plan says.
type faulty struct {
	catalog.Catalog
	mu      sync.Mutex
	plan    func(op string) fault
	crashed bool
}

// do runs an operation under the plan.
func (f *faulty) do(op string, run func() error) error {
	f.mu.Lock()
	what := noFault
	if f.crashed {
		what = crash
	} else if f.plan != nil {
		what = f.plan(op)
	}
	if what == crash || what == crashAfter {
		f.crashed = true
	}
	f.mu.Unlock()
	switch what {
	case fail:
		return errFault
	case crash:
		return errCrashed
	case lose:
		if op == "commit" {
			return fmt.Errorf("%w: injected", table.ErrCommitFailed)
		}
	}
	if err := run(); err != nil {
		return err
	}
	switch what {
	case loseReply:
		return errFault
	case crashAfter:
		return errCrashed
	}
	return nil
}

// Close closes the catalog: its interface hides that it can be.
func (f *faulty) Close() error { return f.Catalog.(catalog.Closer).Close() }

func (f *faulty) LoadTable(ctx context.Context, id table.Identifier) (*table.Table, error) {
	var t *table.Table
	err := f.do("load", func() (err error) { t, err = f.Catalog.LoadTable(ctx, id); return err })
	if err != nil {
		return nil, err
	}
	files := func(ctx context.Context) (iceio.IO, error) {
		fs, err := t.FS(ctx)
		if err != nil {
			return nil, err
		}
		return &faultyFiles{fs.(iceio.WriteFileIO), f}, nil
	}
	return table.New(id, t.Metadata(), t.MetadataLocation(), files, f), nil
}

func (f *faulty) CommitTable(ctx context.Context, id table.Identifier, reqs []table.Requirement, updates []table.Update) (md table.Metadata, loc string, err error) {
	err = f.do("commit", func() error { md, loc, err = f.Catalog.CommitTable(ctx, id, reqs, updates); return err })
	return md, loc, err
}

func (f *faulty) CreateTable(ctx context.Context, id table.Identifier, schema *icebergo.Schema, opts ...catalog.CreateTableOpt) (t *table.Table, err error) {
	err = f.do("create", func() error { t, err = f.Catalog.CreateTable(ctx, id, schema, opts...); return err })
	return t, err
}

type faultyFiles struct {
	iceio.WriteFileIO
	f *faulty
}

func (f *faultyFiles) Create(name string) (w iceio.FileWriter, err error) {
	err = f.f.do("file", func() error { w, err = f.WriteFileIO.Create(name); return err })
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (f *faultyFiles) Remove(name string) error {
	return f.f.do("remove", func() error { return f.WriteFileIO.Remove(name) })
}

// memoryPlace is a catalog whose files are in memory, and whose SQLite file is not synchronized.
func memoryPlace(t *testing.T) iceberg.Catalog {
	dir := t.TempDir()
	return sqlite.Named("default", dir+"/catalog.db", "mem://"+fmt.Sprint(rand.Uint64()), map[string]string{
		"uri": "file:" + dir + "/catalog.db?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate"})
}

const (
	inputPartitions = 3
	inputRows       = 40 // of each partition
)

// newInstance lands the input in a table whose catalog and files fail by a plan. plan is looked at whenever the instance is started.
func newInstance(t *testing.T, r *rand.Rand, cat iceberg.Catalog, plan *func(string) fault) *sinktest.Instance {
	return &sinktest.Instance{T: t, Rand: r, Crashed: errCrashed,
		// iceberg-go makes one error of several, and not always so that they can be told apart.
		Explained: []error{errFault, errCrashed, catalog.ErrTableAlreadyExists},
		Input:     &sinktest.Input{Partitions: inputPartitions, Rows: inputRows, Part: part, Add: addNumbered},
		Open: func(context.Context) (sink.Writer, error) {
			s := iceberg.Table("db.t", cat, iceberg.Compression("snappy", 0), iceberg.PartitionBy(iceberg.Bucket(2, "o")))
			iceberg.WithCatalog(s, func(c catalog.Catalog) catalog.Catalog { return &faulty{Catalog: c, plan: *plan} })
			return tryOpen[string, numbered](s)
		}}
}

// addNumbered adds a row; one record in four is a tombstone or dead letter, which only moves.
func addNumbered(b sink.Batch, n int32, o int64) error {
	if o%4 == 3 {
		return nil
	}
	return b.Append(nil, &numbered{n, o, fmt.Sprint("row ", o)}, &sink.Meta{Topic: "orders", Partition: n, Offset: o})
}

// TestEveryRowOnceWhateverHappens runs two instances in turn over a catalog and files that fail, lose replies, refuse, and let
// processes die before and after any operation, while others commit to the table, too. Whatever happens, the rows are the input, each
// once.
func TestEveryRowOnceWhateverHappens(t *testing.T) {
	iceberg.ShortPauses()
	var landed, fenced, failed int
	for seed := range uint64(12) {
		for _, i := range landUnderFaults(t, seed) {
			landed, fenced, failed = landed+i.Landed, fenced+i.Fenced, failed+i.Failed
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d batches landed, %d were fenced, %d attempts failed", landed, fenced, failed)
	if landed == 0 || fenced == 0 || failed == 0 {
		t.Error("the faults don't show")
	}
}

func faultPlan(seed uint64) func(string) fault {
	r := rand.New(rand.NewPCG(seed, 2))
	rate := r.IntN(30) + 4
	var mu sync.Mutex
	return func(string) fault {
		mu.Lock()
		defer mu.Unlock()
		if r.IntN(rate) != 0 {
			return noFault
		}
		return fault(1 + r.IntN(5))
	}
}

func landUnderFaults(t *testing.T, seed uint64) [2]*sinktest.Instance {
	r := rand.New(rand.NewPCG(seed, 1))
	cat, plan := memoryPlace(t), faultPlan(seed)
	both := [2]*sinktest.Instance{newInstance(t, r, cat, &plan), newInstance(t, r, cat, &plan)}
	var noFaults func(string) fault
	foreign := newInstance(t, r, cat, &noFaults)
	sinktest.Weather(t, r, both, func() bool { return allLanded(t, foreign) }, func() { plan = nil }, func(n int) {
		if r.IntN(20) != 0 || foreign.Writer() == nil {
			return
		}
		tx := iceberg.TableOf(foreign.Writer()).NewTransaction()
		if err := tx.SetProperties(icebergo.Properties{"foreign": fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
	})
	checkLanded(t, iceberg.TableOf(foreign.Writer()))
	foreign.Die()
	return both
}

// allLanded reads the progress by a writer without faults.
func allLanded(t *testing.T, foreign *sinktest.Instance) bool {
	if !foreign.Start(ctx) {
		return false
	}
	for n := range int32(inputPartitions) {
		if progress(t, foreign.Writer(), n) != inputRows {
			return false
		}
	}
	return true
}

// checkLanded compares the table with the input: each record that makes a row exactly once.
func checkLanded(t *testing.T, tbl *table.Table) {
	t.Helper()
	seen := map[string]int{}
	_, batches, err := tbl.Scan().ToArrowRecords(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range batches {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(rec.NumRows()) {
			seen[rec.Column(0).ValueStr(i)+" "+rec.Column(1).ValueStr(i)]++
		}
	}
	want := 0
	for n := range inputPartitions {
		for o := range inputRows {
			if o%4 == 3 {
				continue
			}
			want++
			if c := seen[fmt.Sprint(n, " ", o)]; c != 1 {
				t.Errorf("record %d of partition %d is in the table %d times", o, n, c)
			}
		}
	}
	if len(seen) != want {
		t.Errorf("%d different rows, want %d", len(seen), want)
	}
}

// TestWriteAfterOneFault breaks each operation of a commit in turn, in each way, and lands the batch with the same or a new call.
func TestCommitSurvivesAnyOneFault(t *testing.T) {
	iceberg.ShortPauses()
	for _, kind := range []fault{fail, loseReply, lose} {
		for nth := 1; ; nth++ {
			calls, armed := 0, false
			cat := memoryPlace(t)
			s := iceberg.Table("db.t", cat)
			iceberg.WithCatalog(s, func(c catalog.Catalog) catalog.Catalog {
				return &faulty{Catalog: c, plan: func(string) fault {
					if armed {
						if calls++; calls == nth {
							return kind
						}
					}
					return noFault
				}}
			})
			w, err := tryOpen[string, numbered](s)
			if err != nil {
				t.Fatal(err)
			}
			land(t, w, 0, 0, 5)
			b := fill(t, w, 0, 5, 9)
			armed = true
			moves := []sink.Move{move(0, 5, 9)}
			if _, err = w.Commit(ctx, b, moves); err != nil {
				if !errors.Is(err, errFault) {
					t.Errorf("fault %d at operation %d: %v", kind, nth, err)
				}
				_, err = w.Commit(ctx, b, moves)
			}
			armed = false
			b.Release()
			if err != nil {
				t.Errorf("fault %d at operation %d: the same call again: %v", kind, nth, err)
			}
			if rows := iceberg.TableOf(w).CurrentSnapshot().Summary.Properties["total-records"]; rows != "9" || progress(t, w, 0) != 9 {
				t.Errorf("fault %d at operation %d: %s rows, progress %d; want 9", kind, nth, rows, progress(t, w, 0))
			}
			w.Close()
			if calls < nth {
				break
			}
		}
	}
}
