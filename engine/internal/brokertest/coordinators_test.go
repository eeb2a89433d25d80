package brokertest

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/internal/realkafka"
)

func TestMain(m *testing.M) { realkafka.Main(m) }

// member is a member of a classic group by hand.
type member struct {
	c          *kgo.Client
	group, id  string
	session    time.Duration
	generation int32
	leader     bool
}

func (m *member) join(t *testing.T) error {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = m.group, m.id, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(m.session.Milliseconds()), 60_000
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name = "range"
	req.Protocols = append(req.Protocols, p)
	res, err := req.RequestWith(t.Context(), m.c)
	if err != nil {
		return err
	}
	m.id = res.MemberID
	if err := kerr.ErrorForCode(res.ErrorCode); errors.Is(err, kerr.MemberIDRequired) {
		return m.join(t)
	} else if err != nil {
		return err
	}
	m.generation, m.leader = res.Generation, res.LeaderID == m.id
	return nil
}

func (m *member) sync(t *testing.T) error {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = m.group, m.id, m.generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	if m.leader {
		req.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: m.id}}
	}
	res, err := req.RequestWith(t.Context(), m.c)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(res.ErrorCode)
}

func (m *member) heartbeat(t *testing.T) error {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = m.group, m.id, m.generation
	res, err := req.RequestWith(t.Context(), m.c)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(res.ErrorCode)
}

// until waits for an answer to heartbeats.
func (m *member) until(t *testing.T, want error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if err := m.heartbeat(t); errors.Is(err, want) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatalf("no heartbeat is answered by %v within a minute", want)
		}
	}
}

// heartbeats sends them for a while.
func (m *member) heartbeats(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := m.heartbeat(t); err != nil && !errors.Is(err, kerr.RebalanceInProgress) {
			t.Fatal(err)
		}
	}
}

