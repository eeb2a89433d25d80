package engine

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/internal/plan"
)

// purge deletes what has been read from repartition topics, and what has been landed from topics before lake sinks: their retention is
// without limit. It runs in the background, one at a time.
func (e *Engine) purge() {
	now := e.cfg.clock()
	if e.purging || now.Sub(e.purgedAt) < e.cfg.purgeEvery {
		return
	}
	bounds := e.purgeBounds()
	e.purgedAt = now
	e.cleanStale()
	if len(bounds) == 0 {
		return
	}
	e.purging = true
	e.openers.Go(func() {
		if err := topics.Purge(e.life, e.control, bounds); err != nil && e.life.Err() == nil {
			e.log.Warn("internal topics can't be purged at the moment", "error", err)
		}
		e.tell(purged{})
	})
}

// purgeBounds are the committed offsets of internal input topics. For lake tasks these are the tables' (see sealLake).
func (e *Engine) purgeBounds() []topics.Bound {
	var bounds []topics.Bound
	for _, r := range sortedRunners(e.runners) {
		if !r.open {
			continue
		}
		for _, tp := range r.spec.inputs {
			t := e.plan.InternalTopics[tp.Topic]
			if t == nil || t.Kind == plan.ChangelogTopic {
				continue
			}
			if at := r.committed[tp]; at > 0 && at != e.purgedTo[tp] {
				e.purgedTo[tp] = at
				bounds = append(bounds, topics.Bound{Topic: tp.Topic, Partition: tp.Partition, Before: at})
			}
		}
	}
	return bounds
}

func isOutOfRange(err error) bool { return errors.Is(err, kerr.OffsetOutOfRange) }

// gone tells that a topic may have been deleted.
func gone(err error) bool {
	return errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.UnknownTopicOrPartition)
}

// needsAPerson tells that an error of fetching doesn't pass by itself.
func needsAPerson(err error) bool {
	for _, bad := range []error{kerr.TopicAuthorizationFailed, kerr.SaslAuthenticationFailed, kerr.UnsupportedCompressionType, kerr.UnsupportedVersion, kerr.UnknownTopicID} {
		if errors.Is(err, bad) {
			return true
		}
	}
	return false
}
