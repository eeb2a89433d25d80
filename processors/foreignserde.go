package processors

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tributary-io/tributary/serde"
)

// Instruction says what a subscription is for.
type Instruction byte

// The instructions of KIP-213. Each but Unsubscribe is answered with the right row; they differ in what is answered where there is none.
const (
	Unsubscribe            Instruction = 0 // remove the subscription, answer nothing
	UnsubscribeAndAnswer   Instruction = 1 // remove the subscription and answer with null
	SubscribeAndAnswer     Instruction = 2 // subscribe; answer with null if there is no right row
	SubscribeAnswerIfFound Instruction = 3 // subscribe; answer only if there is a right row
)

// Subscription is a value of the subscription topic: a left row registers with its foreign key.
type Subscription[K any] struct {
	Instruction Instruction
	// Hash is that of the left row's bytes, by which its answer is known to be still wanted. HashNull: the row was deleted.
	Hash     [16]byte
	HashNull bool
	Key      K // of the left row
	Version  byte
	// Partition is the left row's, where the answer has to go; -1 in version 0.
	Partition int32
}

// Response is a value of the response topic: the right row for a left row.
type Response[R any] struct {
	Hash     [16]byte // of the subscription
	HashNull bool
	Value    R // the right row
	Null     bool
	Version  byte
	// Partition is where the response goes; it is not written.
	Partition int32
}

// The versions that are written.
const (
	subscriptionVersion = 1
	responseVersion     = 0
	hashNullBit         = 0x80
)

var errForeignFormat = errors.New("malformed record of a foreign-key join")

// SubscriptionSerde is the wire format of the subscription topic's values (KIP-213):
//
//	version, with bit 7 set if there is no hash | instruction | hash, 16 bytes, if any | key | partition, 4 bytes, from version 1 on
func SubscriptionSerde[K any](key serde.Serde[K]) serde.Serde[Subscription[K]] {
	return likeInner(key, subscriptionSerde[K]{key})
}

type subscriptionSerde[K any] struct{ key serde.Serde[K] }

// Append implements serde.Serde.
func (s subscriptionSerde[K]) Append(dst []byte, v Subscription[K]) ([]byte, error) {
	if v.Version > subscriptionVersion {
		return dst, fmt.Errorf("subscription version %d can't be written", v.Version)
	}
	out := appendHash(dst, v.Version, v.Hash, v.HashNull, byte(v.Instruction))
	out, err := s.key.Append(out, v.Key)
	if err != nil || v.Version == 0 {
		return out, err
	}
	return binary.BigEndian.AppendUint32(out, uint32(v.Partition)), nil
}

// appendHash appends the version, what goes between it and the hash, and the hash.
func appendHash(dst []byte, version byte, hash [16]byte, null bool, between ...byte) []byte {
	if null {
		return append(append(dst, version|hashNullBit), between...)
	}
	return append(append(append(dst, version), between...), hash[:]...)
}

// Decode implements serde.Serde.
func (s subscriptionSerde[K]) Decode(data []byte) (v Subscription[K], err error) {
	if len(data) < 2 {
		return v, fmt.Errorf("%w: %d bytes", errForeignFormat, len(data))
	}
	v.Version, v.HashNull, v.Instruction = data[0]&^hashNullBit, data[0]&hashNullBit != 0, Instruction(data[1])
	if v.Instruction > SubscribeAnswerIfFound {
		return v, fmt.Errorf("%w: instruction %d", errForeignFormat, v.Instruction)
	}
	rest, err := cutHash(data[2:], &v.Hash, v.HashNull)
	if err != nil {
		return v, err
	}
	v.Partition = -1
	if v.Version > 0 {
		n := len(rest) - 4
		if n < 0 {
			return v, fmt.Errorf("%w: no partition", errForeignFormat)
		}
		v.Partition = int32(binary.BigEndian.Uint32(rest[n:]))
		rest = rest[:n:n]
	}
	v.Key, err = s.key.Decode(filled(rest))
	return v, err
}

func cutHash(data []byte, hash *[16]byte, null bool) ([]byte, error) {
	if null {
		return data, nil
	}
	if len(data) < len(hash) {
		return nil, fmt.Errorf("%w: a hash of %d bytes", errForeignFormat, len(data))
	}
	copy(hash[:], data)
	return data[len(hash):], nil
}

// ForTopic implements serde.TopicBound: as in Kafka Streams, the key's topic is <topic>-pk.
func (s subscriptionSerde[K]) ForTopic(topic string, _ bool) serde.Serde[Subscription[K]] {
	return SubscriptionSerde(serde.Bind(s.key, topic+"-pk", true))
}

// Prepare implements serde.Preparer.
func (s subscriptionSerde[K]) Prepare(ctx context.Context) error { return serde.Prepare(ctx, s.key) }

// ResponseSerde is the wire format of the response topic's values (KIP-213):
//
//	version, with bit 7 set if there is no hash | hash, 16 bytes, if any | right row, nothing if there is none
//
// So a right row of no bytes is read as none, as in Kafka Streams.
func ResponseSerde[R any](value serde.Serde[R]) serde.Serde[Response[R]] {
	return likeInner(value, responseSerde[R]{serde.NewCodec(value)})
}

type responseSerde[R any] struct{ value serde.Codec[R] }

// Append implements serde.Serde.
func (s responseSerde[R]) Append(dst []byte, v Response[R]) ([]byte, error) {
	out, _, err := s.value.Encode(appendHash(dst, v.Version, v.Hash, v.HashNull), v.Value, v.Null)
	return out, err
}

// Decode implements serde.Serde.
func (s responseSerde[R]) Decode(data []byte) (v Response[R], err error) {
	if len(data) < 1 {
		return v, fmt.Errorf("%w: empty", errForeignFormat)
	}
	v.Version, v.HashNull, v.Partition = data[0]&^hashNullBit, data[0]&hashNullBit != 0, -1
	rest, err := cutHash(data[1:], &v.Hash, v.HashNull)
	if err != nil {
		return v, err
	}
	if len(rest) == 0 {
		v.Null = true
		return v, nil
	}
	v.Value, err = s.value.Decode(rest)
	v.Null = err == nil && s.value.IsNil(v.Value)
	return v, err
}

// ForTopic implements serde.TopicBound.
func (s responseSerde[R]) ForTopic(topic string, isKey bool) serde.Serde[Response[R]] {
	return ResponseSerde(serde.Bind(s.value.Serde, topic, isKey))
}

// Prepare implements serde.Preparer.
func (s responseSerde[R]) Prepare(ctx context.Context) error {
	return serde.Prepare(ctx, s.value.Serde)
}
