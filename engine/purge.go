package engine

import (
	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
)

// purge deletes what isn't needed any more of topics whose retention is without limit: what has been read from repartition topics, what has
// been landed from topics before lake sinks, and what has expired from the stores of windowed changelogs. It runs in the background, one at a
// time.
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
		refused, err := topics.Purge(e.life, e.control, bounds)
		e.tell(purged{bounds, refused, err})
	})
}

// purgeEnded says what couldn't be deleted. That takes space, and is no reason to stop.
func (e *Engine) purgeEnded(p purged) {
	e.purging = false
	for _, topic := range p.refused {
		if !e.purgeRefused[topic] {
			e.purgeRefused[topic] = true
			e.log.Warn("an internal topic grows without bounds: the application's user lacks the right to delete its records (Delete on the topic)", "topic", topic)
		}
	}
	if p.err == nil || e.life.Err() != nil {
		return
	}
	e.log.Warn("internal topics can't be purged at the moment", "error", p.err)
	for _, b := range p.bounds { // all of it again, the next time
		delete(e.purgedTo, task.TopicPartition{Topic: b.Topic, Partition: b.Partition})
	}
}

// purgeBounds are the offsets that have been reached since the last purge.
func (e *Engine) purgeBounds() []topics.Bound {
	var bounds []topics.Bound
	reached := func(tp task.TopicPartition, at int64) {
		if at > 0 && at != e.purgedTo[tp] {
			e.purgedTo[tp] = at
			bounds = append(bounds, topics.Bound{Topic: tp.Topic, Partition: tp.Partition, Before: at})
		}
	}
	for _, r := range sortedRunners(e.runners) {
		if !r.open {
			continue
		}
		for _, tp := range r.spec.inputs {
			if t := e.plan.InternalTopics[tp.Topic]; t != nil && t.Kind != plan.ChangelogTopic {
				reached(tp, r.committed[tp]) // for lake tasks the tables' (see sealLake)
			}
		}
		e.expiredOf(r, reached)
	}
	return bounds
}

// expiredOf tells up to where the changelogs of a runner's windowed stores are of windows only that have expired.
func (e *Engine) expiredOf(r *runner, reached func(tp task.TopicPartition, before int64)) {
	if r.db == nil {
		return
	}
	for _, spec := range r.db.Stores() {
		if before, ok := r.db.ExpiredBefore(spec.Name); ok && spec.Purged() {
			reached(task.TopicPartition{Topic: e.plan.Stores[spec.Name].Changelog, Partition: r.spec.id.Partition}, before)
		}
	}
}
