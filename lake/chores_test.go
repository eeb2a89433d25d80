package lake

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// steppedClock is a clock that a test moves.
type steppedClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *steppedClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *steppedClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// operations lists the operations of a table's log, oldest first.
func operations(t testing.TB, store object.Store) (out []string) {
	t.Helper()
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range table.History(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		out = append([]string{e.Info.Operation}, out...)
	}
	return out
}

func count(all []string, what string) (n int) {
	for _, s := range all {
		if s == what {
			n++
		}
	}
	return n
}

// TestAutoOptimize lets two instances land rows for an hour, with compaction each ten minutes: it runs so often, by one of them at a time, and
// all rows are there once.
func TestAutoOptimize(t *testing.T) {
	_, store := localStore(t)
	clock := &steppedClock{at: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
	env := testEnv()
	env.Now = clock.now
	open := func() sink.Writer {
		w, err := tryOpen[string, order](Delta("m", Store(store), AutoOptimize(10*time.Minute, OptimizeOptions{}), func(o *options) { o.inlineUpkeep = true }), env)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Close() })
		return w
	}
	both := []sink.Writer{open(), open()}
	for i := range int64(60) {
		for p, w := range both {
			b := w.NewBatch()
			row := order{ID: fmt.Sprint(p, "-", i)}
			if err := b.Append(nil, &row, meta(i)); err != nil {
				t.Fatal(err)
			}
			from := i
			if i == 0 {
				from = sink.NoOffset
			}
			if _, err := w.Commit(ctx, b, []sink.Move{move(int32(p), from, i+1)}); err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		clock.add(time.Minute)
	}
	ops := operations(t, store)
	if n := count(ops, "CLAIM UPKEEP"); n != 6 {
		t.Errorf("%d claims in an hour, want 6", n)
	}
	if n := count(ops, "OPTIMIZE"); n < 4 || n > 6 {
		t.Errorf("%d compactions in an hour", n)
	}
	if n := len(filesOf(t, store)); n > 30 {
		t.Errorf("%d files of 120 commits", n)
	}
	if n := len(allRows(t, store)); n != 120 {
		t.Errorf("%d rows", n)
	}
	_, progress, err := readProgress(store)
	if err != nil || len(progress) != 2 {
		t.Errorf("progress %+v, %v: claims are none", progress, err)
	}
}

func readProgress(store object.Store) (int64, []Progress, error) {
	t, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		return 0, nil, err
	}
	return t.Head().Version, progressOf(t.Head()), nil
}

// TestAutoUpkeepInBackground runs both chores in their goroutine, and ends them when the sink is closed.
func TestAutoUpkeepInBackground(t *testing.T) {
	_, store := localStore(t)
	w, err := tryOpen[string, order](Delta("m", Store(store), AutoOptimize(time.Hour, OptimizeOptions{}), AutoVacuum(time.Hour, VacuumOptions{})), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	land(t, w, 0, order{ID: "a"})
	for deadline := time.Now().Add(4 * time.Minute); count(operations(t, store), "CLAIM UPKEEP") < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no upkeep in four minutes: %v", operations(t, store))
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := tryOpen[string, order](Delta("m", Store(store), AutoOptimize(time.Second, OptimizeOptions{})), testEnv()); err == nil || !strings.Contains(err.Error(), "too often") {
		t.Errorf("compaction each second: %v", err)
	}
}

// TestClaim is taken by one of many at once, and again when it has run out.
func TestClaim(t *testing.T) {
	_, store := localStore(t)
	openSink[string, order](t, Delta("m", Store(store)))
	clock := &steppedClock{at: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
	for round := range 3 {
		var mu sync.Mutex
		var wg sync.WaitGroup
		taken := 0
		for range 5 {
			table, err := delta.Open(ctx, store, delta.Options{Now: clock.now})
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				c := &claim{table: table, appID: optimizeClaim, every: time.Hour, now: clock.now}
				ok, err := c.take(ctx)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if ok {
					taken++
				}
			})
		}
		wg.Wait()
		if taken != 1 {
			t.Errorf("round %d: taken %d times", round, taken)
		}
		clock.add(time.Hour + time.Second)
	}
	// A claim from a clock that runs days ahead is not waited for.
	table, err := delta.Open(ctx, store, delta.Options{Now: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	ahead := &claim{table: table, appID: vacuumClaim, every: 1000 * time.Hour, now: clock.now}
	if ok, err := ahead.take(ctx); err != nil || !ok {
		t.Fatal(ok, err)
	}
	mine := &claim{table: table, appID: vacuumClaim, every: time.Hour, now: clock.now}
	if ok, err := mine.take(ctx); err != nil || !ok {
		t.Errorf("behind a claim far ahead: %v, %v", ok, err)
	}
}

// TestOptimizeLosesClaim stops when another instance has taken its claim.
func TestOptimizeLosesClaim(t *testing.T) {
	_, store := localStore(t)
	w := openSink[string, order](t, Delta("m", Store(store)))
	for i := range int64(3) {
		land(t, w, i, order{ID: fmt.Sprint(i)})
	}
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	clock := &steppedClock{at: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
	mine := &claim{table: table, appID: optimizeClaim, every: time.Hour, now: clock.now}
	if ok, err := mine.take(ctx); err != nil || !ok {
		t.Fatal(ok, err)
	}
	clock.add(2 * time.Hour)
	if ok, err := (&claim{table: table, appID: optimizeClaim, every: time.Hour, now: clock.now}).take(ctx); err != nil || !ok {
		t.Fatal(ok, err)
	}
	o := &optimizer{table: table, opts: OptimizeOptions{}.withDefaults(), claim: mine}
	if _, err := o.run(ctx); err == nil || !strings.Contains(err.Error(), "another writer has moved it") {
		t.Errorf("%v", err)
	}
	if n := len(filesOf(t, store)); n != 3 {
		t.Errorf("%d files", n)
	}
}

// TestOneChoreOfAProcess has the upkeep of many tables due at once: they get it one after the other.
func TestOneChoreOfAProcess(t *testing.T) {
	var running, most, runs atomic.Int32
	watched := func(o *options) {
		o.addChore("test", claimPrefix+"test", time.Hour, func(context.Context, *delta.Table, *claim, *slog.Logger) (string, error) {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(2 * time.Millisecond) // so that two would meet
			running.Add(-1)
			runs.Add(1)
			return "", nil
		})
	}
	const tables = 8
	for i := range tables {
		w := openSink[string, order](t, Delta("m", Store(object.NewMemory(fmt.Sprint(i))), watched))
		land(t, w, 0, order{ID: "a"})
	}
	for deadline := time.Now().Add(4 * time.Minute); runs.Load() < tables; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d tables had their upkeep in four minutes", runs.Load(), tables)
		}
	}
	if n := most.Load(); n != 1 {
		t.Errorf("%d pieces of upkeep ran at once", n)
	}
}
