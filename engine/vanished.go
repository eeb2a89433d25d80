package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/engine/internal/txn"
)

// vanishPause is the time between two looks for topics that are unknown to brokers. They count as deleted after config.vanish.
const vanishPause = 250 * time.Millisecond

// DeletedTopicsError names topics of the user that were deleted while the application ran. A source ends every instance, as Kafka Streams'
// MissingSourceTopicException does; an output the instance that would write to it.
type DeletedTopicsError struct {
	Sources []string // that the topology reads, sorted
	Outputs []string // that it writes to, or its error handlers do, sorted
	// Anew are those of them that somebody has made again: sources, whose committed offsets are those of the topic that was deleted, and outputs
	// with fewer partitions than before.
	Anew []string
}

func (e *DeletedTopicsError) Error() string {
	var lines []string
	add := func(what string, names []string) {
		for _, name := range names {
			if slices.Contains(e.Anew, name) {
				lines = append(lines, fmt.Sprintf("%s %s was deleted and made anew while the application ran; start the instances again", what, name))
			} else {
				lines = append(lines, fmt.Sprintf("%s %s was deleted while the application ran; create it, topics of the user are never made by the engine, "+
					"and start the instances again", what, name))
			}
		}
	}
	add("source topic", e.Sources)
	add("output topic", e.Outputs)
	return strings.Join(lines, "\n  ")
}

// unknownTopic tells whether brokers don't know a topic that something was about.
func unknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// errNoAnswer is in the error of a look at topics where brokers didn't say which there are.
var errNoAnswer = errors.New("brokers don't say which topics there are")

// vanished looks, where brokers don't know some topic, whether topics that the application can't do without were deleted, which nothing makes good:
// what was in internal topics is lost, and to make them anew would hide it; the user's are the user's to make. It gives a *topics.InternalError or a
// *DeletedTopicsError then. nil means that all are there, or that brokers don't answer. troubled, if not nil, is called where it isn't clear at once.
func (e *Engine) vanished(ctx context.Context, troubled func(), known []topics.Topic) error {
	if err := e.lookFor(ctx, troubled, known); !errors.Is(err, errNoAnswer) {
		return err
	}
	return nil
}

// awaitInternal is vanished for internal topics, for those who can't go on without an answer: nil means that all are there.
func (e *Engine) awaitInternal(ctx context.Context) error {
	for {
		err := e.lookFor(ctx, nil, e.knownInternal())
		if !errors.Is(err, errNoAnswer) {
			return err
		}
		if err := sleep(ctx, vanishPause); err != nil {
			return err
		}
	}
}

// lookFor asks until all topics are there or some are missing at each look for config.vanish: one broker that was away may lag behind the others.
func (e *Engine) lookFor(ctx context.Context, troubled func(), known []topics.Topic) error {
	missing := absences{}
	for waited := time.Duration(0); ; waited += vanishPause {
		try, cancel := context.WithTimeout(ctx, e.cfg.vanish)
		gone, err := topics.Lost(try, e.control, known)
		cancel()
		if err != nil {
			return fmt.Errorf("%w: %w", errNoAnswer, err)
		}
		if e.deleted(gone) == nil {
			return nil
		}
		if bad := e.deleted(missing.lasting(gone, waited, e.cfg.vanish)); bad != nil {
			return bad
		}
		if troubled != nil && waited == 0 {
			troubled()
		}
		if err := sleep(ctx, vanishPause); err != nil {
			return fmt.Errorf("%w: %w", errNoAnswer, err)
		}
	}
}

// absences are topics that were missing at each of some looks, by name, with the time of the first of these.
type absences map[string]time.Duration

// lasting takes what is missing now into account, and gives what has been missing for so long.
func (a absences) lasting(gone []topics.Gone, now, atLeast time.Duration) (lasting []topics.Gone) {
	maps.DeleteFunc(a, func(topic string, _ time.Duration) bool {
		return !slices.ContainsFunc(gone, func(g topics.Gone) bool { return g.Topic.Name == topic })
	})
	for _, g := range gone {
		since, known := a[g.Topic.Name]
		if !known {
			since = now
			a[g.Topic.Name] = now
		}
		if now-since >= atLeast {
			lasting = append(lasting, g)
		}
	}
	return lasting
}

// deleted makes an error of what is gone; nil if the application can go on without. That of internal topics comes first.
func (e *Engine) deleted(gone []topics.Gone) error {
	var internal []topics.Problem
	users := &DeletedTopicsError{}
	sources := e.namedSources()
	for _, g := range gone {
		switch {
		case e.plan.InternalTopics[g.Topic.Name] != nil:
			internal = append(internal, g.Problem())
			continue
		case sources[g.Topic.Name]:
			users.Sources = append(users.Sources, g.Topic.Name)
		case !g.Anew() || g.Now.Partitions < g.Topic.Partitions: // else a new producer writes to the new one
			users.Outputs = append(users.Outputs, g.Topic.Name)
		default:
			continue
		}
		if g.Anew() {
			users.Anew = append(users.Anew, g.Topic.Name)
		}
	}
	switch {
	case len(internal) > 0:
		return &topics.InternalError{Problems: internal}
	case len(users.Sources)+len(users.Outputs) > 0:
		return users
	}
	return nil
}

// namedSources are the topics that the topology reads by their names: those of patterns come and go.
func (e *Engine) namedSources() map[string]bool {
	c := e.catalog()
	named := map[string]bool{}
	for _, topic := range c.sources {
		named[topic] = true
	}
	if c.global != nil {
		for _, tp := range c.global.inputs {
			named[tp.Topic] = true
		}
	}
	maps.DeleteFunc(named, func(topic string, _ bool) bool { return c.matched.has(topic) })
	return named
}

// knownInternal are the application's internal topics as the catalogue has them.
func (e *Engine) knownInternal() []topics.Topic { return e.knownTopics(nil) }

// knownInputs are the internal topics and the sources.
func (e *Engine) knownInputs() []topics.Topic { return e.knownTopics(e.namedSources()) }

// knownFor are all that a commit needs which met err: the inputs, outputs by their names, and the topic, perhaps chosen by a record, that err is about.
func (e *Engine) knownFor(err error) []topics.Topic {
	names := e.namedSources()
	for _, name := range slices.Concat(e.outputTopics(), e.cfg.handlers.Topics()) {
		names[name] = true
	}
	var produce *txn.ProduceError
	if errors.As(err, &produce) {
		names[produce.Topic] = true
	}
	return e.knownTopics(names)
}

// knownTopics are the internal topics, and others of these names, as the catalogue has them.
func (e *Engine) knownTopics(names map[string]bool) (known []topics.Topic) {
	c := e.catalog()
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, t := range c.topics {
		if names[name] || e.plan.InternalTopics[name] != nil {
			known = append(known, t)
		}
	}
	return known
}

// watchInputs ends the engine where an input was deleted: it looks where one can't be read, and now and then, since an instance without tasks
// reads none.
func (e *Engine) watchInputs(ctx context.Context) {
	tick := time.NewTicker(e.cfg.inputsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-e.suspect:
		}
		troubled := func() {
			e.log.Warn("brokers don't know some topics that the application reads: looking whether they were deleted")
		}
		if err := e.vanished(ctx, troubled, e.knownInputs()); err != nil {
			e.failed(err)
			return
		}
	}
}

// suspectInputs makes watchInputs look at once, or when it is done with a look; false says that it was to do so already.
func (e *Engine) suspectInputs() bool {
	select {
	case e.suspect <- struct{}{}:
		return true
	default:
		return false
	}
}
