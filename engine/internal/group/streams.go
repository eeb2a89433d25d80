package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/offsets"
)

// TaskHandler is what Streams calls, from Run's goroutine. No heartbeat is sent while a method runs: none may take long.
type TaskHandler interface {
	// Held are the tasks that this member was given and hasn't closed yet. The coordinator gives a task to another member only after it
	// is no longer among them.
	Held() assign.Placement
	// Given tells what this member is to run from now on. What it doesn't have any more is to be given up, with a commit, and Rejoin is
	// to be called when that is done.
	Given(assign.Placement) error
	// Lost tells that the member was thrown out: its tasks may run elsewhere already, and nothing can be committed for them.
	Lost(cause error)
	// Unheard is Handler's.
	Unheard(since time.Time, cause error)
}

// StreamsConfig says which group a member joins by the streams protocol, and how. The session timeout, the time between heartbeats and the
// number of standbys are settings of the group, kept by the brokers (streams.session.timeout.ms and its kin).
type StreamsConfig struct {
	Client *kgo.Client // for requests; consumes nothing
	Group  string
	// MemberID stays the same when an instance comes back after a crash: it then takes its own place again, without waiting for the end of
	// its former session.
	MemberID string
	// RebalanceTimeout is how long the coordinator waits for this member to give up tasks.
	RebalanceTimeout time.Duration
	// Endpoint is the host:port of the member's HTTP server; may be empty.
	Endpoint string
	// Tags tell the coordinator's assignor where the member runs.
	Tags map[string]string
	// Topology is what all members of the group must agree on, as brokers know it.
	Topology *kmsg.StreamsGroupHeartbeatRequestTopology
	// Declares is what they must agree on besides, in words: of a store or topic, what its records are.
	Declares map[string]string
	Logger   *slog.Logger
}

// Streams is a member by the brokers' streams protocol (KIP-1071): the coordinator assigns the tasks, and tells each member in answer to
// its heartbeats.
type Streams struct {
	*place
	cfg     StreamsConfig
	handler TaskHandler
	route   coordinator

	// Run's own.
	epoch    int32 // of the member; 0: not joined
	interval time.Duration
	unsure   bool          // an answer was lost, and with it perhaps an assignment
	compared bool          // with what the other members declare
	spoken   map[int8]said // the statuses that last, each logged once
}

var _ Membership = (*Streams)(nil)

// firstInterval is the time between heartbeats until the coordinator says another. After silentHeartbeats of them without an answer its place
// may be given up: the session timeout is the group's, which brokers want to be no shorter than that.
const (
	firstInterval    = 5 * time.Second
	silentHeartbeats = 3
)

// NewStreams makes a member. Nothing is sent before Run.
func NewStreams(cfg StreamsConfig, h TaskHandler) *Streams {
	return &Streams{
		place: newPlace(cfg.Group, silentHeartbeats*firstInterval, h, cfg.Logger), cfg: cfg, handler: h, interval: firstInterval, spoken: map[int8]said{},
		route: coordinator{client: cfg.Client, group: cfg.Group},
	}
}

// Run implements Membership. A member's generation is its epoch; what Rejoin asks for is the next heartbeat, with the tasks that are held, at
// once.
func (s *Streams) Run(ctx context.Context) error {
	return s.keep(ctx, func(ctx context.Context) error {
		if err := s.heartbeat(ctx); err != nil {
			return err
		}
		s.await(ctx, s.interval)
		return nil
	})
}

// await waits until the next heartbeat is due.
func (s *Streams) await(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s.rejoin:
	case <-timer.C:
	}
}

// heartbeat sends one heartbeat, which is also how a member joins, and takes what the answer says. The error says what to do: errRejoin
// (at once), *FatalError, or something to be tried again.
func (s *Streams) heartbeat(ctx context.Context) error {
	req := s.request()
	if s.epoch == 0 {
		if err := s.compare(ctx); err != nil {
			return err
		}
		s.describe(req)
	}
	// The coordinator fences a member that is silent for its session; a connection that hangs must not cost that.
	ctx, cancel := context.WithTimeout(ctx, max(s.interval, 3*time.Second))
	defer cancel()
	resp, err := s.send(ctx, req)
	if err != nil {
		var answer *kerr.Error
		s.unsure = s.unsure || !errors.As(err, &answer)
		if errors.Is(err, kerr.StreamsInvalidTopology) || errors.Is(err, kerr.InvalidRequest) {
			err = s.explained(ctx, err)
		}
		return s.refused(err)
	}
	return s.answered(ctx, resp)
}

