package engine

import (
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// unsentIsLost is a client's hook that makes connections which are given up lose what they haven't delivered.
//
// Otherwise the operating system goes on trying for minutes after they are closed. When a network comes back, a commit of offsets outside of a
// transaction could then arrive behind its own repetition on a new connection, and behind later transactions, and set offsets back: nothing in
// such a request tells the broker that it is late. All that the engine closes in order it has had an answer to.
type unsentIsLost struct{}

var _ kgo.HookBrokerConnect = unsentIsLost{}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (unsentIsLost) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, conn net.Conn, err error) {
	if err != nil {
		return
	}
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = wrapped.NetConn()
	}
	if tcp, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // one that is broken already sends nothing more
	}
}
