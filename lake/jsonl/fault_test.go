package jsonl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// instance is one process that lands the input: it reads the landing's progress, takes some records, and commits them. It may die at any
// operation of its store, and is then started again on what it left.
type instance struct {
	t     *testing.T
	r     *rand.Rand
	inner object.Store
	plan  func(object.Call) object.Fault
	w     sink.Writer
	at    map[sink.Partition]int64 // where the next batch starts; nil: ask the landing
}

func (i *instance) start(ctx context.Context) bool {
	faulty := &object.Faulty{Inner: i.inner, Plan: i.plan}
	s := Sink("t", Store(faulty))
	w, err := tryOpenIn(ctx, s)
	if err != nil {
		i.check(err)
		return false
	}
	i.w, i.at = w, nil
	return true
}

func tryOpenIn(ctx context.Context, s sink.Sink) (sink.Writer, error) {
	if err := s.Bind(textType, bytesType); err != nil {
		return nil, err
	}
	return s.Open(ctx, testEnv())
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
	// An outcome in doubt is pursued until the context ends, even after a "crash", which real processes don't outlive.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if i.w == nil && !i.start(ctx) {
		return
	}
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
			i.w = nil
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
			i.w = nil
		}
		return false
	}
	i.at = at
	return true
}

// take fills a batch with the next records of some partitions.
func (i *instance) take(b sink.Batch) (moves []sink.Move) {
	for n := range int32(inputPartitions) {
		from := i.at[part(n)]
		next := max(from, 0)
		to := min(next+i.r.Int64N(8), inputRows)
		if to == next && from != sink.NoOffset || i.r.IntN(4) == 0 {
			continue
		}
		for o := next; o < to; o++ {
			text := map[string]string{"row": fmt.Sprintf(`{"p":%d,"o":%d}`, n, o), "tombstone": "", "reject": "{"}[kind(o)]
			if err := add(b, "k", text, meta(n, o)); (err != nil) != (kind(o) == "reject") {
				i.t.Error(err)
			}
		}
		moves = append(moves, sink.Move{Partition: part(n), From: from, To: to})
	}
	return moves
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
	procs := []*instance{{t: t, r: r, inner: store, plan: plan}, {t: t, r: r, inner: store, plan: plan}}
	for n := 0; n%10 != 0 || !done(t, store); n++ {
		switch n {
		case 400: // enough of faults: let it end
			for _, p := range procs {
				p.w, p.plan = nil, nil
			}
		case 3000:
			t.Fatal("no end")
		}
		procs[r.IntN(2)].step()
	}
	checkLanded(t, store)
}

// TestCrashAtEachOperation lets the process die before, and after, each single operation of a commit, and lands the rest with another.
func TestCrashAtEachOperation(t *testing.T) {
	for _, fault := range []object.Fault{object.Crash, object.CrashAfter, object.LoseReply, object.Doubt, object.Fail} {
		for n := 1; ; n++ {
			store := object.NewMemory("t")
			calls := 0
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 1))
				var mu sync.Mutex
				first := &instance{t: t, r: r, inner: store, plan: func(object.Call) object.Fault {
					mu.Lock()
					defer mu.Unlock()
					if calls++; calls == n {
						return fault
					}
					return object.NoFault
				}}
				for range 3 {
					first.step()
				}
				second := &instance{t: t, r: r, inner: store}
				for !done(t, store) {
					second.step()
				}
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
		})
	}
	wg.Wait()
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
	got, err := w.Progress(ctx, []sink.Partition{part(0)})
	for from := got[part(0)]; err == nil && from < until; {
		next := max(from, 0)
		to := min(next+1+rand.Int64N(20), until)
		b := w.NewBatch()
		for o := next; o < to; o++ {
			m := meta(0, o)
			m.Timestamp += o % 3 * msPerDay // three files each time
			if err := add(b, "k", fmt.Sprintf(`{"o":%d}`, o), m); err != nil {
				return err
			}
		}
		_, err = w.Commit(ctx, b, []sink.Move{move(0, from, to)})
		b.Release()
		from = to
	}
	return err
}

func landUntilKilled(dir string) {
	if err := landSome(dir, 1<<40); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestKill9 kills a landing process again and again, at any moment. Every offset up to the end has its row, once, and DuckDB counts the same
// in the files that the manifests name.
func TestKill9(t *testing.T) {
	dir := t.TempDir()
	for range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(100+rand.IntN(200)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("the landing process ended by itself: %v", err)
		}
	}
	l, err := Open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	next, err := l.Next(ctx, part(0))
	if err != nil {
		t.Fatal(err)
	}
	until := max(next, 0) + 100
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
