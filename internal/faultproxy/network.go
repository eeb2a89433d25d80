package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
)

// Network is a set of proxies, one for each address that was dialed. Its methods may be called from any goroutine.
type Network struct {
	mu      sync.Mutex
	proxies map[string]*proxy // by address
	closed  bool
	refuse  bool
	all     sync.WaitGroup
}

// proxy listens in place of an address.
type proxy struct {
	target string
	l      net.Listener
	conns  []*Conn
}

// New makes a network that passes everything on. Close it.
func New() *Network { return &Network{proxies: map[string]*proxy{}} }

// Dial connects to addr through a proxy. It has the form of a client's dialer.
func (n *Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	p, err := n.proxy(addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s through a proxy: %w", addr, err)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, p.l.Addr().String())
}

func (n *Network) proxy(addr string) (*proxy, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, net.ErrClosed
	}
	if p := n.proxies[addr]; p != nil {
		return p, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{target: addr, l: l}
	n.proxies[addr] = p
	n.all.Go(func() { n.accept(p) })
	return p, nil
}

func (n *Network) accept(p *proxy) {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return // closed
		}
		n.all.Go(func() { n.serve(p, in.(*net.TCPConn)) })
	}
}

// serve passes the bytes of one connection on until one side ends it.
func (n *Network) serve(p *proxy, in *net.TCPConn) {
	if n.refused() {
		reset(in)
		return
	}
	out, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(in)
		return
	}
	c := newConn(p.target, in, out.(*net.TCPConn))
	n.mu.Lock()
	p.conns = append(p.conns, c)
	closed := n.closed
	n.mu.Unlock()
	if closed {
		c.Cut()
	}
	c.pass()
	n.mu.Lock()
	p.conns = slices.DeleteFunc(p.conns, func(o *Conn) bool { return o == c })
	n.mu.Unlock()
}

func (n *Network) refused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refuse || n.closed
}

// Refuse makes new connections end at once (a reset), or lets them be again.
func (n *Network) Refuse(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuse = on
}

// Conns are the connections that are open now.
func (n *Network) Conns() []*Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []*Conn
	for _, p := range n.proxies {
		all = append(all, p.conns...)
	}
	return all
}

// Close cuts all connections and waits until nothing of the network is left.
func (n *Network) Close() error {
	n.mu.Lock()
	n.closed = true
	var errs []error
	for _, p := range n.proxies {
		errs = append(errs, p.l.Close())
	}
	n.mu.Unlock()
	for _, c := range n.Conns() {
		c.Cut()
	}
	n.all.Wait()
	return errors.Join(errs...)
}
