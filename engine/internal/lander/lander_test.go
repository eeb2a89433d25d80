package lander

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/lake/sink"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var part = sink.Partition{Topic: "t", Partition: 3}

// writer is a table in memory. It panics where two of its methods run at once: the contract forbids that.
type writer struct {
	using sync.Mutex

	mu       sync.Mutex
	progress int64
	rows     []int
	answers  []error       // for the next commits
	hold     chan struct{} // if set, a commit waits for it
	refuses  error         // to be opened
	opened   int
}

func (w *writer) use() func() {
	if !w.using.TryLock() {
		panic("two goroutines use the writer")
	}
	return w.using.Unlock
}

func (w *writer) Progress(context.Context, []sink.Partition) (map[sink.Partition]int64, error) {
	defer w.use()()
	w.mu.Lock()
	defer w.mu.Unlock()
	return map[sink.Partition]int64{part: w.progress}, nil
}

func (w *writer) NewBatch() sink.Batch { defer w.use()(); return &batch{} }

func (w *writer) Commit(ctx context.Context, b sink.Batch, moves []sink.Move) (sink.Commit, error) {
	defer w.use()()
	if w.hold != nil {
		select {
		case <-w.hold:
		case <-ctx.Done():
			return sink.Commit{}, ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.answers) > 0 {
		err := w.answers[0]
		w.answers = w.answers[1:]
		if err != nil {
			return sink.Commit{}, err
		}
	}
	if moves[0].From != w.progress {
		return sink.Commit{}, &sink.FencedError{Want: moves[0].From, Got: w.progress}
	}
	w.progress = moves[0].To
	w.rows = append(w.rows, b.(*batch).rows...)
	return sink.Commit{Rows: int64(b.Rows())}, nil
}

func (w *writer) Close() error { return nil }

func (w *writer) landed() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]int(nil), w.rows...)
}

type batch struct {
	rows     []int
	released bool
}

func (b *batch) Append(_, value any, _ *sink.Meta) error {
	if b.released {
		panic("a row for a batch that was released")
	}
	b.rows = append(b.rows, value.(int))
	return nil
}
func (b *batch) Rows() int    { return len(b.rows) }
func (b *batch) Bytes() int64 { return int64(10 * len(b.rows)) }
func (b *batch) Release()     { b.released = true }

type bench struct {
	*Lander
	t       *testing.T
	w       *writer
	now     time.Time
	results chan Result
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, w: &writer{progress: sink.NoOffset}, now: time.Unix(1000, 0), results: make(chan Result, 10)}
	b.Lander = New("sink", func(context.Context) (sink.Writer, error) { b.w.opened++; return b.w, b.w.refuses }, Limits{Rows: 3, Bytes: 1000, Every: time.Minute}, func() time.Time { return b.now },
		slog.New(slog.DiscardHandler), func(r Result) { b.results <- r })
	if err := b.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.own()
	return b
}

func (b *bench) own() {
	p, err := b.Progress(b.t.Context(), []sink.Partition{part})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Own(p, nil)
}

