package processors

import "github.com/tributary-io/tributary/serde"

// Partitioner chooses the partition of a record for a topic with so many partitions; a negative answer leaves it to the key.
type Partitioner[K, V any] func(topic string, r *Record[K, V], partitions int32) (int32, error)

// TopicSink writes to a topic. It is a Supplier.
type TopicSink[K, V any] struct {
	// Topic is the topic's full name; TopicOf, if set, chooses one for each record instead.
	Topic   string
	TopicOf func(r *Record[K, V]) (string, error)
	Key     serde.Serde[K]
	Value   serde.Serde[V]
	// Partitioner, if set, chooses the partition; else the key does, as Kafka's default partitioner chooses.
	Partitioner Partitioner[K, V]
	// PartitionKey, if set, gives the bytes that choose the partition in place of the whole key: Kafka Streams sends all windows
	// of a key to the key's partition.
	PartitionKey func(dst []byte, key K) ([]byte, error)
}

// New implements Supplier.
func (s TopicSink[K, V]) New(rt Runtime, children []Child) (Instance, error) {
	return Instance{}, errUnbuilt
}

// LakeForward writes to the internal topic before a lake sink. Each record carries, in one header, the coordinates of the source
// record that it came from. It is a Supplier.
type LakeForward[K, V any] struct {
	Topic string // full name
	Key   serde.Serde[K]
	Value serde.Serde[V]
}

// New implements Supplier.
func (s LakeForward[K, V]) New(rt Runtime, children []Child) (Instance, error) {
	return Instance{}, errUnbuilt
}

// LakeSink hands records to the lake sink of its node (Runtime.Lake). It is a Supplier.
type LakeSink[K, V any] struct{}

// New implements Supplier.
func (LakeSink[K, V]) New(rt Runtime, children []Child) (Instance, error) {
	return Instance{}, errUnbuilt
}
