package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/engine/internal/topics"
)

// vanishPause is the time between two looks for topics that are unknown to brokers. They count as deleted after config.vanish.
const vanishPause = 250 * time.Millisecond

// unknownTopic tells whether brokers don't know a topic that something was about.
func unknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// errNoAnswer is in the error of a look at internal topics where brokers didn't say which there are.
var errNoAnswer = errors.New("brokers don't say which topics there are")

// vanished looks, where brokers don't know some topic, whether internal topics of the application were deleted, which nothing makes good: what was
// in them is lost, and to make them anew would hide it. It gives a *topics.InternalError then. nil means that all are there, or that brokers don't
// answer. troubled, if not nil, is called where it isn't clear at once.
func (e *Engine) vanished(ctx context.Context, troubled func()) error {
	if err := e.lookForInternal(ctx, troubled); !errors.Is(err, errNoAnswer) {
		return err
	}
	return nil
}

// awaitInternal is vanished for those who can't go on without an answer: nil means that all are there.
func (e *Engine) awaitInternal(ctx context.Context) error {
	for {
		err := e.lookForInternal(ctx, nil)
		if !errors.Is(err, errNoAnswer) {
			return err
		}
		if err := sleep(ctx, vanishPause); err != nil {
			return err
		}
	}
}

func (e *Engine) lookForInternal(ctx context.Context, troubled func()) error {
	known := e.knownInternal()
	for waited := time.Duration(0); ; waited += vanishPause {
		try, cancel := context.WithTimeout(ctx, e.cfg.vanish)
		bad, err := topics.Lost(try, e.control, known)
		cancel()
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", errNoAnswer, err)
		case len(bad) == 0:
			return nil
		case waited >= e.cfg.vanish:
			return &topics.InternalError{Problems: bad}
		}
		if troubled != nil && waited == 0 {
			troubled()
		}
		if err := sleep(ctx, vanishPause); err != nil {
			return fmt.Errorf("%w: %w", errNoAnswer, err)
		}
	}
}

// knownInternal are the application's internal topics as the catalogue has them.
func (e *Engine) knownInternal() (known []topics.Topic) {
	c := e.catalog()
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range e.plan.InternalTopics {
		if t, ok := c.topics[name]; ok {
			known = append(known, t)
		}
	}
	return known
}
