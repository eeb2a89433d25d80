package gokacompat

import (
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/fnv"
	"testing"

	"github.com/IBM/sarama"
)

// Keys go where sarama puts them for goka.
func TestPartitionsAreGokas(t *testing.T) {
	hashers := map[string]struct {
		hasher func() hash.Hash32
		ours   Partitioner
	}{
		"default": {fnv.New32a, GokaPartition},
		"custom":  {crc32.NewIEEE, hashPartition(crc32.NewIEEE)},
	}
	for name, h := range hashers {
		theirs := sarama.NewCustomHashPartitioner(h.hasher)("t")
		for _, n := range []int32{1, 2, 3, 7, 12, 100} {
			for i := range 2000 {
				key := fmt.Sprint("key-", i)
				if i == 0 {
					key = ""
				}
				want, err := theirs.Partition(&sarama.ProducerMessage{Key: sarama.StringEncoder(key)}, n)
				if err != nil {
					t.Fatal(err)
				}
				if got := h.ours([]byte(key), n); got != want {
					t.Fatalf("%s: key %q of %d partitions: %d, sarama says %d", name, key, n, got, want)
				}
			}
		}
	}
}

func TestMisplacedErrorSaysWhoWrote(t *testing.T) {
	key := []byte("customer-1")
	var kafka, other int32 = KafkaPartition(key, 8), 0
	for other = range 8 {
		if other != kafka && other != GokaPartition(key, 8) {
			break
		}
	}
	if kafka == GokaPartition(key, 8) {
		t.Fatal("both hashes agree on the key: take another one")
	}
	if err := misplaced(GokaPartition, "t", GokaPartition(key, 8), 0, key, 8); err != nil {
		t.Errorf("in its place: %v", err)
	}
	for partition, byKafka := range map[int32]bool{kafka: true, other: false} {
		var m *MisplacedError
		if err := misplaced(GokaPartition, "t", partition, 5, key, 8); !errors.As(err, &m) || m.Kafka != byKafka || m.Want != GokaPartition(key, 8) {
			t.Errorf("partition %d: %v", partition, err)
		}
	}
}
