package faultproxy

import (
	"net"
	"sync"
	"time"
)

// Conn is a connection of a client with a server. Its methods may be called from any goroutine.
type Conn struct {
	Target  string // the server's address
	in, out *net.TCPConn

	once sync.Once
	gone chan struct{}

	mu      sync.Mutex
	changed chan struct{} // closed when what follows has changed
	delay   time.Duration
	hole    bool
	left    int64 // bytes of answers that still pass before the connection is cut; negative: all
}

func newConn(target string, in, out *net.TCPConn) *Conn {
	return &Conn{Target: target, in: in, out: out, gone: make(chan struct{}), changed: make(chan struct{}), left: -1}
}

// Cut ends the connection for both sides at once, with a reset: what is under way is lost.
func (c *Conn) Cut() {
	c.once.Do(func() {
		close(c.gone)
		reset(c.in)
		reset(c.out)
	})
}

func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // a connection that is closed already needs no reset
	_ = c.Close()
}

// CutAfter cuts the connection in the middle of answers, after so many more bytes of them: the server has done what it was asked, and the
// client doesn't get to know.
func (c *Conn) CutAfter(bytes int64) { c.change(func() { c.left = max(0, bytes) }) }

// Delay makes each piece of data wait, in both directions. 0 ends it.
func (c *Conn) Delay(d time.Duration) { c.change(func() { c.delay = d }) }

// BlackHole lets nothing pass any more, in both directions, while the connection seems to be well. Ending it lets go on what was held.
func (c *Conn) BlackHole(on bool) { c.change(func() { c.hole = on }) }

func (c *Conn) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// pass copies both directions until the connection ends.
func (c *Conn) pass() {
	var both sync.WaitGroup
	both.Go(func() { c.copy(c.out, c.in, false) })
	both.Go(func() { c.copy(c.in, c.out, true) })
	both.Wait()
	c.Cut()
}

func (c *Conn) copy(to, from *net.TCPConn, answers bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			piece := c.admit(buf[:n], answers)
			if _, failed := to.Write(piece); failed != nil || len(piece) < n {
				c.Cut()
				return
			}
		}
		if err != nil {
			c.Cut() // clients of Kafka don't close one direction only
			return
		}
	}
}

// admit waits as long as a piece has to, and gives what of it may pass.
func (c *Conn) admit(piece []byte, answers bool) []byte {
	c.mu.Lock()
	delay := c.delay
	c.mu.Unlock()
	if delay > 0 {
		select {
		case <-c.gone:
			return nil
		case <-time.After(delay):
		}
	}
	for {
		c.mu.Lock()
		hole, changed := c.hole, c.changed
		if !hole {
			defer c.mu.Unlock()
			if !answers || c.left < 0 {
				return piece
			}
			n := min(c.left, int64(len(piece)))
			c.left -= n
			return piece[:n]
		}
		c.mu.Unlock()
		select {
		case <-c.gone:
			return nil
		case <-changed:
		}
	}
}
