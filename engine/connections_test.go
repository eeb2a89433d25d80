package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/faultproxy"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/topology"
)

// through leads an instance's connections through a network, and lets it give up on an answer soon.
func through(n *faultproxy.Network) Option {
	return Client(kgo.Dialer(n.Dial), kgo.RequestTimeoutOverhead(2*time.Second))
}

// proxied makes a network for a test.
func proxied(t *testing.T) *faultproxy.Network {
	t.Helper()
	n := faultproxy.New()
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// weather does something bad to one of an instance's connections, and some of the time to new ones.
func weather(n *faultproxy.Network, rnd *rand.Rand) {
	n.Refuse(rnd.IntN(8) == 0)
	conns := n.Conns()
	if len(conns) == 0 {
		return
	}
	c := conns[rnd.IntN(len(conns))]
	switch rnd.IntN(6) {
	case 0:
		c.Cut()
	case 1:
		c.CutAfter(rnd.Int64N(300)) // the broker has done it, the answer is lost
	case 2:
		c.Delay(time.Duration(rnd.IntN(200)) * time.Millisecond)
	case 3:
		c.Delay(0)
	case 4:
		c.BlackHole(true) // until the client gives up
	case 5:
		c.BlackHole(false)
	}
}

// Connections of two instances with the brokers are cut, delayed and turned into black holes, one by one, in the middle of requests and of
// answers. Under exactly-once every input counts once; under at-least-once every input comes out.
func TestBadConnections(t *testing.T) {
	const rounds, n = 60, 200
	for _, kind := range []string{"embedded", "real"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cluster := func(t *testing.T) *brokertest.Cluster { return brokertest.Embedded(t) }
			if kind == "real" {
				cluster = func(t *testing.T) *brokertest.Cluster {
					return &brokertest.Cluster{Addrs: realkafka.Shared(t, 1).Addrs()}
				}
			}
			t.Run("exactly once", func(t *testing.T) {
				t.Parallel()
				a := newApp(t, cluster(t), "badconn")
				out := a.inBadWeather(counts(a.name), rounds, numbered(rounds*n, 40))
				eventually(t, "all counted", func() bool { return total(out.lastCounts()) >= rounds*n })
				if err := out.onlyRises(); err != nil {
					t.Error(err)
				}
				if got := total(out.lastCounts()); got != rounds*n {
					t.Errorf("counted %d, want %d", got, rounds*n)
				}
			})
			t.Run("at least once", func(t *testing.T) {
				t.Parallel()
				a := newApp(t, cluster(t), "badconnalo")
				out := a.inBadWeather(firsts(a.name), rounds, numbered(rounds*n, rounds*n), Processing(AtLeastOnce))
				eventually(t, "all came out", func() bool { return out.missing(rounds*n) == 0 })
			})
		})
	}
}

// inBadWeather produces values over some rounds, each with a fault of a connection. Afterwards connections are well.
func (a *app) inBadWeather(p *topology.Plan, rounds int, values []string, opts ...Option) *output {
	a.t.Helper()
	seed := uint64(time.Now().UnixNano())
	a.t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	a.create("in", 4)
	a.create("out", 2)
	out := a.read("out")
	networks := []*faultproxy.Network{proxied(a.t), proxied(a.t)}
	for i, n := range networks {
		a.start(p, []string{"i1", "i2"}[i], append(opts, through(n))...)
	}
	n := len(values) / rounds
	for round := range rounds {
		a.produce("in", 4, values[round*n:(round+1)*n]...)
		weather(networks[rnd.IntN(len(networks))], rnd)
		time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
	}
	for _, n := range networks {
		n.Refuse(false)
		for _, c := range n.Conns() { // what hangs is cut: clients notice
			c.Cut()
		}
	}
	return out
}
