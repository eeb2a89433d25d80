package serde

import (
	"context"
	"reflect"
)

// Ptr lifts a serde of T to one of *T with the same bytes: a nullable type for a topic whose records may be null.
//
// It keeps what s is: bound to a topic if s is, not aliasing if s is not. Decoding allocates one T.
func Ptr[T any](s Serde[T]) Serde[*T] {
	if Aliases(s) {
		return ptrSerde[T]{s}
	}
	return ptrNonAliasing[T]{ptrSerde[T]{s}}
}

type ptrSerde[T any] struct{ elem Serde[T] }

// Append refuses nil: it stands for a Kafka null, which the caller (a Codec) has to keep from serdes.
func (p ptrSerde[T]) Append(dst []byte, v *T) ([]byte, error) {
	if v == nil {
		return dst, &NullError{What: "value", Type: reflect.TypeFor[T]().String()}
	}
	return p.elem.Append(dst, *v)
}

func (p ptrSerde[T]) Decode(data []byte) (*T, error) {
	v, err := p.elem.Decode(data)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// ForTopic implements TopicBound.
func (p ptrSerde[T]) ForTopic(topic string, isKey bool) Serde[*T] {
	return Ptr(Bind(p.elem, topic, isKey))
}

// Check implements Checker.
func (p ptrSerde[T]) Check() error { return Check(p.elem) }

// Prepare implements Preparer.
func (p ptrSerde[T]) Prepare(ctx context.Context) error { return Prepare(ctx, p.elem) }

type ptrNonAliasing[T any] struct{ ptrSerde[T] }

func (ptrNonAliasing[T]) NonAliasing() {}
