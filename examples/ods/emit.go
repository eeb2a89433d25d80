package ods

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/schemas"
	"github.com/tributary-io/tributary/serde"
)

// Emit writes a day of the shop's events: those of orders placed on the day, and what happens on it to orders placed earlier. The same spec makes
// the same records, so a day that is emitted twice is in the raw table twice, and in staging once. It returns how many were written.
//
// Its producers are of the first hour: they write with the schema that ships, whatever has been declared since.
func (p *Platform) Emit(ctx context.Context, spec shop.Spec) (int64, error) {
	if err := errors.Join(spec.Check(), p.Declare(ctx, OrderTopic)); err != nil {
		return 0, err
	}
	id, err := p.schemaID(ctx, schemas.MustStream(OrderTopic).Schema)
	if err != nil {
		return 0, err
	}
	return p.produce(ctx, func(yield func(*kgo.Record, error) bool) {
		for r := range spec.Records(shop.SchemaIDs{OrderEvents: int32(id)}) {
			out := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp)}
			if !yield(out, nil) {
				return
			}
		}
	})
}

// ChannelEvent is a value of OrderTopic once the field channel is declared (see AddChannel).
type ChannelEvent struct {
	EventID    string        `avro:"event_id"`
	OrderID    string        `avro:"order_id"`
	CustomerID string        `avro:"customer_id"`
	Status     string        `avro:"status"`
	Amount     serde.Decimal `avro:"amount"`
	EventTime  time.Time     `avro:"event_time"`
	Coupon     *string       `avro:"coupon"`
	Channel    *string       `avro:"channel"`
}

// EmitChannel writes the sound events of a day as a newer producer does that knows the field channel. They are events of other orders than
// Emit's: their ids begin with the channel. It returns how many were written, repetitions among them.
func (p *Platform) EmitChannel(ctx context.Context, spec shop.Spec, channel string) (int64, error) {
	if err := errors.Join(spec.Check(), p.Declare(ctx, OrderTopic)); err != nil {
		return 0, err
	}
	stream, err := p.declared(OrderTopic)
	if err != nil {
		return 0, err
	}
	registry, err := p.registry()
	if err != nil {
		return 0, err
	}
	defer registry.Close()
	encode := serde.Bind(serde.Avro[ChannelEvent](registry, stream.Schema), OrderTopic, false)
	if err := serde.Prepare(ctx, encode); err != nil {
		return 0, fmt.Errorf("%w (is the field channel declared?)", err)
	}
	return p.produce(ctx, func(yield func(*kgo.Record, error) bool) {
		for e := range spec.Events() {
			if e.Flaw != shop.Sound {
				continue
			}
			v := ChannelEvent{EventID: channel + "-" + e.EventID(), OrderID: channel + "-" + e.OrderID(), CustomerID: e.CustomerID(), Status: e.Step.String(),
				Amount: serde.DecimalOf(e.Cents), EventTime: time.UnixMilli(e.Time), Channel: &channel}
			if e.Coupon != "" {
				coupon := e.Coupon
				v.Coupon = &coupon
			}
			data, err := encode.Append(nil, v)
			key := []byte(v.OrderID)
			if !yield(&kgo.Record{Topic: OrderTopic, Partition: processors.PartitionOf(key, shop.Partitions), Key: key, Value: data, Timestamp: time.UnixMilli(e.Arrival)}, err) {
				return
			}
		}
	})
}

// schemaID is the registry's id of a schema that producers of OrderTopic write with.
func (p *Platform) schemaID(ctx context.Context, schema string) (int, error) {
	registry, err := p.registry()
	if err != nil {
		return 0, err
	}
	defer registry.Close()
	subject := serde.Subject(OrderTopic, false)
	if id, err := registry.Lookup(ctx, subject, schema); err == nil {
		return id, nil
	}
	return registry.Register(ctx, subject, schema)
}

// produce writes records in their order, and returns when all are acknowledged.
func (p *Platform) produce(ctx context.Context, records iter.Seq2[*kgo.Record, error]) (int64, error) {
	client, err := p.producer()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var written atomic.Int64
	var failed atomic.Pointer[error]
	for r, err := range records {
		if err != nil {
			return written.Load(), err
		}
		client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
				return
			}
			written.Add(1)
		})
		if failed.Load() != nil {
			break
		}
	}
	if err := client.Flush(ctx); err != nil {
		return written.Load(), err
	}
	if err := failed.Load(); err != nil {
		return written.Load(), fmt.Errorf("produce to %s: %w", OrderTopic, *err)
	}
	return written.Load(), nil
}
