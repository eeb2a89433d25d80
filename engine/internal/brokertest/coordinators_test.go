package brokertest

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/internal/realkafka"
)

func TestMain(m *testing.M) { realkafka.Main(m) }

// rebalance is how long members may take to come again.
const rebalance = time.Minute

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
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(m.session.Milliseconds()), int32(rebalance.Milliseconds())
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

// unique is a name that is new on a cluster that tests share, also where they run several times.
func unique(t *testing.T) string {
	return strings.ReplaceAll(t.Name(), "/", "-") + strconv.FormatInt(time.Now().UnixNano(), 36)
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
		first := found(t, c)
		second := &member{c: c.Client(t), group: first.group, session: session}
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
		third := &member{c: c.Client(t), group: first.group, session: session}
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

// found has a new group of one member.
func found(t *testing.T, c *Cluster) *member {
	t.Helper()
	m := &member{c: c.Client(t), group: unique(t), session: time.Minute}
	if err := errors.Join(m.join(t), m.sync(t)); err != nil || !m.leader {
		t.Fatal(err, m.leader)
	}
	return m
}

// beginJoin has so many others begin to join, who wait for the member to come again.
func (m *member) beginJoin(t *testing.T, c *Cluster, others int) (join []*member, joined chan error) {
	t.Helper()
	joined = make(chan error, others)
	for range others {
		o := &member{c: c.Client(t), group: m.group, session: time.Second}
		join = append(join, o)
		go func() { joined <- o.join(t) }()
	}
	m.until(t, kerr.RebalanceInProgress)
	for end := time.Now().Add(time.Minute); len(m.others(t)) < others; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("of %d others there are %v after a minute", others, m.others(t))
		}
	}
	return join, joined
}

// others are the ids of the group's other members.
func (m *member) others(t *testing.T) (ids []string) {
	t.Helper()
	all, err := kadm.NewClient(m.c).DescribeGroups(t.Context(), m.group)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range all[m.group].Members {
		if of.MemberID != m.id {
			ids = append(ids, of.MemberID)
		}
	}
	return ids
}

// die ends the connections of a member whose JoinGroup waits.
func (m *member) die(t *testing.T, joined chan error) {
	t.Helper()
	m.c.Close()
	if err := <-joined; err == nil {
		t.Fatal("it joined, though the other had not")
	}
}

// TestMembersThatDieWhileTheyJoinAreGivenUp: they belong to the next generation, and are given up after their session timeout. There are several, since kfake
// forgets half of them only.
func TestMembersThatDieWhileTheyJoinAreGivenUp(t *testing.T) {
	Each(t, func(t *testing.T, c *Cluster) {
		stays := found(t, c)
		join, joined := stays.beginJoin(t, c, 5)
		for _, dies := range join {
			dies.die(t, joined)
		}
		time.Sleep(100 * time.Millisecond) // the broker sees it
		began := time.Now()
		for len(stays.others(t)) > 0 {
			if err := errors.Join(stays.join(t), stays.sync(t)); err != nil {
				t.Fatal(err)
			}
			if len(stays.others(t)) > 0 {
				stays.until(t, kerr.RebalanceInProgress) // some are given up
			}
		}
		if took := time.Since(began); took > rebalance*3/4 {
			t.Errorf("their session is a second, and they are given up after %v", took)
		}
	})
}

// TestMemberThatJoinsAgainElsewhereIsGivenUp has a member's connection end while its JoinGroup waits, and the member come again over another, which takes
// the place of the first, and die: what waits for an answer to the first mustn't keep the member.
func TestMemberThatJoinsAgainElsewhereIsGivenUp(t *testing.T) {
	Each(t, func(t *testing.T, c *Cluster) {
		stays := found(t, c)
		join, joined := stays.beginJoin(t, c, 1)
		again := &member{c: c.Client(t), group: stays.group, session: join[0].session, id: stays.others(t)[0]}
		join[0].die(t, joined)
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

// TestZombiesLeaveTheirSuccessorAlone has a producer go on after another took its transactional id.
func TestZombiesLeaveTheirSuccessorAlone(t *testing.T) {
	Each(t, func(t *testing.T, c *Cluster) {
		id := unique(t)
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
