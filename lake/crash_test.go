package lake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// numbered is a row that says which input record it is.
type numbered struct {
	P int32 `lake:"p"`
	O int64 `lake:"o"`
	S string
}

const (
	inputPartitions = 3
	inputRows       = 40 // of each partition
)

// instance is one process that lands the input: it reads the table's progress, takes some records, and commits them. It may die
// at any operation of its store, and is then started again on what it left.
type instance struct {
	t     *testing.T
	r     *rand.Rand
	inner object.Store
	plan  func(object.Call) object.Fault
	w     sink.Writer
	at    map[sink.Partition]int64 // where the next batch starts; nil: ask the table
	state *stateInput              // nil: rows are appended
}

func (i *instance) start() bool {
	faulty := &object.Faulty{Inner: i.inner, Plan: i.plan}
	inline := func(o *options) { o.inlineUpkeep = true }
	// Not zstd: its compressors are kept for other tests, which may not use what was made in a bubble of time.
	opts := []Option{Store(faulty), inline, Compression("snappy", 0), Properties(map[string]string{"delta.checkpointInterval": "3"})}
	s, value := Delta("mem", opts...), reflect.TypeFor[numbered]()
	if i.state != nil {
		s, value = membersOf(faulty, append(opts, i.state.opts...)...), reflect.TypeFor[member]()
	}
	if err := s.Bind(reflect.TypeFor[string](), value); err != nil {
		i.t.Fatal(err)
	}
	// An outcome in doubt is pursued until the context ends, even after a "crash", which real processes don't outlive.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	w, err := s.Open(ctx, testEnv())
	if err != nil {
		i.check(err)
		return false
	}
	i.w, i.at = w, nil
	return true
}

func (i *instance) die() {
	if i.w != nil {
		if err := i.w.Close(); err != nil {
			i.t.Error(err)
		}
	}
	i.w = nil
}

// check accepts the errors that faults may cause, and no others.
func (i *instance) check(err error) {
	for _, ok := range []error{object.ErrFault, object.ErrCrashed, object.ErrNoSpace, object.ErrUnknown, context.DeadlineExceeded} {
		if errors.Is(err, ok) {
			return
		}
	}
	i.t.Errorf("an error that no fault explains: %v", err)
}

// step lands one batch, or fails trying.
func (i *instance) step() {
	if i.w == nil && !i.start() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if i.at == nil && !i.seek(ctx) {
		return
	}
	b := i.w.NewBatch()
	defer b.Release()
	moves := i.take(b)
	_, err := i.w.Commit(ctx, b, moves)
	for try := 0; err != nil && try < 3 && !sink.IsFenced(err) && !errors.Is(err, object.ErrCrashed); try++ {
		i.check(err)
		_, err = i.w.Commit(ctx, b, moves) // "the same call may be made again"
	}
	switch {
	case err == nil:
		for _, m := range moves {
			i.at[m.Partition] = m.To
		}
	case sink.IsFenced(err):
		i.at = nil
	default:
		i.check(err)
		i.at = nil
		if errors.Is(err, object.ErrCrashed) {
			i.die()
		}
	}
}

func (i *instance) seek(ctx context.Context) bool {
	var parts []sink.Partition
	for n := range int32(inputPartitions) {
		parts = append(parts, part(n))
	}
	at, err := i.w.Progress(ctx, parts)
	if err != nil {
		i.check(err)
		if errors.Is(err, object.ErrCrashed) {
			i.die()
		}
		return false
	}
	i.at = at
	return true
}

// take fills a batch with the next records of some partitions; one in four is a tombstone or dead letter, which only moves.
func (i *instance) take(b sink.Batch) (moves []sink.Move) {
	for n := range int32(inputPartitions) {
		from := i.at[part(n)]
		next := max(from, 0)
		to := min(next+i.r.Int64N(8), inputRows)
		if to == next && from != sink.NoOffset || i.r.IntN(4) == 0 {
			continue
		}
		for o := next; o < to; o++ {
			if o%4 == 3 {
				continue
			}
			var row any = &numbered{n, o, fmt.Sprint("row ", o)}
			if i.state != nil {
				row = i.state.change(n, o)
			}
			if err := b.Append(nil, row, &sink.Meta{Topic: "orders", Partition: n, Offset: o}); err != nil {
				i.t.Error(err)
			}
		}
		moves = append(moves, sink.Move{Partition: part(n), From: from, To: to})
	}
	return moves
}

// checkLanded compares the table with the input: each record that makes a row exactly once, and progress at the end.
func checkLanded(t *testing.T, store object.Store) {
	t.Helper()
	seen := map[numbered]int{}
	for _, row := range allRows(t, store) {
		seen[numbered{row["p"].(int32), row["o"].(int64), row["S"].(string)}]++
	}
	want := 0
	for n := range int32(inputPartitions) {
		for o := range int64(inputRows) {
			if o%4 == 3 {
				continue
			}
			want++
			if c := seen[numbered{n, o, fmt.Sprint("row ", o)}]; c != 1 {
				t.Errorf("record %d of partition %d is in the table %d times", o, n, c)
			}
		}
	}
	if len(seen) != want {
		t.Errorf("%d different rows, want %d", len(seen), want)
	}
}

func (i *instance) done(store object.Store) bool {
	table, err := delta.Open(ctx, store, delta.Options{})
	if errors.Is(err, delta.ErrNoTable) {
		return false
	}
	if err != nil {
		i.t.Fatal(err)
	}
	w := &writer{sink: &deltaSink{}, env: testEnv()}
	for n := range int32(inputPartitions) {
		if w.offset(table.Head(), part(n)) != inputRows {
			return false
		}
	}
	return true
}

