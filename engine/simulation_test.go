package engine

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/tributary-io/tributary/internal/detruntime"
)

// The simulation runs whole instances of this engine, as they are, on a broker, a network, a table and an object store in memory and on a
// simulated clock. A seed chooses what happens: which requests are lost, before or after they had their effect, which process dies at which
// step of its work or is stopped for how long, what the table and the store do. In the end the books are closed: each input was counted once,
// in order, and has one row.
//
// What a seed does is the same each time. The order in which goroutines that may run at the same moment do run is the scheduler's, unless the
// program is built with the runtime of package detruntime (make simulate does): then that is the seed's, too, and it replays exactly.
var (
	simSeeds    = flag.Int("simulation.seeds", 200, "how many seeds to simulate")
	simFrom     = flag.Uint64("simulation.from", 1, "the first seed")
	simFor      = flag.Duration("simulation.for", 0, "begin no seed after this time; 0: until all are done")
	simFailures = flag.Int("simulation.failures", 1, "go on until so many seeds have failed")
	simSteps    = flag.Bool("simulation.log", false, "print what happens")
)

func TestSimulation(t *testing.T) {
	run := newSimRun()
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	defer os.RemoveAll(simDir())
	for range run.workers(t) {
		workers.Go(func() {
			for seed := range seeds {
				run.seed(t, seed)
			}
		})
	}
	for i := range uint64(*simSeeds) {
		if run.over() {
			break
		}
		seeds <- *simFrom + i
	}
	close(seeds)
	workers.Wait()
	t.Logf("%d seeds from %d on\n%s", run.ran.Load(), *simFrom, run.counts)
}

// simRun is many seeds, one after the other or some at a time.
type simRun struct {
	counts *simCounts
	began  time.Time
	ran    atomic.Int64
	failed atomic.Int64
}

func newSimRun() *simRun { return &simRun{counts: newSimCounts(), began: time.Now()} }

// workers is how many seeds run at a time. Where seeds replay exactly it is one, and the process is made ready for that.
func (r *simRun) workers(t *testing.T) int {
	if !detruntime.Built {
		return runtime.GOMAXPROCS(0)
	}
	procs, percent, rate := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1), runtime.MemProfileRate
	limit := debug.SetMemoryLimit(2 << 30) // of one that runs away: it doesn't replay exactly, and takes no other's memory
	runtime.MemProfileRate = 0
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
		runtime.MemProfileRate = rate
	})
	return 1
}

func (r *simRun) over() bool {
	return r.failed.Load() >= int64(*simFailures) || *simFor > 0 && time.Since(r.began) > *simFor
}

func (r *simRun) seed(t *testing.T, seed uint64) {
	ok := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { simulate(t, seed, r.counts) })
	if !ok {
		fmt.Fprintf(os.Stderr, "seed %d failed\n", seed)
		r.failed.Add(1)
	}
	n := r.ran.Add(1)
	if n%1000 == 0 {
		fmt.Fprintf(os.Stderr, "simulated %d seeds, the last one %d, in %v, %d failed\n", n, seed, time.Since(r.began).Round(time.Second), r.failed.Load())
	}
	if n%10_000 == 0 {
		fmt.Fprintln(os.Stderr, r.counts)
	}
}

// simulate runs one seed in a bubble of its own, and returns what tells it from others and from other ways to run it: a sum over all requests
// that were sent and when.
func simulate(t *testing.T, seed uint64, counts *simCounts) (fingerprint uint64) {
	if detruntime.Built {
		cryptotest.SetGlobalRandom(t, seed)
		simForget()
		collectSometimes()
	}
	dir := filepath.Join(simDir(), fmt.Sprintf("%020d", seed))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var world atomic.Pointer[simWorld]
	dog := time.AfterFunc(simPatience, func() { giveUp(seed, world.Load()) })
	defer dog.Stop()
	detruntime.Seed(seed)
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(t, seed, dir, counts)
		world.Store(w)
		w.run()
		w.close()
		fingerprint = w.fingerprint()
	})
	return fingerprint
}

// simPatience is for a seed in real time: it takes some hundredths of a second.
const simPatience = 3 * time.Minute

// giveUp ends the process when a seed doesn't end: goroutines keep each other busy while simulated time stands still, or one waits for something
// real.
func giveUp(seed uint64, w *simWorld) {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	said := "it has hardly begun"
	if w != nil {
		said = w.log.text()
	}
	fmt.Fprintf(os.Stderr, "seed %d doesn't end within %v of real time\n%s\n%s\n", seed, simPatience, said, stacks)
	os.Exit(2)
}

// simForget makes the process forget what a seed left behind; nil where seeds don't replay exactly.
var simForget func()

// collectSometimes does what the collector does otherwise, when no bubble is there to notice.
func collectSometimes() {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc > 64<<20 {
		runtime.GC()
	}
}

// simDir is where processes keep their state: in memory where there is such a place. It has the same length each time, since paths are copied.
func simDir() string {
	root := "/dev/shm"
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		root = os.TempDir()
	}
	return filepath.Join(root, fmt.Sprintf("tributary-sim-%08d", os.Getpid()))
}

// run lets things happen, heals everything, and closes the books.
func (w *simWorld) run() {
	for range 1 + w.rng.IntN(2) {
		w.startProcess()
	}
	w.produce(20)
	happenings := 2 + w.rng.IntN(3)
	if w.rng.IntN(8) == 0 {
		happenings += 5
	}
	for range happenings {
		w.happen()
		w.pass(time.Duration(w.rng.IntN(2000)) * time.Millisecond)
	}
	w.heal()
	w.await("everything is counted and landed", w.settled)
	w.check()
	if w.rng.IntN(8) == 0 {
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