// answered takes an accepted heartbeat's answer.
func (s *Streams) answered(ctx context.Context, resp *kmsg.StreamsGroupHeartbeatResponse) error {
	s.epoch = resp.MemberEpoch
	if resp.HeartbeatIntervalMillis > 0 {
		s.interval = time.Duration(resp.HeartbeatIntervalMillis) * time.Millisecond
	}
	s.silence.session = silentHeartbeats * s.interval
	s.silence.answers()
	s.current.Store(&offsets.Member{ID: s.cfg.MemberID, Generation: s.epoch})
	if err := s.statuses(resp.Status); err != nil {
		return err
	}
	if err := s.compare(ctx); err != nil {
		s.unsure = true // what this answer gives isn't taken
		return err
	}
	given, err := tasksOf(resp)
	if err != nil {
		return &FatalError{Group: s.cfg.Group, Err: err, Advice: "the group is used by another application: choose another application id"}
	}
	if resp.ActiveTasks == nil && resp.StandbyTasks == nil && resp.WarmupTasks == nil { // as the coordinator told before
		if !s.unsure {
			return nil
		}
		if given, err = s.missed(ctx); err != nil {
			return fmt.Errorf("find out what an answer that was lost has said: %w", err)
		}
	}
	s.unsure = false
	if err := s.handler.Given(given); err != nil {
		return fmt.Errorf("take the assignment: %w", err)
	}
	return nil
}

// missed asks for this member's tasks. The coordinator tells an assignment once, and not again when its answer was lost: it must be looked
// up, after a heartbeat was answered, which shows that the coordinator is done with those before.
func (s *Streams) missed(ctx context.Context) (assign.Placement, error) {
	members, err := DescribeStreams(ctx, s.cfg.Client, s.cfg.Group)
	if err != nil {
		return assign.Placement{}, err
	}
	for _, m := range members {
		if m.ID == s.cfg.MemberID {
			return m.Tasks, nil
		}
	}
	return assign.Placement{}, fmt.Errorf("group %s has no member %s any more", s.cfg.Group, s.cfg.MemberID)
}

// refused turns a refused heartbeat into what to do about it.
func (s *Streams) refused(err error) error {
	if errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.FencedMemberEpoch) || errors.Is(err, kerr.GroupIDNotFound) && s.epoch > 0 {
		s.epoch, s.compared = 0, false
		return s.thrownOut(err)
	}
	if advice := streamsAdvice(err); advice != "" {
		return &FatalError{Group: s.cfg.Group, Err: err, Advice: advice}
	}
	return err
}

func streamsAdvice(err error) string {
	switch {
	case errors.Is(err, kerr.GroupIDNotFound), errors.Is(err, kerr.InconsistentGroupProtocol):
		return "the group has members of another protocol: stop all of them, wait until the group is empty, and start again"
	case errors.Is(err, kerr.StreamsInvalidTopology), errors.Is(err, kerr.StreamsInvalidTopologyEpoch), errors.Is(err, kerr.InvalidRequest):
		return "brokers don't change the topology of a streams group (Kafka 4.2 to 4.4): go on with the former one, choose another application id, " +
			"or stop all instances, delete the group's membership by running once with the classic protocol, and start again"
	case errors.Is(err, kerr.StreamsTopologyFenced):
		return "the group runs a newer version of the topology: start this instance with that"
	case errors.Is(err, kerr.UnsupportedVersion):
		return "the brokers don't speak the streams protocol (Kafka 4.2 or later with streams.version=1 is needed): use the classic protocol"
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return "this user needs DESCRIBE on the topics of the topology"
	}
	return fatalAdvice(err)
}

// Leave implements Membership.
func (s *Streams) Leave(ctx context.Context) error {
	s.current.Store(nil)
	if s.epoch == 0 {
		return nil // never joined
	}
	req := s.request()
	req.MemberEpoch, req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = leaveEpoch, nil, nil, nil
	for {
		_, err := s.send(ctx, req)
		if err == nil || errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.GroupIDNotFound) {
			return nil
		}
		if !offsets.Retriable(err) || offsets.Pause(ctx) != nil {
			return fmt.Errorf("leave group %s: %w", s.cfg.Group, err)
		}
	}
}
