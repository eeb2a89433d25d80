package processors

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/tributary-io/tributary/serde"
)

// TimeWindowedSerde is Kafka Streams' format of keys in time windows: the key, then the window's start in 8 bytes, big endian. The end
// is not written: decoding needs the windows' size in ms (sliding windows: the difference; unlimited ones: math.MaxInt64).
func TimeWindowedSerde[K any](key serde.Serde[K], sizeMs int64) serde.Serde[Windowed[K]] {
	return likeInner(key, timeWindowedSerde[K]{key, sizeMs})
}

// SessionWindowedSerde is Kafka Streams' format of keys in session windows: the key, then the session's end and start in 8 bytes each,
// big endian.
func SessionWindowedSerde[K any](key serde.Serde[K]) serde.Serde[Windowed[K]] {
	return likeInner(key, sessionWindowedSerde[K]{key})
}

// WindowedKeySerde is implemented by serdes of keys in windows, those of TimeWindowedSerde and SessionWindowedSerde among them: a stream's sink
// chooses the partition by the key alone.
type WindowedKeySerde[W any] interface {
	serde.Serde[W]
	// AppendKey encodes the key that is in the window.
	AppendKey(dst []byte, w W) ([]byte, error)
}

// KeyWithoutWindow encodes keys in windows for a topic without their windows. It is nil for a serde that isn't a WindowedKeySerde.
func KeyWithoutWindow[W any](s serde.Serde[W], topic string) func(dst []byte, key W) ([]byte, error) {
	if s == nil {
		return nil
	}
	s = serde.Bind(s, topic, true)
	if n, ok := s.(nonAliasing[W]); ok {
		s = n.TopicBound
	}
	if w, ok := s.(WindowedKeySerde[W]); ok {
		return w.AppendKey
	}
	return nil
}

// KeyInWindow is the serde of the keys in windows, of a serde that TimeWindowedSerde or SessionWindowedSerde made; nil of others.
func KeyInWindow[K, W any](s serde.Serde[W]) serde.Serde[K] {
	if n, ok := s.(nonAliasing[W]); ok {
		s = n.TopicBound
	}
	if w, ok := s.(interface{ keySerde() serde.Serde[K] }); ok {
		return w.keySerde()
	}
	return nil
}

type timeWindowedSerde[K any] struct {
	key  serde.Serde[K]
	size int64
}

// AppendKey implements WindowedKeySerde.
func (s timeWindowedSerde[K]) AppendKey(dst []byte, w Windowed[K]) ([]byte, error) {
	return s.key.Append(dst, w.Key)
}

// Append implements serde.Serde.
func (s timeWindowedSerde[K]) Append(dst []byte, v Windowed[K]) ([]byte, error) {
	out, err := s.key.Append(dst, v.Key)
	if err != nil {
		return dst, err
	}
	return binary.BigEndian.AppendUint64(out, uint64(v.Window.Start)), nil
}

// Decode implements serde.Serde.
func (s timeWindowedSerde[K]) Decode(data []byte) (w Windowed[K], err error) {
	n := len(data) - 8
	if n < 0 {
		return w, &serde.LengthError{Type: "the window of a time-windowed key", Want: 8, Got: len(data)}
	}
	w.Window.Start = int64(binary.BigEndian.Uint64(data[n:]))
	w.Window.End = saturatedEnd(w.Window.Start, s.size)
	w.Key, err = s.key.Decode(data[:n:n])
	return w, err
}

func (s timeWindowedSerde[K]) keySerde() serde.Serde[K] { return s.key }

// ForTopic implements serde.TopicBound.
func (s timeWindowedSerde[K]) ForTopic(topic string, isKey bool) serde.Serde[Windowed[K]] {
	return TimeWindowedSerde(serde.Bind(s.key, topic, isKey), s.size)
}

// Prepare implements serde.Preparer.
func (s timeWindowedSerde[K]) Prepare(ctx context.Context) error { return serde.Prepare(ctx, s.key) }

func saturatedEnd(start, size int64) int64 {
	if start > math.MaxInt64-size {
		return math.MaxInt64
	}
	return start + size
}

type sessionWindowedSerde[K any] struct{ key serde.Serde[K] }

// AppendKey implements WindowedKeySerde.
func (s sessionWindowedSerde[K]) AppendKey(dst []byte, w Windowed[K]) ([]byte, error) {
	return s.key.Append(dst, w.Key)
}

// Append implements serde.Serde.
func (s sessionWindowedSerde[K]) Append(dst []byte, v Windowed[K]) ([]byte, error) {
	out, err := s.key.Append(dst, v.Key)
	if err != nil {
		return dst, err
	}
	out = binary.BigEndian.AppendUint64(out, uint64(v.Window.End))
	return binary.BigEndian.AppendUint64(out, uint64(v.Window.Start)), nil
}

// Decode implements serde.Serde.
func (s sessionWindowedSerde[K]) Decode(data []byte) (w Windowed[K], err error) {
	n := len(data) - 16
	if n < 0 {
		return w, &serde.LengthError{Type: "the window of a session-windowed key", Want: 16, Got: len(data)}
	}
	w.Window.End = int64(binary.BigEndian.Uint64(data[n:]))
	w.Window.Start = int64(binary.BigEndian.Uint64(data[n+8:]))
	w.Key, err = s.key.Decode(data[:n:n])
	return w, err
}

func (s sessionWindowedSerde[K]) keySerde() serde.Serde[K] { return s.key }

// ForTopic implements serde.TopicBound.
func (s sessionWindowedSerde[K]) ForTopic(topic string, isKey bool) serde.Serde[Windowed[K]] {
	return SessionWindowedSerde(serde.Bind(s.key, topic, isKey))
}

// Prepare implements serde.Preparer.
func (s sessionWindowedSerde[K]) Prepare(ctx context.Context) error { return serde.Prepare(ctx, s.key) }

// likeInner marks a serde as not aliasing if the one that it is made of doesn't alias.
func likeInner[T, W any](inner serde.Serde[T], outer serde.TopicBound[W]) serde.Serde[W] {
	if serde.Aliases(inner) {
		return outer
	}
	return nonAliasing[W]{outer}
}

type nonAliasing[T any] struct{ serde.TopicBound[T] }

// NonAliasing implements serde.NonAliasing.
func (nonAliasing[T]) NonAliasing() {}

// Prepare implements serde.Preparer.
func (s nonAliasing[T]) Prepare(ctx context.Context) error {
	return serde.Prepare[T](ctx, s.TopicBound)
}
