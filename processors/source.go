package processors

import (
	"reflect"

	"github.com/tributary-io/tributary/serde"
)

// TopicSource reads topics: it decodes keys and values and finds each record's event time. It is a SourceSupplier.
type TopicSource[K, V any] struct {
	Key   serde.Serde[K]
	Value serde.Serde[V]
	// Extractor finds the event time; nil is FailOnInvalid.
	Extractor TimestampExtractor[K, V]
	// WallClock takes the time at which a record is read for its event time, and no Extractor.
	WallClock bool
	// Table says that the topic holds a table: null keys and values are let through whatever K and V are, a null value being a delete.
	// In a stream topic a null is a *DeserializationError unless its Go type can hold it.
	Table bool
}

// NewSource implements SourceSupplier.
func (s TopicSource[K, V]) NewSource(rt Runtime, children []Child) (Source, error) {
	next, err := Fan[K, V](children)
	if err != nil {
		return nil, err
	}
	n := &topicSource[K, V]{rt: rt, next: next, leavesOut: s.Extractor != nil && !s.WallClock}
	switch {
	case s.WallClock:
		s.Extractor = func(*Record[K, V], *RawRecord, int64) (int64, error) { return rt.Now().UnixMilli(), nil }
	case s.Extractor == nil:
		s.Extractor = FailOnInvalid[K, V]()
	}
	n.TopicSource = s
	return n, nil
}

type topicSource[K, V any] struct {
	TopicSource[K, V]
	rt        Runtime
	next      Next[K, V]
	leavesOut bool
}

// LeavesOut implements Source.
func (s *topicSource[K, V]) LeavesOut() bool { return s.leavesOut }

// NewHead implements Source.
func (s *topicSource[K, V]) NewHead(topic string) Head {
	return &topicHead[K, V]{
		source: s,
		keys:   serde.NewCodec(serde.Bind(s.Key, topic, true)),
		values: serde.NewCodec(serde.Bind(s.Value, topic, false)),
	}
}

// topicHead holds the head record of one input queue, decoded.
type topicHead[K, V any] struct {
	source *topicSource[K, V]
	keys   serde.Codec[K]
	values serde.Codec[V]
	record Record[K, V]
}

// Load implements Head.
func (h *topicHead[K, V]) Load(raw *RawRecord, partitionTime int64) (ts int64, err error) {
	r := &h.record
	r.Timestamp, r.Headers = raw.Timestamp, raw.Headers
	stage := "key"
	defer func() { // one for the three of them: a panic of a serde or of an extractor is its error
		if p := recover(); p != nil {
			ts, err = NoTimestamp, h.failed(stage, raw, NewPanicError(p))
		}
	}()
	if r.Key, r.KeyNull, err = decode(h.keys, raw.Key, h.source.Table); err != nil {
		return NoTimestamp, h.failed(stage, raw, err)
	}
	stage = "value"
	if r.Value, r.ValueNull, err = decode(h.values, raw.Value, h.source.Table); err != nil {
		return NoTimestamp, h.failed(stage, raw, err)
	}
	stage = timeStage
	if ts, err = h.source.Extractor(r, raw, partitionTime); err != nil {
		return NoTimestamp, h.failed(stage, raw, err)
	}
	if ts < 0 {
		h.source.rt.Logger().Warn("record left out: its event time is negative",
			"topic", raw.Topic, "partition", raw.Partition, "offset", raw.Offset, "timestamp", raw.Timestamp, "eventTime", ts)
	}
	r.Timestamp = ts
	return ts, nil
}

// Process implements Head.
func (h *topicHead[K, V]) Process() error { return h.source.next(&h.record) }

// timeStage is the stage of Load behind those of the record's parts.
const timeStage = "time"

// failed is the error of a stage of Load.
func (h *topicHead[K, V]) failed(stage string, raw *RawRecord, err error) error {
	switch {
	case stage != timeStage:
		return deserializationError(stage, raw, err)
	case IsFatal(err):
		return err
	}
	return &TimestampError{
		Topic: raw.Topic, Partition: raw.Partition, Offset: raw.Offset, Timestamp: raw.Timestamp, Err: err,
	}
}

// decode applies the null rule: a null is let through where the Go type holds it, and in tables. Panics are the caller's.
func decode[T any](c serde.Codec[T], data []byte, table bool) (v T, null bool, err error) {
	if data == nil {
		if table || c.Nullable() {
			return v, true, nil
		}
		return v, true, &serde.NullError{What: "record part", Type: reflect.TypeFor[T]().String()}
	}
	v, err = c.Serde.Decode(data)
	return v, err == nil && c.IsNil(v), err
}

func deserializationError(what string, raw *RawRecord, err error) error {
	if null, ok := err.(*serde.NullError); ok {
		null.What = what
	}
	return &DeserializationError{What: what, Topic: raw.Topic, Partition: raw.Partition, Offset: raw.Offset, Err: err}
}

// recovered turns a panic of a user's serde or extractor into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = NewPanicError(p)
	}
}
