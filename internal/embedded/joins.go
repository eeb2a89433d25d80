package embedded

import (
	"sync"
	"time"

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
	mu sync.Mutex
	of map[string]*groupState
}

type groupState struct {
	session    time.Duration // the shortest of its members
	generation int32         // the last one that was synced
}

// request takes in a JoinGroup or SyncGroup, and says how often its member is to be kept alive until it is answered.
func (g *groups) request(req kmsg.Request) (group, member string, every time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch r := req.(type) {
	case *kmsg.JoinGroupRequest:
		session := time.Duration(r.SessionTimeoutMillis) * time.Millisecond
		s := g.state(r.Group)
		if s.session == 0 || session < s.session {
			s.session = session
		}
		return r.Group, r.MemberID, s.session / 3
	case *kmsg.SyncGroupRequest:
		s := g.state(r.Group)
		s.generation = r.Generation
		return r.Group, r.MemberID, s.session / 3
	}
	return "", "", 0
}

func (g *groups) state(group string) *groupState {
	if g.of == nil {
		g.of = map[string]*groupState{}
	}
	s := g.of[group]
	if s == nil {
		s = &groupState{generation: -1}
		g.of[group] = s
	}
	return s
}

func (g *groups) generation(group string) int32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state(group).generation
}

// keepAlive sends heartbeats in the name of a member that waits for the answer to JoinGroup or SyncGroup. Kafka's sessions stand still meanwhile; kfake's
// go on, and it removes such a member without any answer: with a leader that dies before it assigns, often all others.
func (l *listener) keepAlive(group, member string, every time.Duration, answered, closed chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := int32(0); ; n++ {
		select {
		case <-answered:
			return
		case <-closed:
			return
		case <-tick.C:
		}
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.MemberID, req.Generation = group, member, l.watched.groups.generation(group)
		conn, err := l.dial()
		if err != nil {
			return
		}
		roundTrip(conn, req, n, every) // the next one may succeed
		conn.Close()
	}
}
