package embedded

import (
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// holdJoin has a connection that ends while a JoinGroup waits be seen as ended once that is answered. kfake starts a member's session with the answer,
// and leaves it out where nobody is there to read that: a process that was killed while it joined then stayed in the group for ever, together with the
// partitions that the leader gave it. Kafka starts the session in any case, and so gives such a member up after its session timeout.
func (c *conn) holdJoin() {
	var join *waiting
	c.mu.Lock()
	for _, w := range c.waiting {
		if w.key == int16(kmsg.JoinGroup) {
			join = w
		}
	}
	c.mu.Unlock()
	if join != nil {
		select {
		case <-join.done:
		case <-c.closed:
		}
	}
}

// groups is what is known of classic groups by their members' requests.
type groups struct {
	cluster *kfake.Cluster // from the first request on

	mu       sync.Mutex
	sessions map[string]time.Duration // the shortest of a group's members
	waiting  map[groupMember]*waiting // the last request of a member, until it is answered
	stop     chan struct{}            // closed by close
	closed   bool
	alive    sync.WaitGroup
}

type groupMember struct{ group, id string }

// minSession is the least that StartBroker has kfake take.
const minSession = 100 * time.Millisecond

// request takes in a JoinGroup or SyncGroup, and keeps its member alive until it is answered. Another that the member sent before, over a connection that
// ended, has no answer any more: kfake forgets it.
func (g *groups) request(l *listener, req kmsg.Request, w *waiting, ended chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch r := req.(type) {
	case *kmsg.JoinGroupRequest:
		w.member = groupMember{r.Group, r.MemberID}
		session := max(time.Duration(r.SessionTimeoutMillis)*time.Millisecond, minSession)
		if known := g.sessions[r.Group]; known == 0 || session < known {
			g.sessions[r.Group] = session
		}
	case *kmsg.SyncGroupRequest:
		w.member = groupMember{r.Group, r.MemberID}
	}
	session := g.sessions[w.member.group]
	if w.member.id == "" || session == 0 || g.closed {
		return
	}
	if before := g.waiting[w.member]; before != nil {
		before.end()
	}
	g.waiting[w.member] = w
	g.alive.Go(func() { g.keepAlive(l, w, session/3, ended) })
}

// forget drops a request that has its answer.
func (g *groups) forget(w *waiting) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting[w.member] == w {
		delete(g.waiting, w.member)
	}
}

// close ends what goes on, which calls the cluster: that must not be closed before.
func (g *groups) close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.stop)
	}
	g.mu.Unlock()
	g.alive.Wait()
}

// generation is that of a member's group, or false if there is no such member.
func (g *groups) generation(of groupMember) (generation int32, member bool) {
	info := g.cluster.GroupInfo(of.group)
	if info == nil {
		return 0, false
	}
	return info.Epoch, slices.ContainsFunc(info.Members, func(m kfake.GroupMember) bool { return m.MemberID == of.id })
}

// keepAlive sends heartbeats in the name of a member that waits for the answer to JoinGroup or SyncGroup. Kafka's sessions stand still meanwhile; kfake's
// go on, and it removes such a member without any answer: with a leader that dies before it assigns, often all others.
func (g *groups) keepAlive(l *listener, w *waiting, every time.Duration, ended chan struct{}) {
	defer g.forget(w)
	tick := time.NewTicker(every)
	defer tick.Stop()
	was := false // a member
	for n := int32(0); ; n++ {
		select {
		case <-w.done:
			return
		case <-ended:
			return
		case <-g.stop:
			return
		case <-tick.C:
		}
		generation, is := g.generation(w.member)
		if !is {
			if was { // and is removed, so that nobody answers
				w.end()
			}
			continue
		}
		was = true
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.MemberID, req.Generation = w.member.group, w.member.id, generation
		conn, err := l.dial()
		if err != nil {
			return
		}
		roundTrip(conn, req, n, every) // the next one may succeed
		conn.Close()
	}
}
