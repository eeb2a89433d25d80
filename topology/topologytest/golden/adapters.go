package golden

import (
	"github.com/tributary-io/tributary/processors"
)

// asProcessor makes a library processor of a kind.
func asProcessor[K, V, K2, V2 any](k kind, key goType[K], in goType[V], outKey goType[K2], out goType[V2]) func() processors.Processor[K, V, K2, V2] {
	return func() processors.Processor[K, V, K2, V2] {
		return &processor[K, V, K2, V2]{behaviour: k.make(), key: key, in: in, outKey: outKey, out: out}
	}
}

// asFixedKeyProcessor makes a library processor that can't change keys.
func asFixedKeyProcessor[K, V, V2 any](k kind, key goType[K], in goType[V], out goType[V2]) func() processors.FixedKeyProcessor[K, V, V2] {
	return func() processors.FixedKeyProcessor[K, V, V2] {
		return &fixedProcessor[K, V, V2]{behaviour: k.make(), key: key, in: in, out: out}
	}
}

// input makes a record of the vocabulary. Headers may be changed by the processor.
func input[K, V any](r *processors.Record[K, V], key goType[K], value goType[V]) record {
	in := record{timestamp: r.Timestamp, headers: append([]processors.Header(nil), r.Headers...)}
	if !r.KeyNull {
		in.key = key.out(r.Key)
	}
	if !r.ValueNull {
		in.value = value.out(r.Value)
	}
	return in
}

type processor[K, V, K2, V2 any] struct {
	behaviour behaviour
	key       goType[K]
	in        goType[V]
	outKey    goType[K2]
	out       goType[V2]
	ctx       *context[K2, V2]
}

func (p *processor[K, V, K2, V2]) Init(ctx processors.ProcessorContext[K2, V2]) error {
	p.ctx = &context[K2, V2]{BaseContext: ctx, ctx: ctx, key: p.outKey, out: p.out}
	if p.behaviour.init == nil {
		return nil
	}
	return p.behaviour.init(p.ctx)
}

func (p *processor[K, V, K2, V2]) Process(r *processors.Record[K, V]) error {
	return p.behaviour.process(p.ctx, input(r, p.key, p.in))
}

func (p *processor[K, V, K2, V2]) Close() error { return nil }

// context is a library context as a procContext.
type context[K, V any] struct {
	processors.BaseContext
	ctx processors.ProcessorContext[K, V]
	key goType[K]
	out goType[V]
}

func (c *context[K, V]) forward(r record, child string) error {
	out := &processors.Record[K, V]{Value: c.out.in(r.value), KeyNull: r.key == nil, ValueNull: r.value == nil,
		Timestamp: r.timestamp, Headers: r.headers}
	if r.key != nil {
		out.Key = c.key.in(r.key)
	}
	if child == "" {
		return c.ctx.Forward(out)
	}
	return c.ctx.ForwardTo(child, out)
}

type fixedProcessor[K, V, V2 any] struct {
	behaviour behaviour
	key       goType[K]
	in        goType[V]
	out       goType[V2]
	ctx       *fixedContext[K, V2]
}

func (p *fixedProcessor[K, V, V2]) Init(ctx processors.FixedKeyContext[K, V2]) error {
	p.ctx = &fixedContext[K, V2]{BaseContext: ctx, ctx: ctx, out: p.out}
	if p.behaviour.init == nil {
		return nil
	}
	return p.behaviour.init(p.ctx)
}

func (p *fixedProcessor[K, V, V2]) Process(r *processors.Record[K, V]) error {
	return p.behaviour.process(p.ctx, input(r, p.key, p.in))
}

func (p *fixedProcessor[K, V, V2]) Close() error { return nil }

// fixedContext is a library context as a procContext. The library keeps the key.
type fixedContext[K, V any] struct {
	processors.BaseContext
	ctx processors.FixedKeyContext[K, V]
	out goType[V]
}

func (c *fixedContext[K, V]) forward(r record, child string) error {
	out := &processors.Record[K, V]{Value: c.out.in(r.value), ValueNull: r.value == nil, Timestamp: r.timestamp, Headers: r.headers}
	if child == "" {
		return c.ctx.Forward(out)
	}
	return c.ctx.ForwardTo(child, out)
}
