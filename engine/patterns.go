package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tributary-io/tributary/engine/internal/lander"
	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/internal/task"
)

// Sources with a pattern read all topics that match it. A running instance looks again now and then (LookForTopics), makes a new catalog where
// something has changed, commits, replaces the catalog, and opens the tasks whose inputs have changed anew; then it joins again, so that new
// tasks are given out. Each instance does so by itself. One that is given a task which it doesn't know looks at once.
// With ParkLake the sources of tables are watched in the same way: their topics may be missing.

// matches are the topics that patterns match, by the name of the source and by their own.
type matches map[string]map[string]topics.Topic

// names lists the topics of each source, sorted.
func (m matches) names() map[string][]string {
	names := map[string][]string{}
	for source, found := range m {
		names[source] = slices.Sorted(maps.Keys(found))
	}
	return names
}

// has tells whether a topic is read because a pattern matches it.
func (m matches) has(topic string) bool {
	for _, found := range m {
		if _, ok := found[topic]; ok {
			return true
		}
	}
	return false
}

func (m matches) equal(o matches) bool {
	return maps.EqualFunc(m, o, func(a, b map[string]topics.Topic) bool { return maps.Equal(a, b) })
}

// matchPatterns finds the topics of each source with a pattern. Internal topics never match.
func (e *Engine) matchPatterns(ctx context.Context) (matches, error) {
	all := matches{}
	for name, n := range e.plan.Nodes {
		if n.Pattern == "" {
			continue
		}
		found, err := topics.Matching(ctx, e.control, n.Pattern)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", name, err)
		}
		maps.DeleteFunc(found, func(topic string, _ topics.Topic) bool { return e.plan.InternalTopics[topic] != nil })
		all[name] = found
	}
	return all, e.findLakeSources(ctx, all)
}

// findLakeSources adds the topics that are there of sources that may lack some.
func (e *Engine) findLakeSources(ctx context.Context, all matches) error {
	sources := e.lakeSources()
	found, err := topics.Describe(ctx, e.control, slices.Concat(slices.Collect(maps.Values(sources))...)...)
	if err != nil {
		return err
	}
	for name, names := range sources {
		all[name] = map[string]topics.Topic{}
		for _, topic := range names {
			if t, ok := found[topic]; ok {
				all[name][topic] = t
			}
		}
	}
	return nil
}

// watchPatterns looks for changes until ctx ends.
func (e *Engine) watchPatterns(ctx context.Context) {
	if len(e.catalog().matched) == 0 || e.cfg.lookEvery <= 0 {
		return
	}
	seen := e.catalog().matched
	tick := time.NewTicker(e.cfg.lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-e.look:
		}
		found, err := e.matchPatterns(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			e.log.Warn("can't look for topics of patterns at the moment", "error", err)
			continue
		}
		if seen.equal(found) {
			continue
		}
		c, err := e.catalogOf(ctx, found)
		if ctx.Err() != nil {
			return
		}
		if err != nil { // such as partitions that don't fit those of a join's other side
			e.log.Error("topics of a pattern have changed in a way that doesn't fit the topology: they are left as they were known until that is mended", "error", err)
			continue
		}
		seen = found
		e.log.Info("topics of a pattern have changed", "topics", found.names())
		e.tell(newCatalog{c})
	}
}

// lookAgain makes watchPatterns look at once.
func (e *Engine) lookAgain() {
	select {
	case e.look <- struct{}{}:
	default:
	}
}

// renew makes the next catalog the known one: what is done is committed, tasks with other inputs are opened again, and the group learns of
// new ones.
func (e *Engine) renew() error {
	if e.next == nil {
		return nil
	}
	e.gate.close() // nothing is processed between the commit and the closing
	defer e.gate.open()
	before := e.catalog()
	e.known.Store(e.next)
	e.next = nil
	if e.queries.started.Load() != nil {
		e.queries.started.Store(e.startedQueries())
	}
	if err := e.commitNow(); err != nil {
		return err
	}
	var changed []*runner
	var tables []*lander.Lander
	for _, r := range sortedRunners(e.runners) {
		switch {
		case !e.inputsChanged(r, before):
		case r.spec.lake && r.open:
			tables = append(tables, r.lake.landers...)
		default:
			changed = append(changed, r)
		}
	}
	err := e.rewind(changed)
	err = errors.Join(err, e.resetTables(tables...))
	e.membership.Rejoin()
	if target, copies, assigned := e.members.given(); assigned {
		err = errors.Join(err, e.openGiven(target, copies, 0)) // what was given out before it was known here
	}
	return err
}

// inputsChanged tells whether a runner's task has other inputs than it had by the catalog before, or one that was deleted and made anew.
func (e *Engine) inputsChanged(r *runner, before *catalog) bool {
	inputs := e.specOf(r).inputs
	return !slices.Equal(r.spec.inputs, inputs) ||
		slices.ContainsFunc(inputs, func(tp task.TopicPartition) bool { return before.id(tp.Topic) != e.catalog().id(tp.Topic) })
}

// specOf is what the catalog says of a runner's task now; a task whose topics are all gone stays as it was.
func (e *Engine) specOf(r *runner) *taskSpec {
	if r.spec.id.Subtopology < 0 {
		return r.spec
	}
	if spec := e.catalog().tasks[r.spec.id]; spec != nil {
		return spec
	}
	return r.spec
}
