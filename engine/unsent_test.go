package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
)

// stuffed is a connection whose other end hasn't read what was written, as much as there is room for.
func stuffed(t *testing.T) (from, to net.Conn, written int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if from, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if to, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { from.Close(); to.Close() })
	for chunk := make([]byte, 1<<20); ; {
		if err := from.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := from.Write(chunk)
		written += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return from, to, written
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What a connection couldn't deliver before it was given up doesn't come afterwards, whether or not TLS is around it.
func TestGivenUpConnectionsDeliverNothingMore(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"plain": func(c net.Conn) net.Conn { return c },
		"TLS":   func(c net.Conn) net.Conn { return tls.Client(c, &tls.Config{InsecureSkipVerify: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			from, to, written := stuffed(t)
			unsentIsLost{}.OnBrokerConnect(kgo.BrokerMetadata{}, 0, wrap(from), nil)
			if err := from.Close(); err != nil {
				t.Fatal(err)
			}
			came, err := io.Copy(io.Discard, to)
			if came >= int64(written) || !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%d of %d bytes came, and then %v", came, written, err)
			}
		})
	}
}

// lingering notes what is set of a connection.
type lingering struct {
	*net.TCPConn
	set chan<- int
}

func (l lingering) SetLinger(seconds int) error {
	l.set <- seconds
	return l.TCPConn.SetLinger(seconds)
}

// The client that commits offsets outside of transactions has such connections, also through a dialer of the user's.
func TestPlainCommitsUseConnectionsThatForget(t *testing.T) {
	c := brokertest.Embedded(t)
	set := make(chan int, 100)
	e, err := New(counts("forgets"), Brokers(c.Addrs...), StateDir(t.TempDir()), Processing(AtLeastOnce), Client(kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return lingering{conn.(*net.TCPConn), set}, nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	var started closers
	defer func() {
		if err := started.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := e.makeClients(t.Context(), &started); err != nil { // it has asked a broker by then
		t.Fatal(err)
	}
	select {
	case seconds := <-set:
		if seconds != 0 {
			t.Errorf("linger is %d", seconds)
		}
	default:
		t.Error("nothing was set of the connection")
	}
}
