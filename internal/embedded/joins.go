package embedded

import (
	"encoding/binary"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// listenFunc is what net.Listen is.
type listenFunc func(network, address string) (net.Listener, error)

// holdJoins has connections that end while a JoinGroup waits be seen as ended once it is answered. kfake starts a member's session with the answer, and
// leaves it out where nobody is there to read that: a process that was killed while it joined then stayed in the group for ever, together with the
// partitions that the leader gave it. Kafka starts the session in any case, and so gives such a member up after its session timeout.
func holdJoins(listen listenFunc) listenFunc {
	return func(network, address string) (net.Listener, error) {
		l, err := listen(network, address)
		if err != nil {
			return nil, err
		}
		return joinListener{l}, nil
	}
}

type joinListener struct{ net.Listener }

func (l joinListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &joinConn{Conn: inner, closed: make(chan struct{})}, nil
}

// joinConn is a broker's side of a connection. One goroutine at a time reads, and one writes, each answer by one Write.
type joinConn struct {
	net.Conn
	closed chan struct{}
	once   sync.Once
	in     requestFrames // the reader's

	mu       sync.Mutex
	joining  uint32        // correlation id of the JoinGroup that waits
	answered chan struct{} // closed when that is answered; nil: none waits
}

func (c *joinConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.read(p[:n], func(key int16, correlation uint32) {
		if key == int16(kmsg.JoinGroup) {
			c.mu.Lock()
			c.joining, c.answered = correlation, make(chan struct{})
			c.mu.Unlock()
		}
	})
	if err != nil {
		c.mu.Lock()
		answered := c.answered
		c.mu.Unlock()
		if answered != nil {
			select {
			case <-answered:
			case <-c.closed:
			}
		}
	}
	return n, err
}

func (c *joinConn) Write(p []byte) (int, error) {
	if len(p) >= 8 { // size and correlation id
		c.mu.Lock()
		if c.answered != nil && binary.BigEndian.Uint32(p[4:]) == c.joining {
			close(c.answered)
			c.answered = nil
		}
		c.mu.Unlock()
	}
	return c.Conn.Write(p)
}

func (c *joinConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// requestFrames finds the requests in what is read from a connection, however it is cut.
type requestFrames struct {
	head [12]byte // size, key, version, correlation id
	have int      // bytes of head
	left uint32   // bytes of the request after head
}

func (f *requestFrames) read(p []byte, request func(key int16, correlation uint32)) {
	for len(p) > 0 {
		if f.have == len(f.head) {
			n := min(uint64(f.left), uint64(len(p)))
			f.left -= uint32(n)
			p = p[n:]
		} else {
			n := copy(f.head[f.have:], p)
			f.have += n
			p = p[n:]
			if f.have < len(f.head) {
				return
			}
			f.left = max(binary.BigEndian.Uint32(f.head[:]), 8) - 8
			request(int16(binary.BigEndian.Uint16(f.head[4:])), binary.BigEndian.Uint32(f.head[8:]))
		}
		if f.have == len(f.head) && f.left == 0 {
			f.have = 0
		}
	}
}
