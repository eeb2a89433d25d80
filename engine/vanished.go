package engine

import (
	"context"
	"errors"
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

// vanished looks, where brokers don't know some topic, whether internal topics of the application were deleted, which nothing makes good: what was
// in them is lost, and to make them anew would hide it. It gives a *topics.InternalError then. nil means that all are there, or that brokers don't
// answer. troubled, if not nil, is called where it isn't clear at once.
func (e *Engine) vanished(ctx context.Context, troubled func()) error {
	var known []topics.Topic
	names := make([]string, 0, len(e.plan.InternalTopics))
	c := e.catalog()
	c.mu.Lock()
	for name := range e.plan.InternalTopics {
		if t, ok := c.topics[name]; ok {
			known, names = append(known, t), append(names, name)
		}
	}
	c.mu.Unlock()
	for waited := time.Duration(0); ; waited += vanishPause {
		try, cancel := context.WithTimeout(ctx, e.cfg.vanish)
		found, err := topics.Describe(try, e.control, names...)
		cancel()
		if err != nil {
			return nil
		}
		bad := topics.Changed(known, found)
		if len(bad) == 0 {
			return nil
		}
		if waited >= e.cfg.vanish {
			return &topics.InternalError{Problems: bad}
		}
		if troubled != nil && waited == 0 {
			troubled()
		}
		if sleep(ctx, vanishPause) != nil {
			return nil
		}
	}
}
