package topologytest

import (
	"context"
	"errors"
	"fmt"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
)

// Message is a record with typed key and value. KeyNull and ValueNull are the null bits; for a nullable type nil says it too.
type Message[K, V any] struct {
	Key       K
	Value     V
	KeyNull   bool
	ValueNull bool
	Timestamp int64 // ms since the epoch
	Headers   []processors.Header
	// Partition is read from output records. For input it is chosen by the key, unless SendTo says which.
	Partition int32
	Offset    int64
}

// InputTopic writes typed records to a topic that the topology reads.
type InputTopic[K, V any] struct {
	d     *Driver
	topic string
	key   serde.Codec[K]
	value serde.Codec[V]
	to    *topic // once it is known
	ready bool   // the serdes are prepared
}

// Input makes an InputTopic. Its serdes are prepared before the first record (serde.Prepare): those of Avro register their schemas under the
// topic's subjects, as a producer does.
func Input[K, V any](d *Driver, topic string, key serde.Serde[K], value serde.Serde[V]) *InputTopic[K, V] {
	return &InputTopic[K, V]{
		d: d, topic: topic, key: serde.NewCodec(serde.Bind(key, topic, true)), value: serde.NewCodec(serde.Bind(value, topic, false)),
	}
}

// Pipe writes a record and runs the topology until nothing is left to be done. The timestamp is in ms since the epoch.
func (in *InputTopic[K, V]) Pipe(key K, value V, timestamp int64, headers ...processors.Header) error {
	in.d.here().Helper()
	return in.send(&Message[K, V]{Key: key, Value: value, Timestamp: timestamp, Headers: headers}, -1)
}

// PipeNull writes a record with a null value: a delete, where the topic holds a table.
func (in *InputTopic[K, V]) PipeNull(key K, timestamp int64, headers ...processors.Header) error {
	in.d.here().Helper()
	return in.send(&Message[K, V]{Key: key, ValueNull: true, Timestamp: timestamp, Headers: headers}, -1)
}

// Send writes a record as Pipe does, with its null bits. Its key chooses the partition.
func (in *InputTopic[K, V]) Send(m Message[K, V]) error {
	in.d.here().Helper()
	return in.send(&m, -1)
}

// SendTo writes a record to a partition.
func (in *InputTopic[K, V]) SendTo(partition int32, m Message[K, V]) error {
	in.d.here().Helper()
	return in.send(&m, partition)
}

func (in *InputTopic[K, V]) send(m *Message[K, V], partition int32) error {
	in.d.here().Helper()
	if err := in.prepare(); err != nil {
		return in.d.report(err)
	}
	e, err := in.encode(m)
	if err != nil {
		return in.d.report(err)
	}
	if in.to == nil && in.d.fatal == nil {
		if in.to, err = in.d.inputTopic(in.topic); err != nil {
			return in.d.report(err)
		}
	}
	return in.d.report(in.d.pipeTo(in.to, partition, e, m.Headers))
}

// prepare makes the serdes ready to write.
func (in *InputTopic[K, V]) prepare() error {
	if in.ready {
		return nil
	}
	ctx := context.Background()
	if err := errors.Join(serde.Prepare(ctx, in.key.Serde), serde.Prepare(ctx, in.value.Serde)); err != nil {
		return fmt.Errorf("topic %s: its serdes can't be made ready to write: %w", in.topic, err)
	}
	in.ready = true
	return nil
}

// encode encodes a record to where records are kept.
func (in *InputTopic[K, V]) encode(m *Message[K, V]) (entry, error) {
	kept := &in.d.broker.kept
	room := kept.room()
	both, keyNull, err := in.key.Encode(room, m.Key, m.KeyNull)
	if err != nil {
		return entry{}, fmt.Errorf("topic %s: the key can't be encoded: %w", in.topic, err)
	}
	mid := len(both)
	both, valueNull, err := in.value.Encode(both, m.Value, m.ValueNull)
	if err != nil {
		return entry{}, fmt.Errorf("topic %s: the value can't be encoded: %w", in.topic, err)
	}
	key, value := int32(mid), int32(len(both)-mid)
	if keyNull {
		key = -1
	}
	if valueNull {
		value = -1
	}
	return kept.put(m.Timestamp, key, value, both), nil
}

// OutputTopic reads typed records from a topic.
type OutputTopic[K, V any] struct {
	d     *Driver
	topic string
	key   serde.Codec[K]
	value serde.Codec[V]
}

// Output makes an OutputTopic. Any topic can be read: also internal ones (with the application id in front), and dead letters.
func Output[K, V any](d *Driver, topic string, key serde.Serde[K], value serde.Serde[V]) *OutputTopic[K, V] {
	return &OutputTopic[K, V]{d, topic, serde.NewCodec(serde.Bind(key, topic, true)), serde.NewCodec(serde.Bind(value, topic, false))}
}

// Read returns the records written since the topic was last read, in the order in which they were written.
func (out *OutputTopic[K, V]) Read() []Message[K, V] {
	out.d.here().Helper()
	records := out.d.Read(out.topic)
	messages := make([]Message[K, V], 0, len(records))
	for _, r := range records {
		m, err := out.decode(r)
		if err != nil {
			out.d.report(err)
			return messages
		}
		messages = append(messages, m)
	}
	return messages
}

func (out *OutputTopic[K, V]) decode(r Record) (m Message[K, V], err error) {
	m.Timestamp, m.Headers, m.Partition, m.Offset = r.Timestamp, r.Headers, r.Partition, r.Offset
	if m.Key, m.KeyNull, err = out.key.DecodeNull(r.Key); err != nil {
		return m, fmt.Errorf("topic %s, offset %d: the key can't be decoded: %w", r.Topic, r.Offset, err)
	}
	if m.Value, m.ValueNull, err = out.value.DecodeNull(r.Value); err != nil {
		return m, fmt.Errorf("topic %s, offset %d: the value can't be decoded: %w", r.Topic, r.Offset, err)
	}
	return m, nil
}
