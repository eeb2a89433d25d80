package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
)

// Records that the brokers don't take go to the production-error handler, as with Kafka Streams' ProductionExceptionHandler. There are two
// ways to find out:
//
//   - A record that is larger than its topic's max.message.bytes is seen before it is sent (limits).
//   - Other refusals come as answers, when the record's task is far beyond it and the transaction is spoiled: the work is taken back and
//     done again, and this time the record, known by its contents, goes to the handler (refusals). An answer is about a whole batch: if that
//     had several records, each goes alone the next time, and the one to blame shows.

// limits knows how large a batch each topic takes. Any goroutine may ask.
type limits struct {
	mu    sync.RWMutex
	bytes map[string]int32
}

// known is the limit of a topic as far as it was asked for.
func (l *limits) known(topic string) (int32, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	n, ok := l.bytes[topic]
	return n, ok
}

func (l *limits) learn(found map[string]int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes == nil {
		l.bytes = map[string]int32{}
	}
	maps.Copy(l.bytes, found)
}

// learnLimits asks for the limits of the topics that the plan and the error handlers name, so that no first record of one has to wait for brokers
// that are away just then. The topics that records choose are asked for one by one.
func (e *Engine) learnLimits(ctx context.Context) {
	names := slices.Concat(e.outputTopics(), e.cfg.handlers.Topics(), slices.Collect(maps.Keys(e.plan.InternalTopics)))
	slices.Sort(names)
	found, err := topics.MaxMessageBytes(ctx, e.control, slices.Compact(names)...)
	if err != nil {
		e.log.Warn("limits of topics can't be read yet: each is asked for again with its first record", "error", err)
		return
	}
	e.limits.learn(found)
}

// limit asks the brokers for what isn't known yet. What is known holds for the life of the instance.
func (e *Engine) limit(ctx context.Context, topic string) (int32, error) {
	if n, ok := e.limits.known(topic); ok {
		return n, nil
	}
	found, err := topics.MaxMessageBytes(ctx, e.control, topic)
	for pause := 100 * time.Millisecond; err != nil; pause = min(2*pause, 5*time.Second) { // brokers are away
		if fetch.NeedsAPerson(err) {
			return 0, err
		}
		if ended := sleep(ctx, pause); ended != nil {
			return 0, errors.Join(ended, err)
		}
		found, err = topics.MaxMessageBytes(ctx, e.control, topic)
	}
	n, ok := found[topic]
	if !ok { // it may not be read
		n = topics.DefaultMaxMessageBytes
	}
	e.limits.learn(map[string]int32{topic: n})
	return n, nil
}

const (
	usualBatch    = 1_000_012 // bytes of a batch where the topic's limit isn't known
	smallestBatch = 512       // of the client
)

// batchBytes is how large a batch the producer may make for a topic: it takes single records up to the topic's limit.
func (l *limits) batchBytes(topic string) int32 {
	n, ok := l.known(topic)
	if !ok {
		return usualBatch
	}
	return max(n, smallestBatch)
}

// The bytes of a batch besides keys, values and headers, at most.
const (
	batchOverhead  = 61 + 7*5 + 10
	headerOverhead = 2 * 5
)

func batchOf(r *txn.Record) int {
	size := batchOverhead + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		size += headerOverhead + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return size
}

// fits tells what is wrong with a record's size.
func (c *collector) fits(r *txn.Record) error {
	if r.Topic != c.limitOf {
		n, err := c.e.limit(c.asking, r.Topic)
		if err != nil {
			return c.unanswered(err)
		}
		c.limitOf, c.limit = r.Topic, int(n)
	}
	if size := batchOf(r); size > c.limit {
		return &processors.RefusedError{Topic: r.Topic, Err: fmt.Errorf(
			"a record of %d bytes is larger than the %d that the topic takes (max.message.bytes): make it smaller, or raise the limit", size, c.limit)}
	}
	return nil
}

// refusals are the records that brokers have refused, by their contents. Workers ask; the conductor adds, while the gate is closed.
type refusals struct {
	any atomic.Bool // something is in here

	mu       sync.Mutex // held while a suspect is sent alone, and by all other sending as long as there are suspects
	certain  map[txn.Fingerprint]error
	suspects map[txn.Fingerprint]error
	rounds   int // since something was committed
	quiet    int // commits since the last refusal
}

const (
	maxRefusals   = 10_000 // more are forgotten
	maxRounds     = 200    // so many refusals without a commit between: records that are never twice the same
	forgetRefused = 1000   // commits after which nothing is suspected any more
)

// learn takes the refusals of a transaction. It reports false if they can't be handed to a handler: nobody is there to decide, a store's
// changelog can't do without the record, or it doesn't come to an end.
func (e *Engine) learn(refused []txn.Refused) bool {
	if len(refused) == 0 || e.cfg.handlers.Production == nil {
		return false
	}
	if slices.ContainsFunc(refused, func(r txn.Refused) bool {
		t := e.plan.InternalTopics[r.Topic]
		return t != nil && t.Kind == plan.ChangelogTopic
	}) {
		return false
	}
	f := &e.refusals
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.certain == nil || len(f.certain)+len(f.suspects)+len(refused) > maxRefusals {
		f.certain, f.suspects = map[txn.Fingerprint]error{}, map[txn.Fingerprint]error{}
	}
	f.quiet = 0
	if f.rounds++; f.rounds > maxRounds {
		return false
	}
	for _, r := range refused {
		if len(refused) == 1 {
			f.certain[r.Record] = r.Err
			delete(f.suspects, r.Record)
		} else if f.certain[r.Record] == nil {
			f.suspects[r.Record] = r.Err
		}
	}
	f.any.Store(true)
	return true
}

// committed notes that things go on.
func (f *refusals) committed() {
	if !f.any.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rounds = 0
	if f.quiet++; f.quiet > forgetRefused {
		clear(f.certain)
		clear(f.suspects)
		f.any.Store(false)
	}
}

// produceCarefully is for the time after a refusal: known records are refused at once, suspects are sent alone.
func (c *collector) produceCarefully(r txn.Record) error {
	f := &c.e.refusals
	f.mu.Lock()
	defer f.mu.Unlock()
	id := r.Fingerprint()
	if err := f.certain[id]; err != nil {
		return &processors.RefusedError{Topic: r.Topic, Err: err}
	}
	if f.suspects[id] == nil {
		return c.send(r)
	}
	if err := c.e.producer.Flush(c.ctx); err != nil {
		return &producerError{err}
	}
	if err := c.send(r); err != nil {
		return err
	}
	err := c.e.producer.Flush(c.ctx)
	if err == nil {
		err = c.e.producer.Err()
	}
	if err != nil { // the commit takes it all back, and learns who it was
		return &producerError{err}
	}
	delete(f.suspects, id)
	return nil
}
