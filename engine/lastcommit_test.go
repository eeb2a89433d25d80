package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// slowWrites has records wait on their way to the brokers until the channel that is stored is closed.
type slowWrites struct{ until atomic.Pointer[chan struct{}] }

func (s *slowWrites) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return slowConn{conn, s}, nil
}

type slowConn struct {
	net.Conn
	of *slowWrites
}

// Write gets whole requests: size, key, …
func (c slowConn) Write(p []byte) (int, error) {
	if until := c.of.until.Load(); until != nil && len(p) > 6 && kmsg.Key(binary.BigEndian.Uint16(p[4:])) == kmsg.Produce {
		<-*until
	}
	return c.Conn.Write(p)
}

// TestNoCommitFollowsOneThatCameToNothing: an instance with a table closes while its records are under way for longer than a transaction may last, so that
// its commit comes to nothing. They arrive soon after: another commit would have them there without their offsets, and so twice.
func TestNoCommitFollowsOneThatCameToNothing(t *testing.T) {
	c := brokertest.Embedded(t)
	a := newApp(t, c, "last-commit")
	a.create("in", 1)
	a.create("out", 1)
	out, tab := a.read("out"), newTable()
	b := topology.NewBuilder(a.name)
	s := b.Stream(a.name+"-in", serde.String, serde.String)
	s.To(a.name+"-out", topology.Name("to-out"))
	s.ToLake(tab, topology.Name("to-table"))
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}

	const records, transaction = 50, time.Second
	slow, arrive := &slowWrites{}, make(chan struct{})
	slow.until.Store(&arrive)
	first := a.start(plan, "i1", Client(kgo.Dialer(slow.dial)), TransactionTimeout(transaction), CommitInterval(transaction/2), CloseTimeout(10*transaction))
	first.await(t, "runs", func(s Stats) bool { return s.State == Running })
	a.produce("in", 1, unique(0, records)...)
	first.await(t, "has processed all", func(s Stats) bool { return s.Tasks[0].Processed == records })
	time.AfterFunc(transaction+transaction/2, func() { close(arrive) })
	first.cancel()
	if err := first.failure(t); err != nil && !errors.As(err, new(*UncommittedError)) {
		t.Error(err)
	}

	second := a.start(plan, "i1", quickLake)
	eventually(t, "all have landed", func() bool { return tab.count() >= records })
	eventually(t, "all have come out", func() bool { return len(out.all()) >= records })
	second.stop(t)
	if n := len(out.all()); n != records {
		t.Errorf("%d records have come out of %d", n, records)
	}
	if err := tab.once(unique(0, records)); err != nil {
		t.Error(err)
	}
}
