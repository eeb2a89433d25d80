package processors

import (
	"errors"
	"time"

	"github.com/tributary-io/tributary/state"
)

// baseContext is the part of a processor's context that doesn't depend on types.
type baseContext struct {
	Runtime
	// failed is a fatal error that a child returned. It goes up even if the user's code drops it.
	failed error
}

// Metadata implements BaseContext.
func (c *baseContext) Metadata() (Metadata, bool) {
	ctx := c.Context()
	return Metadata{Topic: ctx.Topic, Partition: ctx.Partition, Offset: ctx.Offset}, ctx.Topic != ""
}

// Headers implements BaseContext.
func (c *baseContext) Headers() []Header { return c.Context().Headers }

// Schedule implements BaseContext.
func (c *baseContext) Schedule(interval time.Duration, t PunctuationType, f func(timestampMs int64) error) Cancellable {
	return c.Runtime.Schedule(interval, t, func(timestampMs int64) error { return c.outcome(f(timestampMs)) })
}

// BeforeCommit implements BaseContext. A Runtime without hooks commits after each record, by itself.
func (c *baseContext) BeforeCommit(f func() error) {
	if hooks, ok := c.Runtime.(CommitHooks); ok {
		hooks.BeforeCommit(func() error { return c.outcome(f()) })
	}
}

// outcome is what has to be returned for user code that returned err.
func (c *baseContext) outcome(err error) error {
	if c.failed != nil {
		return c.failed
	}
	return err
}

// sent remembers a fatal error of a child. Others, which are those of a sink, are for the user's code to return or not.
func (c *baseContext) sent(err error) error {
	if err != nil && IsFatal(err) {
		c.failed = err
	}
	return err
}

// processorContext implements ProcessorContext.
type processorContext[K, V any] struct {
	baseContext
	all    Next[K, V]
	byName map[string]Next[K, V]
	keys   nils[K]
	values nils[V]
	out    Record[K, V]
}

func newProcessorContext[K, V any](rt Runtime, children []Child) (*processorContext[K, V], error) {
	c := &processorContext[K, V]{
		baseContext: baseContext{Runtime: rt},
		byName:      make(map[string]Next[K, V], len(children)),
		keys:        nilsOf[K](),
		values:      nilsOf[V](),
	}
	var err error
	if c.all, err = Fan[K, V](children); err != nil {
		return nil, err
	}
	for _, child := range children {
		if c.byName[child.Name], err = Fan[K, V]([]Child{child}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Forward implements ProcessorContext.
func (c *processorContext[K, V]) Forward(r *Record[K, V]) error { return c.send(c.all, r) }

// ForwardTo implements ProcessorContext.
func (c *processorContext[K, V]) ForwardTo(child string, r *Record[K, V]) error {
	next, ok := c.byName[child]
	if !ok {
		return &UnknownChildError{Node: c.NodeName(), Child: child}
	}
	return c.send(next, r)
}

// send sets what a user may have left out. The copy also lets the user's own record be changed by nobody.
func (c *processorContext[K, V]) send(next Next[K, V], r *Record[K, V]) error {
	if r.Timestamp < 0 {
		return &NegativeTimeError{Node: c.NodeName(), Timestamp: r.Timestamp}
	}
	c.out = *r
	c.out.KeyNull = r.KeyNull || c.keys.isNil(r.Key)
	c.out.ValueNull = r.ValueNull || c.values.isNil(r.Value)
	return c.sent(next(&c.out))
}

// fixedKeyContext implements FixedKeyContext.
type fixedKeyContext[K, V any] struct {
	*processorContext[K, V]
	key      K
	keyNull  bool
	inRecord bool
	fixed    Record[K, V]
}

var errNoRecord = errors.New("a fixed-key processor can forward only while it processes a record: in a punctuation there is no key")

// Forward implements FixedKeyContext.
func (c *fixedKeyContext[K, V]) Forward(r *Record[K, V]) error {
	if err := c.fix(r); err != nil {
		return err
	}
	return c.processorContext.Forward(&c.fixed)
}

// ForwardTo implements FixedKeyContext.
func (c *fixedKeyContext[K, V]) ForwardTo(child string, r *Record[K, V]) error {
	if err := c.fix(r); err != nil {
		return err
	}
	return c.processorContext.ForwardTo(child, &c.fixed)
}

func (c *fixedKeyContext[K, V]) fix(r *Record[K, V]) error {
	if !c.inRecord {
		return errNoRecord
	}
	c.fixed = *r
	c.fixed.Key, c.fixed.KeyNull = c.key, c.keyNull
	return nil
}

// KeyValueStore opens a connected store of kind KeyValue.
func KeyValueStore[K, V any](ctx BaseContext, s StoreHandle[K, V]) (*state.KeyValueStore[K, V], error) {
	return openTyped(ctx, s.handle(), state.NewKeyValue[K, V])
}

// TimestampedKeyValueStore opens a connected store of kind TimestampedKeyValue.
func TimestampedKeyValueStore[K, V any](ctx BaseContext, s StoreHandle[K, V]) (*state.TimestampedKeyValueStore[K, V], error) {
	return openTyped(ctx, s.handle(), state.NewTimestampedKeyValue[K, V])
}

// WindowStore opens a connected store of kind Window.
func WindowStore[K, V any](ctx BaseContext, s StoreHandle[K, V]) (*state.WindowStore[K, V], error) {
	return openTyped(ctx, s.handle(), state.NewWindow[K, V])
}

// TimestampedWindowStore opens a connected store of kind TimestampedWindow.
func TimestampedWindowStore[K, V any](ctx BaseContext, s StoreHandle[K, V]) (*state.TimestampedWindowStore[K, V], error) {
	return openTyped(ctx, s.handle(), state.NewTimestampedWindow[K, V])
}

// SessionStore opens a connected store of kind Session.
func SessionStore[K, V any](ctx BaseContext, s StoreHandle[K, V]) (*state.SessionStore[K, V], error) {
	return openTyped(ctx, s.handle(), state.NewSession[K, V])
}

// VersionedStore opens a connected store of kind Versioned.
func VersionedStore[K, V any](ctx BaseContext, s StoreHandle[K, V]) (*state.VersionedStore[K, V], error) {
	return openTyped(ctx, s.handle(), state.NewVersioned[K, V])
}