// feed appends rows of records from one offset to another.
func (b *bench) feed(from, to int64) {
	b.t.Helper()
	for o := from; o < to; o++ {
		if err := b.Append(part, o, nil, int(o), &sink.Meta{}); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) cut(to int64) bool {
	return b.Cut(b.t.Context(), map[sink.Partition]int64{part: to})
}

func (b *bench) result() Result {
	b.t.Helper()
	select {
	case r := <-b.results:
		return r
	case <-time.After(time.Minute):
		b.t.Fatal("no result")
		return Result{}
	}
}

func (b *bench) want(rows ...int) {
	b.t.Helper()
	if d := cmp.Diff(rows, b.w.landed()); d != "" {
		b.t.Fatal(d)
	}
}

func TestDueByRowsAndByTheClock(t *testing.T) {
	b := newBench(t)
	if b.feed(0, 2); b.Due() {
		t.Fatal("due with two of three rows")
	}
	if b.feed(2, 3); !b.Due() || !b.Full() {
		t.Fatal("not due with three rows")
	}
	b.cut(3)
	b.result()
	b.feed(3, 4)
	b.now = b.now.Add(59 * time.Second)
	if b.Due() {
		t.Fatal("due before its time")
	}
	b.now = b.now.Add(time.Second)
	if !b.Due() {
		t.Fatal("not due after a minute, though nothing else comes")
	}
}

func TestRowsGoIntoTheNextBatchDuringACommit(t *testing.T) {
	b := newBench(t)
	b.w.hold = make(chan struct{})
	b.feed(0, 3)
	if !b.cut(3) {
		t.Fatal("nothing to cut")
	}
	b.feed(3, 5)
	if b.cut(5) || !b.Busy() {
		t.Fatal("two commits at once")
	}
	close(b.w.hold)
	if r := b.result(); r.Err != nil || b.Landed(part) != 3 {
		t.Fatalf("%v, landed %d", r.Err, b.Landed(part))
	}
	b.cut(5)
	b.result()
	b.want(0, 1, 2, 3, 4)
}

func TestRowsThatTheTableHasAreLeftOut(t *testing.T) {
	b := newBench(t)
	b.w.progress = 4
	b.own()
	b.feed(0, 6)
	b.cut(6)
	b.result()
	b.want(4, 5)
}

func TestProgressAloneIsCommittedSeldom(t *testing.T) {
	b := newBench(t)
	if b.cut(0) != true { // from none to 0: the first sight
		t.Fatal("no first commit")
	}
	b.result()
	if b.cut(0) {
		t.Fatal("a commit where no offset moved")
	}
	b.now = b.now.Add(9 * time.Minute)
	if b.DueForProgress() {
		t.Fatal("due too early")
	}
	b.now = b.now.Add(time.Minute)
	if !b.DueForProgress() {
		t.Fatal("not due after ten times the limit")
	}
}

func TestFailuresThatLandedNothingAreTriedAgain(t *testing.T) {
	b := newBench(t)
	b.w.answers = []error{errors.New("away"), errors.New("still away")}
	b.feed(0, 3)
	b.cut(3)
	if r := b.result(); r.Err != nil {
		t.Fatal(r.Err)
	}
	b.want(0, 1, 2)
	if s := b.Stats(); s.Retries != 2 || s.Commits != 1 || s.Rows != 3 {
		t.Errorf("%+v", s)
	}
}

// After a lost race nothing that was appended may land, whatever comes before Restart; after it all comes once.
func TestFencedBatchIsReadAgain(t *testing.T) {
	b := newBench(t)
	b.w.hold = make(chan struct{})
	b.feed(0, 3)
	b.cut(3)
	b.feed(3, 5)
	b.w.mu.Lock()
	b.w.progress, b.w.rows = 2, []int{100, 101} // another writer was faster
	b.w.mu.Unlock()
	close(b.w.hold)
	if r := b.result(); !sink.IsFenced(r.Err) || !b.Stale() {
		t.Fatalf("got %v", r.Err)
	}
	b.feed(5, 9)
	if b.Due() || b.cut(9) {
		t.Fatal("a lander that lost rows goes on without them")
	}
	p, err := b.Progress(t.Context(), b.Owned())
	if err != nil {
		t.Fatal(err)
	}
	b.Restart(p)
	b.feed(0, 6)
	b.cut(6)
	if r := b.result(); r.Err != nil {
		t.Fatal(r.Err)
	}
	b.want(100, 101, 2, 3, 4, 5)
}

func TestRefusalIsFinal(t *testing.T) {
	b := newBench(t)
	b.w.answers = []error{&sink.RefusedError{Table: "t", Reason: "r", Advice: "a"}}
	b.feed(0, 1)
	b.cut(1)
	var refused *sink.RefusedError
	if r := b.result(); !errors.As(r.Err, &refused) {
		t.Fatalf("got %v", r.Err)
	}
}

func TestCommitEndsWithItsContext(t *testing.T) {
	b := newBench(t)
	b.w.hold = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	b.feed(0, 1)
	b.Cut(ctx, map[sink.Partition]int64{part: 1})
	cancel()
	if r := b.result(); !errors.Is(r.Err, context.Canceled) || b.Busy() {
		t.Fatalf("got %v", r.Err)
	}
}

func TestPartitionsThatAreGivenUpMoveNoMore(t *testing.T) {
	b := newBench(t)
	b.feed(0, 1)
	b.Disown(part)
	if b.cut(1) {
		t.Fatal("moved a partition that is another's: " + strconv.FormatInt(b.Landed(part), 10))
	}
}

// A task that is opened while a commit is under way asks the table afterwards; one that is shut meanwhile doesn't wait for that.
func TestProgressWaitsForACommitNoLongerThanItsContext(t *testing.T) {
	b := newBench(t)
	b.w.hold = make(chan struct{})
	b.feed(0, 2)
	b.cut(2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for len(b.io) > 0 {
		time.Sleep(time.Millisecond) // the commit is about to begin
	}
	if _, err := b.Progress(ctx, []sink.Partition{part}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
	close(b.w.hold)
	if p, err := b.Progress(t.Context(), []sink.Partition{part}); err != nil || p[part] != 2 {
		t.Errorf("got %v, %v, want what has landed", p, err)
	}
	b.result()
}

// A parked table takes no rows, and goes on from what it says when it is open again.
func TestParked(t *testing.T) {
	b := newBench(t)
	b.feed(0, 2)
	b.Park(errors.New("why"))
	b.now = b.now.Add(time.Minute)
	b.Park(errors.New("why still"))
	if s := b.Stats(); s.Parked == nil || s.Parked.Error() != "why still" || !s.ParkedSince.Equal(time.Unix(1000, 0)) || len(b.Owned()) != 0 || s.OpenRows != 0 {
		t.Errorf("parked: %+v, and %v are owned", s, b.Owned())
	}
	b.feed(2, 5)
	if b.Due() || b.Cut(t.Context(), map[sink.Partition]int64{part: 5}) {
		t.Error("a parked table was cut")
	}
	b.w.refuses = errors.New("still")
	if err := b.Open(t.Context()); err == nil {
		t.Error("it is open although it refuses")
	}
	b.w.refuses = nil
	if err := b.Open(t.Context()); err != nil || b.w.opened != 3 {
		t.Fatalf("opened %d times: %v", b.w.opened, err)
	}
	b.Unpark()
	b.own()
	b.feed(0, 3)
	if !b.Cut(t.Context(), map[sink.Partition]int64{part: 3}) {
		t.Fatal("nothing to commit")
	}
	if r := <-b.results; r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := b.w.landed(); len(got) != 3 || b.Parked() != nil {
		t.Errorf("landed %v", got)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
