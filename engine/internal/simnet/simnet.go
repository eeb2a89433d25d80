package simnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Network connects hosts with whoever listens.
type Network struct {
	// Witness, if it is set before the first connection, is shown every request that leaves a host, with its size in front. It is called by
	// many goroutines, and keeps nothing.
	Witness func(frame []byte)
	// Delay is called for a request whose fate is Late, and returns when it is to come; set before the first connection, called by many
	// goroutines.
	Delay func()

	mu        sync.Mutex
	listeners map[string]*listener
	ports     int
}

// New makes a network without hosts.
func New() *Network { return &Network{listeners: map[string]*listener{}} }

// Listen is what brokers call in place of net.Listen. Port 0 gets a free one.
func (n *Network) Listen(_, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if port == "0" {
		n.ports++
		port = fmt.Sprint(20000 + n.ports)
	}
	l := &listener{network: n, addr: address(net.JoinHostPort(host, port)), accepted: make(chan net.Conn), closed: make(chan struct{})}
	if n.listeners[string(l.addr)] != nil {
		return nil, fmt.Errorf("listen %s: address in use", l.addr)
	}
	n.listeners[string(l.addr)] = l
	return l, nil
}

// address implements net.Addr, in the shape of TCP's.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

type listener struct {
	network  *Network
	addr     address
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		delete(l.network.listeners, string(l.addr))
	})
	return nil
}

func (l *listener) Addr() net.Addr { return tcpAddr(l.addr) }

// tcpAddr gives brokers the type that they expect.
func tcpAddr(a address) net.Addr {
	tcp, err := net.ResolveTCPAddr("tcp", string(a))
	if err != nil {
		return a
	}
	return tcp
}

// Fate is what becomes of a request.
type Fate int

// The fates.
const (
	Deliver     Fate = iota // it reaches the broker, and its answer comes back
	LoseRequest             // the connection breaks before the broker has the request
	LoseAnswer              // the connection breaks after the broker has it
	Kill                    // the host is cut before the broker has it
	KillAfter               // the host is cut after the broker has it
	Late                    // the connection breaks at once, and the broker gets it after the network's Delay, whatever came in between
)

// Policy decides about a request by its key, and may hold it up by sleeping.
type Policy func(key int16) Fate

// Host is the network of one process.
type Host struct {
	network *Network

	mu     sync.Mutex
	policy Policy
	cut    bool
	conns  map[int]*conn // by their number
	made   int           // connections, so far
}

// Host makes a host whose requests are all delivered.
func (n *Network) Host() *Host { return &Host{network: n, conns: map[int]*conn{}} }

// SetPolicy sets what decides about requests from now on; nil delivers all.
func (h *Host) SetPolicy(p Policy) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.policy = p
}

// IsCut reports whether Cut was called.
func (h *Host) IsCut() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cut
}

func (h *Host) policyNow() Policy {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.policy
}

// Cut ends the host's connections, and lets it make no more. Others aren't told: they find that nothing comes any more, as when a machine
// has lost its power.
func (h *Host) Cut() {
	h.mu.Lock()
	h.cut = true
	all := maps.Clone(h.conns)
	h.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(all)) { // in an order that replays
		all[n].abandon()
	}
}

// errCut is what a host gets that was cut.
var errCut = errors.New("the host is cut off")