func answered(t *testing.T, what string, err chan error, want error) {
	t.Helper()
	select {
	case got := <-err:
		if !errors.Is(got, want) {
			t.Fatalf("%s is answered %v, want %v", what, got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s is not answered", what)
	}
}

func async(f func(*testing.T) error, t *testing.T) chan error {
	done := make(chan error, 1)
	go func() { done <- f(t) }()
	return done
}

// TestWhoWaitsForTheGroupKeepsItsSession has members wait for others longer than their session, in JoinGroup and in SyncGroup.
func TestWhoWaitsForTheGroupKeepsItsSession(t *testing.T) {
	Each(t, func(t *testing.T, c *Cluster) {
		session := time.Second
		first := &member{c: c.Client(t), group: "waits", session: time.Minute}
		second := &member{c: c.Client(t), group: "waits", session: session}
		if err := errors.Join(first.join(t), first.sync(t)); err != nil {
			t.Fatal(err)
		}
		joined := async(second.join, t)
		first.until(t, kerr.RebalanceInProgress)
		if err := first.join(t); err != nil {
			t.Fatal(err)
		}
		answered(t, "the first join", joined, nil)
		if first.leader == second.leader {
			t.Fatal("leaders: ", first.leader, second.leader)
		}
		// The follower waits in SyncGroup until the leader has assigned.
		leader, follower := first, second
		if second.leader {
			leader, follower = second, first
		}
		synced := async(follower.sync, t)
		time.Sleep(session + session/4)
		if err := leader.sync(t); err != nil {
			t.Fatal(err)
		}
		answered(t, "SyncGroup", synced, nil)
		// The second waits in JoinGroup until the first comes.
		third := &member{c: c.Client(t), group: "waits", session: session}
		thirds := async(third.join, t)
		second.until(t, kerr.RebalanceInProgress)
		seconds := async(second.join, t)
		first.heartbeats(t, session+session/4)
		if err := first.join(t); err != nil {
			t.Fatal(err)
		}
		answered(t, "JoinGroup", seconds, nil)
		answered(t, "JoinGroup of the new member", thirds, nil)
	})
}

// beginJoin has a group of one, and another member whose JoinGroup waits for the first to come again.
func beginJoin(t *testing.T, c *Cluster, group string) (stays, joins *member, joined chan error) {
	t.Helper()
	stays = &member{c: c.Client(t), group: group, session: time.Minute}
	if err := errors.Join(stays.join(t), stays.sync(t)); err != nil || !stays.leader {
		t.Fatal(err, stays.leader)
	}
	joins = &member{c: c.Client(t), group: group, session: time.Second}
	joined = async(joins.join, t)
	stays.until(t, kerr.RebalanceInProgress)
	return stays, joins, joined
}

// die ends the connections of a member whose JoinGroup waits.
func (m *member) die(t *testing.T, joined chan error) {
	t.Helper()
	m.c.Close()
	if err := <-joined; err == nil {
		t.Fatal("it joined, though the other had not")
	}
	time.Sleep(100 * time.Millisecond) // the broker sees it
}

// TestMemberThatDiesWhileItJoinsIsGivenUp: it belongs to the next generation, and is given up after its session timeout.
func TestMemberThatDiesWhileItJoinsIsGivenUp(t *testing.T) {
	Each(t, func(t *testing.T, c *Cluster) {
		stays, dies, joined := beginJoin(t, c, "dies")
		dies.die(t, joined)
		if err := errors.Join(stays.join(t), stays.sync(t)); err != nil {
			t.Fatal(err)
		}
		stays.until(t, kerr.RebalanceInProgress) // it is given up
		if err := stays.join(t); err != nil {
			t.Fatal(err)
		}
	})
}

// TestMemberThatJoinsAgainElsewhereIsGivenUp has a member's connection end while its JoinGroup waits, and the member come again over another, which takes
// the place of the first, and die: what waits for an answer to the first mustn't keep the member.
func TestMemberThatJoinsAgainElsewhereIsGivenUp(t *testing.T) {
	Each(t, func(t *testing.T, c *Cluster) {
		stays, first, joined := beginJoin(t, c, "elsewhere")
		again := &member{c: c.Client(t), group: first.group, session: first.session, id: stays.other(t)}
		first.die(t, joined)
		rejoined := async(again.join, t)
		time.Sleep(100 * time.Millisecond) // the broker has the second JoinGroup
		if err := stays.join(t); err != nil {
			t.Fatal(err)
		}
		answered(t, "the second JoinGroup", rejoined, nil)
		again.c.Close()
		if err := stays.sync(t); err != nil {
			t.Fatal(err)
		}
		stays.until(t, kerr.RebalanceInProgress) // it is given up
	})
}

// other is the id of the group's other member.
func (m *member) other(t *testing.T) string {
	t.Helper()
	all, err := kadm.NewClient(m.c).DescribeGroups(t.Context(), m.group)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range all[m.group].Members {
		if of.MemberID != m.id {
			return of.MemberID
		}
	}
	t.Fatalf("there is no other: %+v", all[m.group])
	return ""
}

// TestZombiesLeaveTheirSuccessorAlone has a producer go on after another took its transactional id.
func TestZombiesLeaveTheirSuccessorAlone(t *testing.T) {
	Each(t, func(t *testing.T, c *Cluster) {
		id := "zombies"
		c.CreateTopic(t, id, 1)
		open := func() *kgo.Client { return c.Client(t, kgo.TransactionalID(id), kgo.DefaultProduceTopic(id)) }
		transact := func(p *kgo.Client) error {
			if err := p.BeginTransaction(); err != nil {
				return err
			}
			if err := p.ProduceSync(t.Context(), kgo.StringRecord("x")).FirstErr(); err != nil {
				return err
			}
			return p.EndTransaction(t.Context(), kgo.TryCommit)
		}
		zombie, successor := open(), open()
		if err := transact(zombie); err != nil {
			t.Fatal(err)
		}
		producer, epoch, err := zombie.ProducerID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := successor.ProducerID(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := transact(zombie); !errors.Is(err, kerr.InvalidProducerEpoch) {
			t.Errorf("the zombie's batch is answered %v", err)
		}
		states, err := kadm.NewClient(successor).DescribeTransactions(t.Context(), id)
		if err != nil || states[id].State == "Ongoing" {
			t.Errorf("the zombie began a transaction of its successor: %v, %v", states[id].State, err)
		}
		end := kmsg.NewPtrEndTxnRequest()
		end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = id, producer, epoch, true
		if resp, err := end.RequestWith(t.Context(), successor); err != nil || resp.ErrorCode != kerr.ProducerFenced.Code {
			t.Errorf("the zombie's commit is answered %v, %v", resp, err)
		}
		again := kmsg.NewPtrInitProducerIDRequest()
		again.TransactionalID, again.ProducerID, again.ProducerEpoch, again.TransactionTimeoutMillis = &id, producer, epoch, 60_000
		if resp, err := again.RequestWith(t.Context(), successor); err != nil || resp.ErrorCode != kerr.ProducerFenced.Code {
			t.Errorf("the zombie's wish for a new epoch is answered %v, %v", resp, err)
		}
		if err := transact(successor); err != nil {
			t.Error("the successor: ", err)
		}
	})
}
