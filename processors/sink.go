package processors

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/tributary-io/tributary/serde"
)

// Partitioner chooses the partition of a record for a topic with so many partitions; a negative answer leaves it to the key.
type Partitioner[K, V any] func(topic string, r *Record[K, V], partitions int32) (int32, error)

// Multicast chooses any number of partitions for a record, of a topic with so many (KIP-837): it appends them to dst. None leaves the record out
// (DroppedNoPartition); one that is named twice gets the record once.
type Multicast[K, V any] func(dst []int32, topic string, r *Record[K, V], partitions int32) ([]int32, error)

// TopicSink writes to a topic, with each record's time and headers. It is a Supplier.
//
// A key or value that can't be encoded goes to the production-error handler. What that doesn't let go, and an error of TopicOf or Partitioner,
// is an error of the sink's parent, as in Kafka Streams: the parent's processing-error handler decides, its further children aren't
// reached, and right behind a source the error is fatal.
type TopicSink[K, V any] struct {
	// Topic is the topic's full name. TopicOf, if set, chooses one for each record instead.
	Topic   string
	TopicOf func(r *Record[K, V]) (string, error)
	Key     serde.Serde[K]
	Value   serde.Serde[V]
	// Partitioner, if set, chooses the partition; else the key does, as Kafka's default partitioner chooses.
	Partitioner Partitioner[K, V]
	// Multicast, if set, chooses the partitions, and there is no Partitioner.
	Multicast Multicast[K, V]
	// PartitionKey, if set, gives the bytes that choose the partition in place of the whole key: all windows of a key go where the
	// key itself would. A null key, which has none, is an error of the sink's parent then, as in Kafka Streams.
	PartitionKey func(dst []byte, key K) ([]byte, error)
	// Coordinates adds the header with the source's coordinates (see Coordinates) to records that don't carry it yet. Set it on a
	// repartition topic on the way to a lake sink.
	Coordinates bool
}

// New implements Supplier.
func (s TopicSink[K, V]) New(rt Runtime, children []Child) (Instance, error) {
	if len(children) > 0 {
		return Instance{}, fmt.Errorf("internal: sink %s has children", rt.NodeName())
	}
	n := &topicSink[K, V]{TopicSink: s, rt: rt}
	if s.TopicOf == nil {
		n.bound = n.bind(s.Topic)
		prepareToWrite(rt, n.bound.keys.Serde)
		prepareToWrite(rt, n.bound.values.Serde)
	} else {
		n.byTopic = map[string]*boundTopic[K, V]{}
	}
	ctx := rt.Context()
	return Instance{Next: Next[K, V](func(r *Record[K, V]) error {
		timestamp, headers := ctx.Timestamp, ctx.Headers
		ctx.Timestamp, ctx.Headers = r.Timestamp, r.Headers
		err := n.process(r)
		ctx.Timestamp, ctx.Headers = timestamp, headers
		return err
	})}, nil
}

// topicSink is a TopicSink of one task.
type topicSink[K, V any] struct {
	TopicSink[K, V]
	rt      Runtime
	bound   *boundTopic[K, V]            // of a fixed topic
	byTopic map[string]*boundTopic[K, V] // of the topics that TopicOf has chosen

	key, value, hashed, coordinates []byte
	headers                         []Header
	partitions                      []int32
}

// boundTopic holds a topic's serdes.
type boundTopic[K, V any] struct {
	topic  string
	keys   serde.Codec[K]
	values serde.Codec[V]
}

func (n *topicSink[K, V]) bind(topic string) *boundTopic[K, V] {
	return &boundTopic[K, V]{
		topic:  topic,
		keys:   serde.NewCodec(serde.Bind(n.Key, topic, true)),
		values: serde.NewCodec(serde.Bind(n.Value, topic, false)),
	}
}

func (n *topicSink[K, V]) process(r *Record[K, V]) error {
	to, err := n.topicOf(r)
	if err != nil {
		return err
	}
	if n.PartitionKey != nil && (r.KeyNull || to.keys.IsNil(r.Key)) {
		return &NullError{What: "key", Type: reflect.TypeFor[K]().String()}
	}
	key, value, err := n.encode(to, r)
	if err != nil {
		if serde.Retriable(err) {
			return fatal(err)
		}
		return n.rt.SerializationFailed(to.topic, err)
	}
	partitions, err := n.choose(to.topic, r)
	if err != nil {
		return err
	}
	headers := r.Headers
	if n.Coordinates {
		headers = n.withCoordinates(headers)
	}
	for _, p := range partitions {
		if err := n.rt.Produce(to.topic, p, key, value, r.Timestamp, headers); err != nil {
			return fatal(err)
		}
	}
	return nil
}

