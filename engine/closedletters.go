package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/topicrights"
)

// Under ParkLake a topic of dead letters that can't be written any more, since its right was taken or it was deleted, concerns those tasks alone that have
// something for it. One transaction has the letters of all, so that the first refusal takes all of it back; from then on the topic counts as closed:
// what would be written to it fails with the record that it is about, which parks its task there. Before each next try the brokers are asked. A task that
// can't be parked, since it has more than rows, ends the instance by that, as it would without ParkLake.

// askingLetters bounds a question about a topic of dead letters, which the worker that asks waits for.
const askingLetters = 5 * time.Second

// closedLetters are the topics that dead letters went to, by name. Workers look, and ask brokers without the lock; the conductor closes, while the gate
// is closed and none of them asks.
type closedLetters struct {
	mu     sync.Mutex
	topics map[string]*letterTopic
}

type letterTopic struct {
	err   error     // why it is closed; nil while it isn't
	tries int       // in a row; an answer that it can be written is one, too, if letters are refused soon after
	next  time.Time // when the brokers are asked again, or were asked last
}

// closeLetters closes the topic of dead letters that a commit has failed by, and reports whether it was that. gone is what was found to be deleted, other
// topics of dead letters perhaps among it; nil if nothing was.
func (e *Engine) closeLetters(cause, gone error) bool {
	var produce *txn.ProduceError
	if !e.cfg.parks || !errors.As(cause, &produce) {
		return false
	}
	c := &e.closed
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.topics[produce.Topic]
	if t == nil || e.plan.InternalTopics[produce.Topic] != nil || slices.Contains(e.outputTopics(), produce.Topic) {
		return false
	}
	why := topicrights.ErrMayNotWrite
	if deleted := (*DeletedTopicsError)(nil); errors.As(gone, &deleted) {
		if !slices.Contains(deleted.Outputs, produce.Topic) || !e.onlyLetters(deleted) {
			return false
		}
		why = topicrights.ErrNoTopic
	} else if gone != nil || !errors.Is(produce, kerr.TopicAuthorizationFailed) {
		return false
	}
	now := e.cfg.clock()
	if now.Sub(t.next) > 2*longestRetry { // else brokers may have said that it can be written, since they don't tell of rights
		t.tries = 0
	}
	t.err, t.next = closedError(produce.Topic, why), now.Add(retryIn(t.tries))
	t.tries++
	return true
}

// onlyLetters tells whether nothing was deleted but what error handlers write to, and nothing of that was made anew with fewer partitions, which takes a
// new start.
func (e *Engine) onlyLetters(deleted *DeletedTopicsError) bool {
	outputs := e.outputTopics()
	return len(deleted.Sources)+len(deleted.Anew) == 0 && !slices.ContainsFunc(deleted.Outputs, func(topic string) bool { return slices.Contains(outputs, topic) })
}

// closedError tells what is to be done.
func closedError(topic string, why error) error {
	advice := "the application's user needs Write on it"
	if errors.Is(why, topicrights.ErrNoTopic) {
		advice = "make it again"
	}
	return fmt.Errorf("dead letters can't be written to topic %s: %w; %s", topic, why, advice)
}

// lettersClosed is why nothing can be written to a topic of dead letters, nil if it isn't closed. Where it is time for that it asks the brokers.
func (e *Engine) lettersClosed(ctx context.Context, topic string) error {
	now := e.cfg.clock()
	ask, err := e.closed.look(topic, now)
	if !ask {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, askingLetters)
	defer cancel()
	err = topicrights.MayWrite(asking, e.control, topic)
	if err == nil {
		e.log.Info("dead letters can be written again", "topic", topic)
	}
	return e.closed.answered(topic, err, now)
}

// look is why a topic is closed, as is known; or the brokers are to be asked, by this worker alone: for the others it stays closed meanwhile.
func (c *closedLetters) look(topic string, now time.Time) (ask bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.topics[topic]
	if t == nil {
		if c.topics == nil {
			c.topics = map[string]*letterTopic{}
		}
		c.topics[topic] = &letterTopic{}
		return false, nil
	}
	if t.err == nil || now.Before(t.next) {
		return false, t.err
	}
	t.next = now.Add(askingLetters)
	return true, nil
}

// answered notes what brokers asked at a time have said of a topic, and gives why it is closed now.
func (c *closedLetters) answered(topic string, why error, at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.topics[topic]
	if why == nil {
		t.err, t.next = nil, at
		return nil
	}
	t.err, t.next = closedError(topic, why), at.Add(retryIn(t.tries))
	t.tries++
	return t.err
}
