package jsonl

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-io/tributary/internal/sinktest"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

const (
	inputPartitions = 3
	inputRows       = 40 // of each partition; one in four is a reject, one in eight a tombstone
)

// kind says what the record at an offset is.
func kind(offset int64) string {
	switch {
	case offset%4 == 3:
		return "reject"
	case offset%8 == 1:
		return "tombstone"
	}
	return "row"
}

// newInstance lands the input on a store, which fails by a plan. plan is looked at whenever the instance is started.
func newInstance(t *testing.T, r *rand.Rand, store object.Store, plan *func(object.Call) object.Fault) *sinktest.Instance {
	return &sinktest.Instance{T: t, Rand: r, Crashed: object.ErrCrashed, Patience: 10 * time.Second,
		Explained: []error{object.ErrFault, object.ErrCrashed, object.ErrNoSpace, object.ErrUnknown, context.DeadlineExceeded},
		Input:     &sinktest.Input{Partitions: inputPartitions, Rows: inputRows, Part: part, Add: addKind},
		Open: func(ctx context.Context) (sink.Writer, error) {
			s := Sink("t", Store(&object.Faulty{Inner: store, Plan: *plan}))
			if err := s.Bind(textType, bytesType); err != nil {
				return nil, err
			}
			return s.Open(ctx, testEnv())
		}}
}

// addKind adds the record at an offset; a reject is an error of that record alone.
func addKind(b sink.Batch, n int32, o int64) error {
	text := map[string]string{"row": fmt.Sprintf(`{"p":%d,"o":%d}`, n, o), "tombstone": "", "reject": "{"}[kind(o)]
	err := add(b, "k", text, meta(n, o))
	if (err != nil) != (kind(o) == "reject") {
		return fmt.Errorf("a %s gives %v", kind(o), err)
	}
	return nil
}

// checkLanded compares the landing with the input: each record that makes a row exactly once, everything else counted.
func checkLanded(t *testing.T, store object.Store) {
	t.Helper()
	seen := map[string]int{}
	for _, r := range rows(t, store, Select{}) {
		seen[fmt.Sprint(r.Partition, "/", r.Offset)]++
		if want := fmt.Sprintf(`{"p":%d,"o":%d}`, r.Partition, r.Offset); string(r.Value) != want {
			t.Errorf("%s at %d/%d", r.Value, r.Partition, r.Offset)
		}
	}
	var want Coverage
	for o := range int64(inputRows) {
		switch kind(o) {
		case "row":
			want.Rows++
		case "reject":
			want.Rejects++
		default:
			want.Tombstones++
		}
	}
	for n := range int32(inputPartitions) {
		for o := range int64(inputRows) {
			if c := seen[fmt.Sprint(n, "/", o)]; kind(o) == "row" && c != 1 {
				t.Errorf("record %d of partition %d is there %d times", o, n, c)
			}
		}
		c, err := OpenStore(store).Coverage(ctx, part(n))
		if err != nil || c.Next != inputRows || c.First != 0 || c.Rows != want.Rows || c.Rejects != want.Rejects || c.Tombstones != want.Tombstones {
			t.Errorf("partition %d: %+v, %v", n, c, err)
		}
	}
	if int64(len(seen)) != want.Rows*inputPartitions {
		t.Errorf("%d different rows, want %d", len(seen), want.Rows*inputPartitions)
	}
}

func done(t *testing.T, store object.Store) bool {
	for n := range int32(inputPartitions) {
		next, err := OpenStore(store).Next(ctx, part(n))
		if err != nil {
			t.Fatal(err)
		}
		if next != inputRows {
			return false
		}
	}
	return true
}

// faultPlan draws a fault for one in some number of operations.
func faultPlan(seed uint64) func(object.Call) object.Fault {
	faults := []object.Fault{object.Fail, object.LoseReply, object.Doubt, object.NoSpace, object.Crash, object.CrashAfter}
	r := rand.New(rand.NewPCG(seed, 2))
	rate := r.IntN(30) + 3
	var mu sync.Mutex
	return func(object.Call) object.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.IntN(rate) != 0 {
			return object.NoFault
		}
		return faults[r.IntN(len(faults))]
	}
}

