package topologytest

import (
	"fmt"

	"github.com/tributary-io/tributary/internal/task"
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
	// order holds the topics as they came to be, so that walking over them is deterministic.
	order []*topic
	kept  arena
}

type topic struct {
	name       string
	partitions []partition
	// produced are the records that the topology wrote, in that order, over all partitions: runs of successive offsets.
	produced []run
	read     place    // how far produced was handed out by Read
	block    []Record // room for what Read gives next
	next     int32
	pattern  *patternInput // that matches the name; see Driver.patternOf
	matched  bool
	// changelog says that the topic is one of a store, which writes to it.
	changelog bool
}

// run is a run of offsets of one partition.
type run struct {
	partition int32
	from, to  int64
}

// place is a place in a list of runs.
type place struct {
	run  int
	done int64 // records of that run
}

func newBroker() *broker { return &broker{topics: map[string]*topic{}} }

// create makes a topic, or returns the one that is there.
func (b *broker) create(name string, partitions int32) *topic {
	if t := b.topics[name]; t != nil {
		return t
	}
	t := &topic{name: name, partitions: make([]partition, max(partitions, 1))}
	for i := range t.partitions {
		t.partitions[i] = partition{topic: t, number: int32(i), kept: &b.kept, committed: position{0, processors.NoTimestamp}}
	}
	b.topics[name] = t
	b.order = append(b.order, t)
	return t
}

// partition finds a partition, nil if there is none.
func (b *broker) partition(tp task.TopicPartition) *partition {
	t := b.topics[tp.Topic]
	if t == nil || tp.Partition < 0 || int(tp.Partition) >= len(t.partitions) {
		return nil
	}
	return &t.partitions[tp.Partition]
}

// find finds a partition of the topic.
func (t *topic) find(number int32) (*partition, error) {
	if number < 0 || int(number) >= len(t.partitions) {
		return nil, fmt.Errorf("topic %s has %d partitions, there is none of number %d", t.name, len(t.partitions), number)
	}
	return &t.partitions[number], nil
}

// choose picks the partition of a record as Kafka's default partitioner does: by the key's hash; records without a key go round.
func (t *topic) choose(key []byte) int32 {
	n := int32(len(t.partitions))
	if key == nil {
		p := t.next % n
		t.next++
		return p
	}
	return processors.PartitionOf(key, n)
}

// produce appends a record that the topology wrote, and returns its offset.
func (p *partition) produce(e entry, headers []processors.Header) int64 {
	offset := p.append(e, headers)
	runs := p.topic.produced
	if last := len(runs) - 1; last >= 0 && runs[last].partition == p.number && runs[last].to == offset {
		runs[last].to++
	} else {
		p.topic.produced = append(runs, run{p.number, offset, offset + 1})
	}
	return offset
}

// unread returns what the topology wrote since the last call.
func (t *topic) unread() (records []Record) {
	for ; t.read.run < len(t.produced); t.read = (place{t.read.run + 1, 0}) {
		r := t.produced[t.read.run]
		from := r.from + t.read.done
		if records == nil && from < r.to {
			records = t.records(int(r.to - from))
		}
		for ; from < r.to; from++ {
			records = append(records, Record{})
			t.partitions[r.partition].fill(&records[len(records)-1], from)
		}
		if t.read.run == len(t.produced)-1 { // the last run may grow
			t.read.done = r.to - r.from
			break
		}
	}
	return records
}

// blockRecords is how many records are allocated together: most calls of Read give one or two.
const blockRecords = 16

// records gives room for n records.
func (t *topic) records(n int) []Record {
	if n > blockRecords/2 {
		return make([]Record, 0, n)
	}
	if len(t.block) < n {
		t.block = make([]Record, blockRecords)
	}
	room := t.block[:0:n]
	t.block = t.block[n:]
	return room
}

// cloneBytes keeps the difference between a null and an empty value.
func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
