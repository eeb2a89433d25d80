package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"testing/quick"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const joinsGroup = "joins"

// member is a classic member by hand.
type member struct {
	c          *kgo.Client
	id         string
	session    time.Duration
	generation int32
	leader     bool
}

func (m *member) join(t *testing.T) error {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = joinsGroup, m.id, "consumer"
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
	req.Group, req.MemberID, req.Generation = joinsGroup, m.id, m.generation
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
	req.Group, req.MemberID, req.Generation = joinsGroup, m.id, m.generation
	res, err := req.RequestWith(t.Context(), m.c)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(res.ErrorCode)
}

// other is the group's other member.
func other(b *Broker, than string) (id string) {
	for _, m := range b.Cluster().GroupInfo(joinsGroup).Members {
		if m.MemberID != than {
			id = m.MemberID
		}
	}
	return id
}

// until waits for an answer to heartbeats.
func (m *member) until(t *testing.T, want error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
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

// TestMemberThatDiesWhileItJoinsIsGivenUp has a member's connection end while its JoinGroup waits: it belongs to the next generation, and is given
// up after its session timeout, as on Kafka.
func TestMemberThatDiesWhileItJoinsIsGivenUp(t *testing.T) {
	b := startBroker(t, BrokerConfig{})
	defer b.Close()
	stays := &member{c: client(t, b), session: 2 * time.Minute}
	defer stays.c.Close()
	if err := errors.Join(stays.join(t), stays.sync(t)); err != nil || !stays.leader {
		t.Fatal(err, stays.leader)
	}
	dies := &member{c: client(t, b), session: 500 * time.Millisecond}
	joined := make(chan error, 1)
	go func() { joined <- dies.join(t) }()
	stays.until(t, kerr.RebalanceInProgress)
	dies.c.Close()
	if err := <-joined; err == nil {
		t.Fatal("joined while the other had not")
	}
	time.Sleep(100 * time.Millisecond) // the broker sees the connection's end
	if err := stays.join(t); err != nil {
		t.Fatal(err)
	}
	if err := stays.sync(t); err != nil {
		t.Fatal(err)
	}
	stays.until(t, kerr.RebalanceInProgress) // it is given up
	if err := stays.join(t); err != nil {
		t.Fatal(err)
	}
}

// TestMemberThatJoinsAgainElsewhereIsGivenUp has a member's connection end while its JoinGroup waits, and the member come again over another, which
// takes the place of the first, and die: kfake never answers the first JoinGroup, whose heartbeats kept the member for ever.
func TestMemberThatJoinsAgainElsewhereIsGivenUp(t *testing.T) {
	b := startBroker(t, BrokerConfig{})
	defer b.Close()
	stays := &member{c: client(t, b), session: 2 * time.Minute}
	defer stays.c.Close()
	if err := errors.Join(stays.join(t), stays.sync(t)); err != nil || !stays.leader {
		t.Fatal(err, stays.leader)
	}
	first := &member{c: client(t, b), session: 500 * time.Millisecond}
	joined := make(chan error, 1)
	go func() { joined <- first.join(t) }()
	stays.until(t, kerr.RebalanceInProgress)
	again := &member{c: client(t, b), session: first.session, id: other(b, stays.id)}
	first.c.Close()
	if err := <-joined; err == nil {
		t.Fatal("joined while the other had not")
	}
	go func() { joined <- again.join(t) }()
	time.Sleep(100 * time.Millisecond) // the broker has the second JoinGroup
	if err := stays.join(t); err != nil {
		t.Fatal(err)
	}
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	again.c.Close()
	if err := stays.sync(t); err != nil {
		t.Fatal(err)
	}
	stays.until(t, kerr.RebalanceInProgress) // it is given up
}

// TestRequestsAreFoundHoweverTheyAreCut has frames of any sizes, every other one of interest, come in pieces of any sizes.
func TestRequestsAreFoundHoweverTheyAreCut(t *testing.T) {
	check := func(sizes []uint8, cuts []uint8) bool {
		var stream []byte
		var want, got []string
		for i, size := range sizes {
			key := []kmsg.Key{kmsg.JoinGroup, kmsg.Produce}[i%2]
			frame := binary.BigEndian.AppendUint16(nil, uint16(key))
			frame = binary.BigEndian.AppendUint16(frame, 9)
			frame = binary.BigEndian.AppendUint32(frame, uint32(i)*7)
			frame = append(frame, bytes.Repeat([]byte{size}, int(size))...)
			stream = append(binary.BigEndian.AppendUint32(stream, uint32(len(frame))), frame...)
			if key == kmsg.JoinGroup {
				want = append(want, string(frame))
			}
		}
		var f requestFrames
		take := func(p []byte) { f.read(p, func(frame []byte) { got = append(got, string(frame)) }) }
		for _, cut := range cuts {
			n := min(int(cut), len(stream))
			take(stream[:n])
			stream = stream[n:]
		}
		take(stream)
		return slices.Equal(got, want)
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}
