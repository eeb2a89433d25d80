package topologytest

import (
	"fmt"

	"github.com/tributary-io/tributary/processors"
)

// Record is a record of a simulated topic, as bytes. A nil Key or Value is a null.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Timestamp int64 // ms since the epoch
	Key       []byte
	Value     []byte
	Headers   []processors.Header
}

// broker holds the simulated topics. Everything in it is committed: what an open transaction has written is kept by the driver.
type broker struct {
	topics map[string]*topic
	// order holds the topics' names as they came to be, so that walking over them is deterministic.
	order []string
}

type topic struct {
	name       string
	partitions []recordLog
	// produced are the records that the topology wrote, in that order, over all partitions.
	produced []*Record
	read     int // how many of produced were handed out by Read
	next     int32
}

func newBroker() *broker { return &broker{topics: map[string]*topic{}} }

// create makes a topic, or returns the one that is there.
func (b *broker) create(name string, partitions int32) *topic {
	if t := b.topics[name]; t != nil {
		return t
	}
	t := &topic{name: name, partitions: make([]recordLog, max(partitions, 1))}
	b.topics[name] = t
	b.order = append(b.order, name)
	return t
}

// append writes a record, whose bytes it keeps, and returns it with its offset.
func (t *topic) append(r Record) (*Record, error) {
	if r.Partition < 0 || int(r.Partition) >= len(t.partitions) {
		return nil, fmt.Errorf("topic %s has %d partitions, there is none of number %d", t.name, len(t.partitions), r.Partition)
	}
	log := &t.partitions[r.Partition]
	r.Offset = int64(log.n)
	return log.append(r), nil
}

// choose picks the partition of a record as Kafka's default partitioner does: by the key's hash; records without a key go round.
func (t *topic) choose(key []byte) int32 {
	n := int32(len(t.partitions))
	if key == nil {
		p := t.next % n
		t.next++
		return p
	}
	return int32(murmur2(key)&0x7fffffff) % n
}

// produce appends a record that the topology wrote.
func (t *topic) produce(r Record) (*Record, error) {
	written, err := t.append(r)
	if err == nil {
		t.produced = append(t.produced, written)
	}
	return written, err
}

// unread returns what the topology wrote since the last call.
func (t *topic) unread() []Record {
	if t.read == len(t.produced) {
		return nil
	}
	records := make([]Record, 0, len(t.produced)-t.read)
	for _, r := range t.produced[t.read:] {
		records = append(records, *r)
	}
	t.read = len(t.produced)
	return records
}

// raw gives the record as a task takes it.
func (r *Record) raw() processors.RawRecord {
	return processors.RawRecord{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value, Headers: r.Headers,
	}
}

// cloneBytes keeps the difference between a null and an empty value.
func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
