package gokacompat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unsafe"

	"github.com/lovoo/goka"

	"github.com/tributary-io/tributary/processors"
)

// callbackContext implements goka.Context for one call of a callback.
//
// Its methods end a callback as goka's do, by a panic. It is caught in run, and becomes the error of the record: by default that ends the
// instance, as it would goka's processor.
type callbackContext struct {
	p         *processor
	topic     goka.Stream
	key       []byte
	timestamp int64
	offset    int64
	visiting  bool
	headers   goka.Headers
	out       processors.Record[[]byte, []byte]
	failed    error
}

var _ goka.Context = (*callbackContext)(nil)

// begin sets the record that the callback is about.
func (c *callbackContext) begin(topic goka.Stream, key []byte, timestamp, offset int64) {
	c.topic, c.key, c.timestamp, c.offset = topic, key, timestamp, offset
	c.headers, c.failed, c.visiting = nil, nil, false
}

// failure is what the context panics with.
type failure struct{ err error }

// run calls a callback. An error of the context counts even if the callback has recovered from its panic.
func (c *callbackContext) run(call goka.ProcessCallback, message any) (err error) {
	defer func() {
		if c.failed != nil {
			_ = recover()
			err = c.failed
		}
	}()
	var ctx goka.Context = c
	if wrap := c.p.app.opts.wrap; wrap != nil {
		ctx = wrap(c)
	}
	call(ctx, message)
	return nil
}

// Fail implements goka.Context.
func (c *callbackContext) Fail(err error) {
	if err == nil {
		err = errors.New("the callback failed without an error")
	}
	if c.failed == nil {
		c.failed = err
	}
	panic(failure{c.failed})
}

func (c *callbackContext) failf(format string, args ...any) { c.Fail(fmt.Errorf(format, args...)) }

func (c *callbackContext) Topic() goka.Stream { return c.topic }
func (c *callbackContext) Partition() int32   { return c.p.partition }
func (c *callbackContext) Offset() int64      { return c.offset }
func (c *callbackContext) Group() goka.Group  { return c.p.app.graph.Group() }

// Key implements goka.Context. The string is the record's own memory, which nobody changes.
func (c *callbackContext) Key() string { return unsafe.String(unsafe.SliceData(c.key), len(c.key)) }

// Timestamp implements goka.Context: the zero time if the record has none.
func (c *callbackContext) Timestamp() time.Time {
	if c.timestamp <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(c.timestamp)
}

// Headers implements goka.Context. Of headers with the same key it has the last, as goka has.
func (c *callbackContext) Headers() goka.Headers {
	if c.headers == nil {
		c.headers = goka.Headers{}
		if !c.visiting {
			for _, h := range c.p.ctx.Headers() {
				c.headers[h.Key] = h.Value
			}
		}
	}
	return c.headers
}

func (c *callbackContext) Context() context.Context { return c.p.life }

// DeferCommit implements goka.Context. Commits of the instance wait for the function to be called, up to DeferLimit.
func (c *callbackContext) DeferCommit() func(error) { return c.p.deferred.begin() }

// Value implements goka.Context.
func (c *callbackContext) Value() any {
	if c.p.table.rows == nil {
		c.failf("the group has no table: define it with Persist")
	}
	v, err := c.p.table.value(c.key)
	if err != nil {
		c.Fail(located(c.p.app.graph.GroupTable().Topic(), err))
	}
	return v
}

// SetValue implements goka.Context.
func (c *callbackContext) SetValue(value any, options ...goka.ContextOption) {
	if c.p.table.rows == nil {
		c.failf("the group has no table: define it with Persist")
	}
	if value == nil {
		c.failf("the value of key %q can't be set to nil: use Delete", c.key)
	}
	data, err := c.p.table.codec.Encode(value)
	if err != nil {
		c.failf("encode the value of key %q: %w", c.key, err)
	}
	c.put(filled(data), options)
}

// Delete implements goka.Context.
func (c *callbackContext) Delete(options ...goka.ContextOption) {
	if c.p.table.rows == nil {
		c.failf("the group has no table: define it with Persist")
	}
	c.put(nil, options)
}

