package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/offsets"
)

// Config says which group a member joins, and how.
type Config struct {
	Client     *kgo.Client // for requests; consumes nothing
	Group      string
	InstanceID string // of static membership
	// SessionTimeout is how long a member may be silent before its tasks go to others.
	SessionTimeout time.Duration
	// RebalanceTimeout is how long the coordinator waits for members to join a new generation.
	RebalanceTimeout time.Duration
	// Heartbeat is the time between signs of life, and so the time in which a rebalance is noticed.
	Heartbeat time.Duration
	Logger    *slog.Logger
}

// Classic is a member by the classic protocol.
type Classic struct {
	*place
	cfg     Config
	handler Handler

	memberID string // Run's own
}

var _ Membership = (*Classic)(nil)

// NewClassic makes a member. Nothing is sent before Run.
func NewClassic(cfg Config, h Handler) *Classic {
	return &Classic{place: newPlace(cfg.Group, cfg.SessionTimeout, h, cfg.Logger), cfg: cfg, handler: h}
}

// Run implements Membership.
func (c *Classic) Run(ctx context.Context) error { return c.keep(ctx, c.generation) }

// longJoin is after how long a join is said to take its time.
const longJoin = 2 * time.Second

// generation joins one generation and stays in it until it ends. The error says how: errRejoin, *FatalError, or something to be
// tried again.
func (c *Classic) generation(ctx context.Context) error {
	select {
	case <-c.rejoin: // this join says what Rejoin was called for
	default:
	}
	c.handler.BeforeJoin(ctx)
	slow := time.AfterFunc(longJoin, func() {
		c.cfg.Logger.Info("waiting for the group: it shares its tasks anew once all members have joined, or those that don't, since they were killed or are busy, are given up",
			"group", c.cfg.Group, "at_most", max(c.cfg.SessionTimeout, c.cfg.RebalanceTimeout))
	})
	joined, err := c.join(ctx)
	slow.Stop()
	if err != nil {
		return c.refused(fmt.Errorf("join: %w", err))
	}
	data, err := c.sync(ctx, joined)
	if err != nil {
		return c.refused(fmt.Errorf("sync: %w", err))
	}
	c.silence.answers()
	c.current.Store(&offsets.Member{ID: c.memberID, InstanceID: &c.cfg.InstanceID, Generation: joined.Generation})
	if err := c.handler.Assigned(data); err != nil {
		return fmt.Errorf("take the assignment: %w", err)
	}
	return c.stay(ctx, joined.Generation)
}

// stay sends heartbeats until the generation ends.
func (c *Classic) stay(ctx context.Context, generation int32) error {
	beat := time.NewTicker(c.cfg.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.rejoin:
			return errRejoin
		case <-beat.C:
		}
		err := c.heartbeat(ctx, generation)
		if err == nil || errors.Is(err, kerr.RebalanceInProgress) {
			c.silence.answers()
		}
		if err == nil {
			continue
		}
		if again := c.refused(fmt.Errorf("heartbeat: %w", err)); errors.Is(again, errRejoin) || !transient(err) {
			return again
		}
		if ctx.Err() == nil { // who closes isn't unheard
			c.silence.fails(fmt.Errorf("heartbeat: %w", err))
		}
	}
}

// transient errors of a heartbeat say nothing about the membership: the coordinator can't be reached, loads, or has moved.
func transient(err error) bool {
	var answer *kerr.Error
	return !errors.As(err, &answer) || answer.Retriable
}

// refused turns what a coordinator answered into what to do about it.
func (c *Classic) refused(err error) error {
	switch {
	case errors.Is(err, kerr.RebalanceInProgress):
		return errRejoin
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration):
		c.memberID = ""
		return c.thrownOut(err)
	case errors.Is(err, kerr.MemberIDRequired):
		return errRejoin
	}
	if advice := fatalAdvice(err); advice != "" {
		return &FatalError{Group: c.cfg.Group, Err: err, Advice: advice}
	}
	return err
}

func fatalAdvice(err error) string {
	switch {
	case errors.Is(err, kerr.FencedInstanceID):
		return "another process runs with the same identity: give each instance a state directory of its own, and never copy one"
	case errors.Is(err, kerr.InconsistentGroupProtocol):
		return "the group is used by other clients: choose another application id"
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return "this user needs READ on the group"
	case errors.Is(err, kerr.GroupMaxSizeReached):
		return "the group has as many members as the broker's group.max.size allows"
	case errors.Is(err, kerr.InvalidSessionTimeout):
		return "the session timeout is outside of what the broker's group.min.session.timeout.ms and group.max.session.timeout.ms allow"
	case errors.Is(err, kerr.InvalidGroupID):
		return "the application id is no valid group id"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "check the user and password"
	}
	return ""
}
