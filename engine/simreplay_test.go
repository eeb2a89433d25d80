//go:build detruntime

package engine

import (
	"os"
	"testing"
	_ "unsafe" // for go:linkname
)

// The embedded broker takes its ids from a pool of random bytes, which a seed must not share with the one before.
//
//go:linkname brokerRandomAt github.com/twmb/franz-go/pkg/kfake.randPoolAt
var brokerRandomAt int

func init() { simForget = func() { brokerRandomAt = 4 << 10 } } // the pool is used up

// A seed that is run again does the same, whatever ran before it.
func TestSimulationReplays(t *testing.T) {
	newSimRun().workers(t)
	defer os.RemoveAll(simDir())
	seeds := min(uint64(*simSeeds), 20)
	first := map[uint64]uint64{}
	replay := func(seed uint64) uint64 { return simulate(t, seed, newSimCounts()) }
	replay(*simFrom) // what is made once in a process is made now
	for i := range seeds {
		first[*simFrom+i] = replay(*simFrom + i)
	}
	for i := range seeds {
		seed := *simFrom + seeds - 1 - i
		if again := replay(seed); again != first[seed] {
			t.Errorf("seed %d sent %016x at first, and then %016x", seed, first[seed], again)
		}
	}
	t.Logf("seed %d sends %016x", *simFrom, first[*simFrom])
}
