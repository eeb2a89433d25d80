package embedded

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// listenFunc is what net.Listen is.
type listenFunc func(network, address string) (net.Listener, error)

// watched is what is kept of the requests and answers of all connections, for what kfake leaves out.
type watched struct {
	groups    groups
	epochs    epochs
	listeners []*listener // of all brokers, once they run
}

func newWatched() *watched {
	return &watched{groups: groups{sessions: map[string]time.Duration{}, waiting: map[groupMember]*waiting{}, stop: make(chan struct{})}}
}

// open has the brokers serve connections, which wait until then: what a crash left is mended first, and the hooks are in place.
func (w *watched) open(cluster *kfake.Cluster) {
	w.groups.cluster = cluster
	for _, l := range w.listeners {
		go l.accept()
	}
}

// watch has all connections be seen by w.
func (w *watched) watch(listen listenFunc) listenFunc {
	return func(network, address string) (net.Listener, error) {
		inner, err := listen(network, address)
		if err != nil {
			return nil, err
		}
		l := &listener{Listener: inner, watched: w, accepted: make(chan accepted), closed: make(chan struct{})}
		w.listeners = append(w.listeners, l)
		return l, nil
	}
}

// listener is a broker's, to which the package itself connects too, by dial.
type listener struct {
	net.Listener
	watched  *watched
	accepted chan accepted
	closed   chan struct{}
	once     sync.Once
}

type accepted struct {
	conn net.Conn
	err  error
}

func (l *listener) accept() {
	for {
		inner, err := l.Listener.Accept()
		a := accepted{err: err}
		if err == nil {
			a.conn = &conn{Conn: inner, listener: l, closed: make(chan struct{}), waiting: map[uint32]*waiting{}}
		}
		select {
		case l.accepted <- a:
		case <-l.closed:
			if inner != nil {
				inner.Close()
			}
			return
		}
		if err != nil {
			return
		}
	}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// dial connects to the broker whatever network it listens on.
func (l *listener) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.accepted <- accepted{conn: theirs}:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// waiting is a request that has no answer yet.
type waiting struct {
	key, version int16
	successor    bool          // an InitProducerID of who has no epoch yet
	member       groupMember   // whose JoinGroup or SyncGroup it is
	done         chan struct{} // closed by end
	ended        sync.Once
}

// end says that it is answered, or that it won't be.
func (w *waiting) end() { w.ended.Do(func() { close(w.done) }) }

// conn is a broker's side of a connection. One goroutine at a time reads, and one writes, each answer by one Write.
type conn struct {
	net.Conn
	listener *listener
	closed   chan struct{}
	once     sync.Once
	in       requestFrames // the reader's

	mu      sync.Mutex
	waiting map[uint32]*waiting // by correlation id
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.read(p[:n], c.request)
	if err != nil {
		c.holdJoin()
	}
	return n, err
}

// request sees a request before the broker does. Those that are not of interest are not kept.
func (c *conn) request(frame []byte) {
	key, version, correlation := int16(binary.BigEndian.Uint16(frame)), int16(binary.BigEndian.Uint16(frame[2:])), binary.BigEndian.Uint32(frame[4:])
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	body := kbin.Reader{Src: frame[8:]}
	body.NullableString() // client id
	if req.IsFlexible() {
		kmsg.SkipTags(&body)
	}
	if !body.Ok() || req.ReadFrom(body.Src) != nil {
		return // the broker says so
	}
	w := &waiting{key: key, version: version, done: make(chan struct{})}
	if init, ok := req.(*kmsg.InitProducerIDRequest); ok {
		w.successor = init.ProducerID < 0
	}
	c.mu.Lock()
	c.waiting[correlation] = w
	c.mu.Unlock()
	c.listener.watched.groups.request(c.listener, req, w, c.closed)
}

func (c *conn) Write(p []byte) (int, error) {
	if len(p) >= 8 { // size and correlation id
		correlation := binary.BigEndian.Uint32(p[4:])
		c.mu.Lock()
		w := c.waiting[correlation]
		delete(c.waiting, correlation)
		c.mu.Unlock()
		if w != nil {
			w.end()
			c.listener.watched.epochs.answer(w, p[8:])
		}
	}
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// ofInterest are the requests that are looked at.
func ofInterest(key int16) bool {
	switch kmsg.Key(key) {
	case kmsg.JoinGroup, kmsg.SyncGroup, kmsg.InitProducerID, kmsg.EndTxn:
		return true
	}
	return false
}

// requestFrames finds the requests of interest in what is read from a connection, however it is cut.
type requestFrames struct {
	size  [4]byte
	have  int    // bytes of size
	left  uint32 // bytes of the request that are still to come
	frame []byte // of the request: its key at first, and all of it if that is of interest
}

func (f *requestFrames) read(p []byte, request func(frame []byte)) {
	for len(p) > 0 {
		if f.have < len(f.size) {
			n := copy(f.size[f.have:], p)
			f.have += n
			p = p[n:]
			if f.have < len(f.size) {
				return
			}
			f.left, f.frame = binary.BigEndian.Uint32(f.size[:]), f.frame[:0]
		}
		n := int(min(uint64(f.left), uint64(len(p))))
		for _, b := range p[:min(n, max(0, 2-len(f.frame)))] {
			f.frame = append(f.frame, b)
			f.left, p, n = f.left-1, p[1:], n-1
		}
		wanted := len(f.frame) >= 2 && ofInterest(int16(binary.BigEndian.Uint16(f.frame)))
		if wanted {
			f.frame = append(f.frame, p[:n]...)
		}
		f.left -= uint32(n)
		p = p[n:]
		if f.left == 0 {
			f.have = 0
			if wanted && len(f.frame) >= 8 {
				request(f.frame)
				f.frame = nil
			}
		}
	}
}

// roundTrip sends a request over a connection of dial and reads its answer, which it ignores.
func roundTrip(conn net.Conn, req kmsg.Request, correlation int32, within time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, correlation)); err != nil {
		return err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, binary.BigEndian.Uint32(size[:])))
	return err
}