func (c *callbackContext) put(value []byte, options []goka.ContextOption) {
	if len(options) > 0 && !c.p.warned {
		c.p.warned = true
		c.p.ctx.Logger().Warn("headers of SetValue and Delete are left out: records of the table topic have none")
	}
	if err := c.p.table.rows.Put(c.key, value, c.timestamp); err != nil {
		c.Fail(&storeError{located(c.p.app.graph.GroupTable().Topic(), err)})
	}
}

// Join implements goka.Context.
func (c *callbackContext) Join(topic goka.Table) any {
	t := c.p.joins[string(topic)]
	if t == nil {
		c.failf("table %s is not joined: define it with Join", topic)
	}
	v, err := t.value(c.key)
	if err != nil {
		c.Fail(located(string(topic), err))
	}
	return v
}

// Lookup implements goka.Context.
func (c *callbackContext) Lookup(topic goka.Table, key string) any {
	t := c.p.lookups[string(topic)]
	if t == nil {
		c.failf("table %s can't be looked up: define it with Lookup", topic)
	}
	v, err := t.value([]byte(key))
	if err != nil {
		c.Fail(located(string(topic), err))
	}
	return v
}

// Emit implements goka.Context.
func (c *callbackContext) Emit(topic goka.Stream, key string, value any, options ...goka.ContextOption) {
	to, ok := c.p.outputs[topic]
	if !ok {
		c.failf("%w", c.noOutput(topic))
	}
	var data []byte
	if value != nil {
		var err error
		if data, err = to.codec.Encode(value); err != nil {
			c.failf("encode a message for topic %s: %w", topic, err)
		}
	}
	c.send(to.child, key, data, options)
}

func (c *callbackContext) noOutput(topic goka.Stream) error {
	graph := c.p.app.graph
	switch {
	case topic == "":
		return errors.New("nothing can be emitted to a topic without a name")
	case graph.LoopStream() != nil && graph.LoopStream().Topic() == string(topic):
		return errors.New("nothing can be emitted to the loop topic: use Loopback")
	case graph.GroupTable() != nil && graph.GroupTable().Topic() == string(topic):
		return errors.New("nothing can be emitted to the table topic: use SetValue")
	}
	return fmt.Errorf("topic %s is no output: define it with Output", topic)
}

// Loopback implements goka.Context.
func (c *callbackContext) Loopback(key string, value any, options ...goka.ContextOption) {
	if c.p.loop.codec == nil {
		c.failf("the group has no loop: define it with Loop")
	}
	data, err := c.p.loop.codec.Encode(value)
	if err != nil {
		c.failf("encode a message of the loop for key %q: %w", key, err)
	}
	c.send(c.p.loop.child, key, data, options)
}

func (c *callbackContext) send(child, key string, value []byte, options []goka.ContextOption) {
	headers, err := headersIn(options)
	if err != nil {
		c.Fail(err)
	}
	c.out = processors.Record[[]byte, []byte]{
		Key:       unsafe.Slice(unsafe.StringData(key), len(key)), // the sink copies it
		Value:     value,
		Timestamp: c.timestamp,
		Headers:   recordHeaders(c.p.app.opts.headers.Merged(headers)),
	}
	c.out.Key = filled(c.out.Key)
	if !c.p.app.opts.eventTimes {
		c.out.Timestamp = c.p.ctx.Now().UnixMilli()
	}
	if err := c.p.ctx.ForwardTo(child, &c.out); err != nil {
		c.Fail(err)
	}
}

// recordHeaders puts headers in the order of their keys: goka's map has none.
func recordHeaders(h goka.Headers) []processors.Header {
	if len(h) == 0 {
		return nil
	}
	all := make([]processors.Header, 0, len(h))
	for _, key := range slices.Sorted(maps.Keys(h)) {
		all = append(all, processors.Header{Key: key, Value: h[key]})
	}
	return all
}

// located says which table an error is about; one that no handler may skip stays so.
func located(topic string, err error) error {
	wrapped := fmt.Errorf("table %s: %w", topic, err)
	if processors.IsFatal(err) {
		return &storeError{wrapped}
	}
	return wrapped
}
