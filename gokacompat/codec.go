package gokacompat

import (
	"fmt"
	"reflect"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"

	"github.com/tributary-io/tributary/serde"
)

// Serde makes a serde of a codec, for values of any type that the codec takes. Like the codec it must be safe for concurrent use.
func Serde(c goka.Codec) serde.Serde[any] { return codecSerde[any]{c} }

// TypedSerde makes a serde of a codec whose values have one Go type. A value of another type is an error of Decode.
func TypedSerde[T any](c goka.Codec) serde.Serde[T] { return codecSerde[T]{c} }

type codecSerde[T any] struct{ codec goka.Codec }

// Check implements serde.Checker.
func (s codecSerde[T]) Check() error {
	if s.codec == nil {
		return fmt.Errorf("the codec is nil")
	}
	return nil
}

// String names what makes the bytes, for comparing versions of a topology.
func (s codecSerde[T]) String() string { return fmt.Sprintf("goka codec %T", s.codec) }

func (s codecSerde[T]) Append(dst []byte, v T) ([]byte, error) {
	data, err := s.codec.Encode(v)
	if err != nil {
		return dst, fmt.Errorf("codec %T: %w", s.codec, err)
	}
	return append(dst, data...), nil
}

func (s codecSerde[T]) Decode(data []byte) (v T, err error) {
	got, err := s.codec.Decode(data)
	if err != nil {
		return v, fmt.Errorf("codec %T: %w", s.codec, err)
	}
	v, ok := got.(T)
	if !ok && got != nil {
		return v, fmt.Errorf("codec %T gives a %T, not a %s", s.codec, got, reflect.TypeFor[T]())
	}
	return v, nil
}

// Codec makes a codec of a serde. Encoding a value of another type than T is an error.
func Codec[T any](s serde.Serde[T]) goka.Codec { return serdeCodec[T]{s} }

type serdeCodec[T any] struct{ serde serde.Serde[T] }

// Encode implements goka.Codec. The bytes are never nil, which goka would write as a delete.
func (c serdeCodec[T]) Encode(value any) ([]byte, error) {
	v, ok := value.(T)
	if !ok {
		return nil, fmt.Errorf("a %T can't be encoded by a serde of %s", value, reflect.TypeFor[T]())
	}
	return c.serde.Append([]byte{}, v)
}

// Decode implements goka.Codec.
func (c serdeCodec[T]) Decode(data []byte) (any, error) { return c.serde.Decode(data) }

// inputSerde is the serde of an input's values. A codec may well decode bytes to nil, which isn't the same as a record without a value.
type inputSerde struct{ codecSerde[any] }

func newInputSerde(c goka.Codec) serde.Serde[any] { return inputSerde{codecSerde[any]{c}} }

// decodedNil stands for the nil that a codec has decoded.
type decodedNil struct{}

func (s inputSerde) Decode(data []byte) (any, error) {
	v, err := s.codecSerde.Decode(data)
	if v == nil && err == nil {
		v = decodedNil{}
	}
	return v, err
}

// copies tells whether values that a codec decodes are known not to point into the bytes that they come from.
func copies(c goka.Codec) bool {
	switch c.(type) {
	case *codec.String, *codec.Int64:
		return true
	}
	return false
}
