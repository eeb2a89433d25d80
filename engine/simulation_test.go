package engine

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The simulation runs whole instances of this engine, as they are, on a broker and a network in memory and on a simulated clock. A seed
// chooses what happens: which requests are lost, before or after they had their effect, which process dies at which step of its work or is
// stopped for how long, what the table does. In the end the books are closed: each input was counted once, in order, and has one row.
//
// What a seed does is the same each time; the order in which goroutines that may run at the same moment do run is the scheduler's.
var (
	simSeeds = flag.Int("simulation.seeds", 200, "how many seeds to simulate")
	simFrom  = flag.Uint64("simulation.from", 1, "the first seed")
	simSteps = flag.Bool("simulation.log", false, "print what happens")
)

// simCounts counts what was simulated.
type simCounts struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *simCounts) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[what]++
}

func TestSimulation(t *testing.T) {
	counts := &simCounts{n: map[string]int{}}
	seeds := make(chan uint64)
	var (
		workers sync.WaitGroup
		ran     atomic.Int64
		failed  atomic.Bool
		began   = time.Now()
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range seeds {
				ok := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { simulate(t, seed, counts) })
				if n := ran.Add(1); n%1000 == 0 {
					fmt.Fprintf(os.Stderr, "simulated %d seeds in %v\n", n, time.Since(began).Round(time.Second))
				}
				if !ok {
					failed.Store(true)
				}
			}
		})
	}
	for i := range uint64(*simSeeds) {
		if failed.Load() {
			break
		}
		seeds <- *simFrom + i
	}
	close(seeds)
	workers.Wait()
	for _, what := range slices.Sorted(maps.Keys(counts.n)) {
		t.Logf("%8d %s", counts.n[what], what)
	}
}

// simulate runs one seed in a bubble of its own.
func simulate(t *testing.T, seed uint64, counts *simCounts) {
	dir, err := os.MkdirTemp(simRoot(), "tributary-sim-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(t, seed, dir, counts)
		w.run()
		w.close()
	})
}

// simRoot is where processes keep their state: in memory where there is such a place.
func simRoot() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return os.TempDir()
}

// run lets things happen, heals everything, and closes the books.
func (w *simWorld) run() {
	for range 1 + w.rng.IntN(2) {
		w.startProcess()
	}
	w.produce(20)
	for range 3 + w.rng.IntN(6) {
		w.happen()
		w.pass(time.Duration(w.rng.IntN(2500)) * time.Millisecond)
	}
	w.heal()
	w.await("everything is counted and landed", w.settled)
	w.check()
	if w.rng.IntN(4) == 0 {
		w.restoreElsewhere()
	}
}

// restoreElsewhere replaces all processes by one without any state, which has to go on where they ended.
func (w *simWorld) restoreElsewhere() {
	w.counts.add("restored everything elsewhere")
	for _, p := range w.living() {
		w.stop(p)
	}
	w.startProcess()
	w.produce(20)
	w.await("the new one has gone on", w.settled)
	w.check()
}