func (n *topicSink[K, V]) topicOf(r *Record[K, V]) (*boundTopic[K, V], error) {
	if n.TopicOf == nil {
		return n.bound, nil
	}
	topic, err := n.TopicOf(r)
	if err != nil {
		return nil, err
	}
	if topic == "" {
		return nil, fmt.Errorf("the topic chosen for the record is empty")
	}
	b, ok := n.byTopic[topic]
	if !ok {
		b = n.bind(topic)
		n.byTopic[topic] = b
	}
	return b, nil
}

// encode gives the bytes of key and value, in the sink's buffers; nil is null.
func (n *topicSink[K, V]) encode(to *boundTopic[K, V], r *Record[K, V]) (key, value []byte, err error) {
	what := "key"
	defer func() { // a panic of a serde is its error
		if p := recover(); p != nil {
			key, value, err = nil, nil, &SerializationError{What: what, Topic: to.topic, Err: NewPanicError(p)}
		}
	}()
	if n.key, err = encode(&key, to.keys, n.key, r.Key, r.KeyNull); err != nil {
		return nil, nil, &SerializationError{What: what, Topic: to.topic, Err: err}
	}
	what = "value"
	if n.value, err = encode(&value, to.values, n.value, r.Value, r.ValueNull); err != nil {
		return nil, nil, &SerializationError{What: what, Topic: to.topic, Err: err}
	}
	return key, value, nil
}

// encode sets out to the encoding of v, nil for a null, and returns the buffer to be used next.
func encode[T any](out *[]byte, c serde.Codec[T], buf []byte, v T, null bool) (_ []byte, err error) {
	b, null, err := c.Encode(buf[:0], v, null)
	if err != nil {
		return buf, err
	}
	if null {
		*out = nil
		return buf, nil
	}
	*out = filled(b)
	return b, nil
}

// choose gives the partitions that a record goes to, in the sink's buffer; -1 stands for that of its key.
func (n *topicSink[K, V]) choose(topic string, r *Record[K, V]) ([]int32, error) {
	if n.Multicast == nil {
		p, err := n.partition(topic, r)
		n.partitions = append(n.partitions[:0], p)
		return n.partitions, err
	}
	count, err := n.rt.Partitions(topic)
	if err != nil {
		return nil, fatal(err)
	}
	if n.partitions, err = n.Multicast(n.partitions[:0], topic, r, count); err != nil {
		return nil, err
	}
	slices.Sort(n.partitions)
	n.partitions = slices.Compact(n.partitions)
	if len(n.partitions) == 0 {
		n.rt.Dropped(DroppedNoPartition)
		return nil, nil
	}
	for _, p := range []int32{n.partitions[0], n.partitions[len(n.partitions)-1]} {
		if p < 0 || p >= count {
			return nil, fmt.Errorf("the multicast chose partition %d of topic %s, which has %d", p, topic, count)
		}
	}
	return n.partitions, nil
}

func (n *topicSink[K, V]) partition(topic string, r *Record[K, V]) (int32, error) {
	if n.Partitioner == nil && n.PartitionKey == nil {
		return -1, nil
	}
	count, err := n.rt.Partitions(topic)
	if err != nil {
		return 0, fatal(err)
	}
	if n.Partitioner != nil {
		p, err := n.Partitioner(topic, r, count)
		if err != nil {
			return 0, err
		}
		if p >= count {
			return 0, fmt.Errorf("the partitioner chose partition %d of topic %s, which has %d", p, topic, count)
		}
		return max(p, -1), nil
	}
	if n.hashed, err = n.PartitionKey(n.hashed[:0], r.Key); err != nil {
		return 0, err
	}
	return PartitionOf(n.hashed, count), nil
}

// withCoordinates gives the headers with the source's coordinates behind them, in the sink's buffers.
func (n *topicSink[K, V]) withCoordinates(headers []Header) []Header {
	if _, ok := findCoordinates(headers); ok {
		return headers
	}
	n.coordinates = CoordinatesOf(n.rt.Context()).Append(n.coordinates[:0])
	n.headers = append(append(n.headers[:0], headers...), Header{Key: CoordinatesHeader, Value: n.coordinates})
	return n.headers
}
