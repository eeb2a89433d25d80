package gokacompat

import (
	"fmt"
	"hash"

	"github.com/tributary-io/tributary/processors"
)

// Partitioner chooses the partition of a key, of so many.
type Partitioner func(key []byte, partitions int32) int32

// GokaPartition is the partition that goka's default hasher gives a key: FNV-1a of 32 bits, taken as a signed number, whose remainder loses
// its sign (sarama's NewCustomHashPartitioner).
func GokaPartition(key []byte, partitions int32) int32 {
	h := uint32(2166136261)
	for _, b := range key {
		h = (h ^ uint32(b)) * 16777619
	}
	return signless(h, partitions)
}

// KafkaPartition is the partition that Kafka's default partitioner gives a key: murmur2, as Java's and franz-go's producers and all of
// Tributary use it.
func KafkaPartition(key []byte, partitions int32) int32 {
	return processors.PartitionOf(key, partitions)
}

// hashPartition chooses as goka does with the option WithHasher.
func hashPartition(hasher func() hash.Hash32) Partitioner {
	return func(key []byte, partitions int32) int32 {
		h := hasher()
		_, _ = h.Write(key) // a hash never fails
		return signless(h.Sum32(), partitions)
	}
}

func signless(sum uint32, partitions int32) int32 {
	p := int32(sum) % partitions
	if p < 0 {
		p = -p
	}
	return p
}

// MisplacedError says that a record isn't in the partition where the group looks for its key: its joins, loops and table would not meet.
type MisplacedError struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       string
	Want      int32
	// Kafka says that it is where Kafka's default partitioner puts the key.
	Kafka bool
}

func (e *MisplacedError) Error() string {
	what := "whoever wrote it chose partitions in another way"
	advice := "give New the option PartitionBy, or Hasher, with that way"
	if e.Kafka {
		what = "it was written by a producer with Kafka's default partitioner"
		advice = "if all that the group reads is written so, give New the option PartitionBy(KafkaPartition)"
	}
	return fmt.Sprintf("topic %s, partition %d, offset %d: the key %q belongs to partition %d by the group's hash: %s; %s; "+
		"else copy the topic with the right partitioner, or take records where they are with AnyPartition (docs/coming-from-goka.md, Partitions)",
		e.Topic, e.Partition, e.Offset, e.Key, e.Want, what, advice)
}

// misplaced checks one key; nil if it is in its place.
func misplaced(by Partitioner, topic string, partition int32, offset int64, key []byte, partitions int32) error {
	want := by(key, partitions)
	if want == partition {
		return nil
	}
	return &MisplacedError{
		Topic: topic, Partition: partition, Offset: offset, Key: string(key), Want: want, Kafka: KafkaPartition(key, partitions) == partition,
	}
}