// TestEveryRowOnceWhateverHappens runs two instances in turn over a store that fails, loses replies, runs full, and lets processes die
// before and after any operation. Whatever happens, the rows are the input, each once. Time is that of a bubble, since retries wait.
func TestEveryRowOnceWhateverHappens(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) { landUnderFaults(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func landUnderFaults(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	store := object.NewMemory("t")
	plan := faultPlan(seed)
	both := [2]*sinktest.Instance{newInstance(t, r, store, &plan), newInstance(t, r, store, &plan)}
	sinktest.Weather(t, r, both, func() bool { return done(t, store) }, func() { plan = nil }, nil)
	checkLanded(t, store)
}

var noFaults func(object.Call) object.Fault

// TestCrashAtEachOperation lets the process die before, and after, each single operation of a commit, and lands the rest with another.
func TestCrashAtEachOperation(t *testing.T) {
	for _, fault := range []object.Fault{object.Crash, object.CrashAfter, object.LoseReply, object.Doubt, object.Fail} {
		for n := 1; ; n++ {
			store := object.NewMemory("t")
			calls := 0
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 1))
				var mu sync.Mutex
				plan := func(object.Call) object.Fault {
					mu.Lock()
					defer mu.Unlock()
					if calls++; calls == n {
						return fault
					}
					return object.NoFault
				}
				first := newInstance(t, r, store, &plan)
				for range 3 {
					first.Step()
				}
				first.Die()
				second := newInstance(t, r, store, &noFaults)
				for !done(t, store) {
					second.Step()
				}
				second.Die()
				checkLanded(t, store)
			})
			if t.Failed() {
				t.Fatalf("fault %d at operation %d", fault, n)
			}
			if calls < n {
				break
			}
		}
	}
}

// TestConcurrentInstances lets four instances that all believe to own every partition land the input at once, on a disk.
func TestConcurrentInstances(t *testing.T) {
	store, err := object.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sinktest.Crowd(func(n uint64) *sinktest.Instance {
		return newInstance(t, rand.New(rand.NewPCG(n, 3)), store, &noFaults)
	})
	checkLanded(t, store)
}

// childVariable names the folder that a child process of the test lands rows in.
const childVariable = "JSONL_TEST_LANDS_IN"

// landSome lands rows from the landing's progress on, a random number at a time, until an offset.
func landSome(dir string, until int64) error {
	w, err := tryOpen[string, []byte](Sink(dir), testEnv())
	if err != nil {
		return err
	}
	defer w.Close()
	return sinktest.Advance(w, part(0), until, 20, func(b sink.Batch, o int64) error {
		m := meta(0, o)
		m.Timestamp += o % 3 * msPerDay // three files each time
		return add(b, "k", fmt.Sprintf(`{"o":%d}`, o), m)
	})
}

// TestKill9 kills a landing process again and again, at any moment. Every offset up to the end has its row, once, and DuckDB counts the same
// in the files that the manifests name.
func TestKill9(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	var next int64
	sinktest.KillLoop(t, 8, childVariable, dir, 100*time.Millisecond, 300*time.Millisecond, func() bool {
		if next, err = l.Next(ctx, part(0)); err != nil {
			t.Fatal(err)
		}
		return next > 0
	})
	until := next + 100
	if err := landSome(dir, until); err != nil {
		t.Fatal(err)
	}
	seen := make([]int, until)
	for _, r := range rows(t, l.store, Select{}) {
		seen[r.Offset]++
	}
	for o, n := range seen {
		if n != 1 {
			t.Fatalf("offset %d is there %d times", o, n)
		}
	}
	duck := countByDuckDB(t, readers.Open(t), dir, Select{})
	if duck.Rows != until || duck.Offsets != until || duck.Largest != until-1 {
		t.Errorf("DuckDB finds %+v, want %d rows", duck, until)
	}
}
