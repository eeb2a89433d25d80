package engine

import (
	"context"

	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/plan"
)

// settle ends what brokers left open of this instance's earlier transactions, before anything is committed: see txn.Producer.Settle. It costs
// a look at the topics that are written to, at a start, after a failed commit and after an outage. Topics that records chose themselves are looked at once this
// process has written to them.
func (e *Engine) settle(ctx context.Context) (txn.Leftover, error) {
	failed := e.outages.failed.Load()
	found, err := e.producer.Settle(ctx, e.written(), e.committers()...)
	if err == nil {
		e.outages.settled.Store(failed)
	}
	if err == nil && found.Any() {
		e.log.Warn("brokers took a transaction of this instance for ended without marking its end: that is done now",
			"committed", found.Committed, "aborted", found.Aborted, "groups", found.Groups)
	}
	if len(found.Unchecked) > 0 {
		e.log.Debug("whether a transaction was left open in these topics isn't known: give the right to read them, to be sure", "topics", found.Unchecked)
	}
	return found, err
}

// settleAtStart is settle, again for as long as brokers that are just coming up don't answer as they should.
func (e *Engine) settleAtStart(ctx context.Context) error {
	_, err := e.settle(ctx)
	if err == nil || ctx.Err() != nil || txn.Permanent(err) {
		return err
	}
	e.log.Warn("what earlier transactions left open can't be ended yet", "error", err)
	return e.resetProducer(ctx, func() {})
}

// written are the topics that the instance writes to, with their numbers of partitions.
func (e *Engine) written() map[string]int32 {
	c := e.catalog()
	if c == nil {
		return nil
	}
	sinks := map[string]bool{}
	for _, n := range e.plan.Nodes {
		sinks[n.Topic] = n.Kind == plan.SinkNode || sinks[n.Topic]
	}
	sources := map[string]bool{}
	for _, t := range c.sources {
		sources[t] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[string]int32{}
	for name, t := range c.topics {
		if !sources[name] || sinks[name] || e.plan.InternalTopics[name] != nil {
			counts[name] = t.Partitions
		}
	}
	return counts
}

// committers are the groups that the instance's transactions commit offsets of.
func (e *Engine) committers() []txn.Reader {
	c := e.catalog()
	if c == nil {
		return nil
	}
	app, dead := txn.Reader{Group: e.group()}, txn.Reader{Group: e.deadGroup()}
	for _, spec := range c.tasks {
		for _, tp := range spec.inputs {
			p := offsets.Partition{Topic: tp.Topic, ID: c.id(tp.Topic), Partition: tp.Partition}
			app.Parts = append(app.Parts, p)
			if spec.lake {
				dead.Parts = append(dead.Parts, p)
			}
		}
	}
	return []txn.Reader{app, dead}
}
