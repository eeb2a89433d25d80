package sinktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/sink"
)

// Input is what instances land.
type Input struct {
	Partitions int32
	Rows       int64 // records of each partition
	// Part names a partition.
	Part func(n int32) sink.Partition
	// Add puts the record at an offset of a partition into a batch, if it makes a row.
	Add func(b sink.Batch, n int32, offset int64) error
}

// Instance is one process that lands the input: it reads the table's progress, takes some records, and commits them. It may die at any operation,
// and is then started again on what it left. It is used by one goroutine.
type Instance struct {
	T     *testing.T
	Rand  *rand.Rand
	Input *Input
	// Open opens the sink, on a store or a catalog that fails.
	Open func(ctx context.Context) (sink.Writer, error)
	// Explained are the errors that faults may cause, and Crashed is that of all operations of a process that is dead.
	Explained []error
	Crashed   error
	// Patience bounds a step: an outcome in doubt is pursued until its context ends, even after a crash, which real processes don't outlive. 0: no bound.
	Patience time.Duration

	Landed, Fenced, Failed int // batches; attempts and openings that a fault ended

	w  sink.Writer
	at map[sink.Partition]int64 // where the next batch starts; nil: ask the table
}

// tries is how often a commit that failed is tried again: "the same call may be made again".
const tries = 3

// Writer is the open sink; nil where the instance isn't running.
func (i *Instance) Writer() sink.Writer { return i.w }

// Start opens the sink, if it isn't open. false says that a fault came in between.
func (i *Instance) Start(ctx context.Context) bool {
	if i.w != nil {
		return true
	}
	w, err := i.Open(ctx)
	if err != nil {
		i.check(err)
		return false
	}
	i.w, i.at = w, nil
	return true
}

// Die ends the instance.
func (i *Instance) Die() {
	if i.w != nil {
		if err := i.w.Close(); err != nil {
			i.T.Error(err)
		}
	}
	i.w = nil
}

// check accepts the errors that faults may cause, and no others.
func (i *Instance) check(err error) {
	for _, ok := range i.Explained {
		if errors.Is(err, ok) {
			i.Failed++
			return
		}
	}
	i.T.Errorf("an error that no fault explains: %v", err)
}

func (i *Instance) crashed(err error) bool { return i.Crashed != nil && errors.Is(err, i.Crashed) }

// Step lands one batch, or fails trying.
func (i *Instance) Step() {
	ctx := context.Background()
	if i.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, i.Patience)
		defer cancel()
	}
	if !i.Start(ctx) || i.at == nil && !i.seek(ctx) {
		return
	}
	b := i.w.NewBatch()
	defer b.Release()
	moves := i.take(b)
	_, err := i.w.Commit(ctx, b, moves)
	for try := 0; err != nil && try < tries && !sink.IsFenced(err) && !i.crashed(err); try++ {
		i.check(err)
		_, err = i.w.Commit(ctx, b, moves)
	}
	switch {
	case err == nil:
		i.Landed++
		for _, m := range moves {
			i.at[m.Partition] = m.To
		}
	case sink.IsFenced(err):
		i.Fenced++
		i.at = nil
	default:
		i.failed(err)
	}
}

func (i *Instance) failed(err error) {
	i.check(err)
	i.at = nil
	if i.crashed(err) {
		i.Die()
	}
}

func (i *Instance) seek(ctx context.Context) bool {
	var parts []sink.Partition
	for n := range i.Input.Partitions {
		parts = append(parts, i.Input.Part(n))
	}
	at, err := i.w.Progress(ctx, parts)
	if err != nil {
		i.failed(err)
		return false
	}
	i.at = at
	return true
}

// take fills a batch with the next records of some partitions.
func (i *Instance) take(b sink.Batch) (moves []sink.Move) {
	for n := range i.Input.Partitions {
		part := i.Input.Part(n)
		from := i.at[part]
		next := max(from, 0)
		to := min(next+i.Rand.Int64N(8), i.Input.Rows)
		if to == next && from != sink.NoOffset || i.Rand.IntN(4) == 0 {
			continue
		}
		for o := next; o < to; o++ {
			if err := i.Input.Add(b, n, o); err != nil {
				i.T.Error(err)
			}
		}
		moves = append(moves, sink.Move{Partition: part, From: from, To: to})
	}
	return moves
}

// atEnd reports whether the instance knows the whole input to have landed.
func (i *Instance) atEnd() bool {
	for n := range i.Input.Partitions {
		if i.at[i.Input.Part(n)] != i.Input.Rows {
			return false
		}
	}
	return true
}

// Weather lets two instances take steps in turn until done says that the input has landed, which it is asked now and then. calm ends the faults: it is
// called once the instances have had enough of them. between is called after each step, with its number; nil for nothing.
func Weather(t *testing.T, r *rand.Rand, both [2]*Instance, done func() bool, calm func(), between func(n int)) {
	t.Helper()
	for n := 0; n%10 != 0 || !done(); n++ {
		switch n {
		case 400:
			both[0].Die()
			both[1].Die()
			calm()
		case 3000:
			t.Fatal("no end")
		}
		both[r.IntN(2)].Step()
		if between != nil {
			between(n)
		}
	}
	both[0].Die()
	both[1].Die()
}

// Crowd lets four instances land the input at once. start makes the one with a number.
func Crowd(start func(n uint64) *Instance) {
	var wg sync.WaitGroup
	for n := range uint64(4) {
		wg.Go(func() {
			i := start(n)
			for steps := 0; steps < 5000 && (i.at == nil || !i.atEnd()); steps++ {
				i.Step()
			}
			i.Die()
		})
	}
	wg.Wait()
}
