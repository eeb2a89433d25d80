package engine

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
)

// line is a way to brokers that can be cut: no connection is left, and none is made until it is mended.
type line struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (l *line) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errors.New("the line is cut")
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

func (l *line) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut = cut; !cut {
		return
	}
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// After an outage an instance that has nothing to do asks brokers what they have left open, until they answer: nothing else would end that.
func TestOutageIsLookedInto(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "outage-looked-into")
	a.create("in", 1)
	a.create("out", 1)
	out := a.read("out")
	l := &line{}
	i := a.start(counts(a.name), "i1", Client(kgo.Dialer(l.dial)))
	a.produce("in", 1, "v")
	eventually(t, "counted", func() bool { return total(out.lastCounts()) == 1 })
	i.await(t, "all is committed", func(s Stats) bool {
		_, open := i.producer.Open()
		return s.State == Running && !open && i.outages.failed.Load() == i.outages.settled.Load()
	})
	asked := a.c.Embedded.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeProducers}, Err: kerr.UnknownServerError, Count: 1})
	defer asked.Remove()
	l.set(true)
	eventually(t, "brokers are missed", func() bool { return i.outages.failed.Load() > i.outages.settled.Load() })
	l.set(false)
	eventually(t, "brokers are asked", func() bool { return asked.Hits() == 1 })
	eventually(t, "it is settled", func() bool { return i.outages.failed.Load() == i.outages.settled.Load() })
	a.produce("in", 1, "v")
	eventually(t, "counted afterwards", func() bool { return total(out.lastCounts()) == 2 })
	i.stop(t)
}