// Dial is what clients of the host call in place of net.Dial.
func (h *Host) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	h.network.mu.Lock()
	l := h.network.listeners[addr]
	h.network.mu.Unlock()
	if h.IsCut() {
		return nil, errCut
	}
	if l == nil {
		return nil, fmt.Errorf("dial %s: connection refused", addr)
	}
	near, far := net.Pipe()
	select {
	case l.accepted <- &side{far, l.addr}:
	case <-l.closed:
		return nil, fmt.Errorf("dial %s: connection refused", addr)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c := &conn{side: side{near, l.addr}, host: h, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cut {
		c.Conn.Close()
		return nil, errCut
	}
	h.made++
	c.number = h.made
	h.conns[c.number] = c
	go c.pump()
	return c, nil
}

// side is one end of a connection, with an address of the type that brokers and clients expect.
type side struct {
	net.Conn
	addr address
}

func (s *side) LocalAddr() net.Addr  { return tcpAddr(s.addr) }
func (s *side) RemoteAddr() net.Addr { return tcpAddr(s.addr) }

// conn is a client's end. What is written goes into a buffer, as into a socket's; a goroutine of its own finds the requests in it and
// sends them, so that a request that is held up holds up nobody who writes.
type conn struct {
	side
	host   *Host
	number int // of the host's

	mu      sync.Mutex
	pending []byte        // what was written and not sent
	wake    chan struct{} // has a token when there is something new
	closed  chan struct{}
	once    sync.Once

	reading   sync.Mutex // held while the connection is read
	abandoned atomic.Bool
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, errLost
	default:
	}
	c.mu.Lock()
	c.pending = append(c.pending, b...)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return len(b), nil
}

// pump sends whole frames, each as the policy says, until the connection is closed.
func (c *conn) pump() {
	for {
		select {
		case <-c.closed:
			return
		case <-c.wake:
		}
		for frame := c.next(); frame != nil; frame = c.next() {
			if !c.send(frame) {
				return
			}
		}
	}
}

// next takes a whole frame off what is pending.
func (c *conn) next() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) < 4 {
		return nil
	}
	n := 4 + int(binary.BigEndian.Uint32(c.pending))
	if len(c.pending) < n {
		return nil
	}
	frame := c.pending[:n:n]
	c.pending = c.pending[n:]
	return frame
}

// send sends a frame; false ends the connection.
func (c *conn) send(frame []byte) bool {
	if witness := c.host.network.Witness; witness != nil {
		witness(frame)
	}
	fate := Deliver
	if policy := c.host.policyNow(); policy != nil && len(frame) >= 6 {
		fate = policy(int16(binary.BigEndian.Uint16(frame[4:])))
	}
	switch {
	case c.host.IsCut(): // while the policy held it up
		return false
	case fate == LoseRequest:
		c.Close()
		return false
	case fate == Kill:
		c.host.Cut()
		return false
	case fate == Late:
		c.abandon()
		go func() {
			c.host.network.Delay()
			c.Conn.Write(frame) // nobody waits for what becomes of it
		}()
		return false
	}
	_, err := c.Conn.Write(frame)
	switch fate {
	case LoseAnswer:
		c.Close()
	case KillAfter:
		c.host.Cut()
	}
	return err == nil && fate == Deliver
}

// errLost is what is lost with its connection.
var errLost = errors.New("the connection broke")

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	select {
	case <-c.closed:
		return 0, errLost
	default:
	}
	n, err := c.Conn.Read(b)
	select {
	case <-c.closed:
		return 0, errLost
	default:
		return n, err
	}
}

// Close implements net.Conn. Deadlines are the pipe's: under synctest they follow the simulated clock.
func (c *conn) Close() error {
	c.end()
	if c.abandoned.Load() {
		return nil // the other end isn't told
	}
	return c.Conn.Close()
}

// abandon closes this end without the other's knowledge.
func (c *conn) abandon() {
	c.abandoned.Store(true)
	c.end()
	c.Conn.SetReadDeadline(time.Unix(1, 0)) // whoever reads is told
	go func() {
		c.reading.Lock() // nobody reads any more, and nobody will
		c.Conn.SetReadDeadline(time.Time{})
		c.reading.Unlock()
		io.Copy(io.Discard, c.Conn) // until the other end is closed
	}()
}

func (c *conn) end() {
	c.once.Do(func() {
		close(c.closed)
		c.host.mu.Lock()
		delete(c.host.conns, c.number)
		c.host.mu.Unlock()
	})
}
