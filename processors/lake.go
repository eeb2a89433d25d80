package processors

import (
	"errors"
	"strings"

	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/serde"
)

// LakeForward writes to the internal topic before a lake sink. Each record carries, in one header, the coordinates of the source record
// that it came from. It is a Supplier.
type LakeForward[K, V any] struct {
	Topic string // full name
	Key   serde.Serde[K]
	Value serde.Serde[V]
}

// New implements Supplier.
func (s LakeForward[K, V]) New(rt Runtime, children []Child) (Instance, error) {
	return TopicSink[K, V]{Topic: s.Topic, Key: s.Key, Value: s.Value, Coordinates: true}.New(rt, children)
}

// LakeSink hands records to the lake sink of its node (Runtime.Lake). It is a Supplier.
//
// A row's coordinates are those in the record's header, if it carries them, else those of the record that entered the sub-topology. A
// row that the table can't store (a *sink.RowError) goes to the processing-error handler.
type LakeSink[K, V any] struct{}

// New implements Supplier.
func (LakeSink[K, V]) New(rt Runtime, _ []Child) (Instance, error) {
	lake, err := rt.Lake()
	if err != nil {
		return Instance{}, err
	}
	ctx := rt.Context()
	var meta sink.Meta
	var headers []sink.Header
	body := func(r *Record[K, V]) error {
		carried, ok := findCoordinates(r.Headers)
		if !ok {
			meta.Topic, meta.Partition, meta.Offset, meta.BrokerTimestamp = ctx.Topic, ctx.Partition, ctx.Offset, ctx.BrokerTimestamp
		} else {
			c, err := DecodeCoordinates(carried)
			if err != nil {
				return err
			}
			if c.Topic != meta.Topic {
				meta.Topic = strings.Clone(c.Topic) // c's is a part of the record's bytes
			}
			meta.Partition, meta.Offset, meta.BrokerTimestamp = c.Partition, c.Offset, c.BrokerTimestamp
		}
		meta.InputTopic, meta.InputPartition, meta.InputOffset = ctx.Topic, ctx.Partition, ctx.Offset
		headers = headers[:0]
		for _, h := range r.Headers {
			if h.Key != CoordinatesHeader {
				headers = append(headers, sink.Header(h))
			}
		}
		meta.Timestamp, meta.Headers = r.Timestamp, headers
		return rowError(lake.Append(present(&r.Key, r.KeyNull), present(&r.Value, r.ValueNull), &meta))
	}
	return Instance{Next: Guard(rt, body)}, nil
}

// present is p as the lake sink wants it: nil for a null.
func present[T any](p *T, null bool) any {
	if null {
		return nil
	}
	return p
}

// rowError leaves a row's fault to the handler; anything else that a table says is fatal.
func rowError(err error) error {
	var row *sink.RowError
	if err == nil || errors.As(err, &row) {
		return err
	}
	return fatal(err)
}