// TestEveryRowOnceWhateverHappens runs two instances in turn over a store that fails, loses replies, runs full, and lets processes
// die before, in the middle of and after any operation, while others change the table's metadata and compact its files. Whatever happens, the rows are the input, each
// once. Time is that of a bubble, since retries wait.
func TestEveryRowOnceWhateverHappens(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) { landUnderFaults(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// faultPlan draws a fault for one in some number of operations.
func faultPlan(seed uint64) func(object.Call) object.Fault {
	faults := []object.Fault{object.Fail, object.LoseReply, object.Doubt, object.NoSpace, object.Crash, object.CrashAfter, object.Torn}
	r := rand.New(rand.NewPCG(seed, 2))
	rate := r.IntN(30) + 3
	var mu sync.Mutex
	return func(c object.Call) object.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.IntN(rate) != 0 {
			return object.NoFault
		}
		fault := faults[r.IntN(len(faults))]
		if fault == object.Torn && isEntry(c.Name) {
			return object.Crash // a store whose put-if-absent leaves half an entry is none that a table can be on
		}
		return fault
	}
}

// isEntry tells the log's entries from data files, checkpoints, checksums and the pointer to the last checkpoint.
func isEntry(name string) bool {
	return strings.HasPrefix(name, "_delta_log/") && strings.HasSuffix(name, ".json")
}

// weather lets processes take steps under faults, while others change metadata and rewrite files, until all has landed.
func weather(t *testing.T, r *rand.Rand, store object.Store, procs []*instance, rewrite func()) {
	for n := 0; n%10 != 0 || !procs[0].done(store); n++ {
		switch n {
		case 400: // enough of faults: let it end
			for _, p := range procs {
				p.die()
				p.plan = nil
			}
		case 3000:
			t.Fatal("no end")
		}
		procs[r.IntN(2)].step()
		if r.IntN(25) == 0 && logEntries(t, store) > 0 {
			changeMetadata(t, store, r, n)
		}
		if r.IntN(25) == 0 && logEntries(t, store) > 0 {
			rewrite()
		}
	}
	for _, p := range procs {
		p.die()
	}
}

func landUnderFaults(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	store := object.NewMemory("t")
	plan := faultPlan(seed)
	procs := []*instance{{t: t, r: r, inner: store, plan: plan}, {t: t, r: r, inner: store, plan: plan}}
	weather(t, r, store, procs, func() { rewriteFiles(t, store, r) })
	checkLanded(t, store)
}

// changeMetadata sets a comment, and sometimes adds a column, as another engine would.
func changeMetadata(t *testing.T, store object.Store, r *rand.Rand, n int) {
	foreignMetadata(t, store, func(m *delta.Metadata) *delta.Metadata {
		f := slices.Clone(m.Schema.Fields)
		f[0].Metadata = f[0].Metadata.With("comment", fmt.Sprint("change ", n))
		if r.IntN(3) == 0 {
			f = append(f, delta.Field{Name: fmt.Sprint("extra", n), Type: delta.Long, Nullable: true})
		}
		return m.WithSchema(&delta.StructType{Fields: f})
	})
}

// rewriteFiles puts other files with the same rows in the place of some, as another engine's compaction does: one commit that changes no data.
func rewriteFiles(t *testing.T, store object.Store, r *rand.Rand) {
	t.Helper()
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	entry := []byte(`{"commitInfo":{"timestamp":1,"operation":"OPTIMIZE","engineInfo":"another"}}` + "\n")
	for add, err := range snap.Files(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if r.IntN(2) == 0 {
			continue
		}
		data, err := store.Get(ctx, add.Path) // our names are never escaped
		if err != nil {
			t.Fatal(err)
		}
		name := delta.NewDataFileName("snappy")
		if err := store.Put(ctx, name, data); err != nil {
			t.Fatal(err)
		}
		for kind, action := range map[string]map[string]any{
			"remove": {"path": add.Path, "deletionTimestamp": 1, "dataChange": false, "partitionValues": map[string]string{}, "size": add.Size},
			"add":    {"path": name, "partitionValues": map[string]string{}, "size": add.Size, "modificationTime": 1, "dataChange": false, "stats": add.Stats},
		} {
			line, err := json.Marshal(map[string]any{kind: action})
			if err != nil {
				t.Fatal(err)
			}
			entry = append(append(entry, line...), '\n')
		}
	}
	if err := store.PutIfAbsent(ctx, fmt.Sprintf("_delta_log/%020d.json", snap.Head.Version+1), entry); err != nil {
		t.Fatal(err)
	}
}

// TestConcurrentInstances lets four instances that all believe to own every partition land the input at once.
func TestConcurrentInstances(t *testing.T) {
	_, store := localStore(t)
	probe := &instance{t: t}
	var wg sync.WaitGroup
	for n := range uint64(4) {
		wg.Go(func() {
			i := &instance{t: t, r: rand.New(rand.NewPCG(n, 3)), inner: store}
			for steps := 0; steps < 5000; steps++ {
				i.step()
				if i.at != nil && i.at[part(0)] == inputRows && i.at[part(1)] == inputRows && i.at[part(2)] == inputRows {
					break
				}
			}
			i.die()
		})
	}
	wg.Wait()
	if !probe.done(store) {
		t.Error("the input has not landed whole")
	}
	checkLanded(t, store)
}
