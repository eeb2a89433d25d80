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

	"github.com/tributary-io/tributary/internal/sinktest"
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

// input is what instances land; one record in four is a tombstone or dead letter, which only moves. add makes a row of the others.
func input(add func(b sink.Batch, n int32, o int64) error) *sinktest.Input {
	return &sinktest.Input{Partitions: inputPartitions, Rows: inputRows, Part: part, Add: func(b sink.Batch, n int32, o int64) error {
		if o%4 == 3 {
			return nil
		}
		return add(b, n, o)
	}}
}

func addNumbered(b sink.Batch, n int32, o int64) error {
	return b.Append(nil, &numbered{n, o, fmt.Sprint("row ", o)}, &sink.Meta{Topic: "orders", Partition: n, Offset: o})
}

// newInstance lands rows in the table on a store, which fails by a plan. plan is looked at whenever the instance is started.
func newInstance(t *testing.T, r *rand.Rand, store object.Store, plan *func(object.Call) object.Fault) *sinktest.Instance {
	i := failingInstance(t, r)
	i.Input = input(addNumbered)
	i.Open = func(ctx context.Context) (sink.Writer, error) {
		faulty := &object.Faulty{Inner: store, Plan: *plan}
		return openIn[numbered](ctx, Delta("mem", append(weatherOptions(), Store(faulty))...))
	}
	return i
}

// failingInstance is an instance whose store may fail.
func failingInstance(t *testing.T, r *rand.Rand) *sinktest.Instance {
	return &sinktest.Instance{T: t, Rand: r, Crashed: object.ErrCrashed, Patience: 10 * time.Second,
		Explained: []error{object.ErrFault, object.ErrCrashed, object.ErrNoSpace, object.ErrUnknown, context.DeadlineExceeded}}
}

// weatherOptions are those of sinks under faults. Not zstd: its compressors are kept for other tests, which may not use what was made in a bubble of time.
func weatherOptions() []Option {
	return []Option{func(o *options) { o.inlineUpkeep = true }, Compression("snappy", 0), Properties(map[string]string{"delta.checkpointInterval": "3"})}
}

func openIn[V any](ctx context.Context, s sink.Sink) (sink.Writer, error) {
	if err := s.Bind(reflect.TypeFor[string](), reflect.TypeFor[V]()); err != nil {
		return nil, err
	}
	return s.Open(ctx, testEnv())
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

// allLanded reports whether the table's progress is that of the whole input.
func allLanded(t *testing.T, store object.Store) bool {
	t.Helper()
	table, err := delta.Open(ctx, store, delta.Options{})
	if errors.Is(err, delta.ErrNoTable) {
		return false
	}
	if err != nil {
		t.Fatal(err)
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

// weather lets two instances land under faults, while others change metadata and rewrite files, until all has landed.
func weather(t *testing.T, r *rand.Rand, store object.Store, both [2]*sinktest.Instance, plan *func(object.Call) object.Fault, rewrite func()) {
	t.Helper()
	sinktest.Weather(t, r, both, func() bool { return allLanded(t, store) }, func() { *plan = nil }, func(n int) {
		if r.IntN(25) == 0 && logEntries(t, store) > 0 {
			changeMetadata(t, store, r, n)
		}
		if r.IntN(25) == 0 && logEntries(t, store) > 0 {
			rewrite()
		}
	})
}

func landUnderFaults(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	store := object.NewMemory("t")
	plan := faultPlan(seed)
	both := [2]*sinktest.Instance{newInstance(t, r, store, &plan), newInstance(t, r, store, &plan)}
	weather(t, r, store, both, &plan, func() { rewriteFiles(t, store, r) })
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
	var noFaults func(object.Call) object.Fault
	sinktest.Crowd(func(n uint64) *sinktest.Instance {
		return newInstance(t, rand.New(rand.NewPCG(n, 3)), store, &noFaults)
	})
	if !allLanded(t, store) {
		t.Error("the input has not landed whole")
	}
	checkLanded(t, store)
}
