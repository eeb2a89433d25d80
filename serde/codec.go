package serde

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Codec is a serde with the null rule of its type.
//
// A nullable Go type (pointer, slice, map, interface, channel, function) takes a Kafka null as nil; every other type can't
// hold a null, and a null must be carried beside the value.
type Codec[T any] struct {
	Serde[T]
	nullable bool
}

// NewCodec pairs s with the null rule of T. s may be nil; the codec then has no serde (see Valid).
func NewCodec[T any](s Serde[T]) Codec[T] {
	return Codec[T]{Serde: s, nullable: Nullable[T]()}
}

// Valid reports whether the codec has a serde.
func (c Codec[T]) Valid() bool { return c.Serde != nil }

// Nullable reports whether T can hold a null as nil.
func (c Codec[T]) Nullable() bool { return c.nullable }

// IsNil reports whether v is the nil of a nullable type.
func (c Codec[T]) IsNil(v T) bool { return c.nullable && firstWord(&v) == nil }

// Encode appends v to dst. isNull is true, and nothing is appended, if null is set or v is nil.
func (c Codec[T]) Encode(dst []byte, v T, null bool) (out []byte, isNull bool, err error) {
	if null || c.IsNil(v) {
		return dst, true, nil
	}
	out, err = c.Serde.Append(dst, v)
	return out, false, err
}

// DecodeNull decodes data; nil data is a null, which gives the zero value and isNull.
func (c Codec[T]) DecodeNull(data []byte) (v T, isNull bool, err error) {
	if data == nil {
		return v, true, nil
	}
	v, err = c.Serde.Decode(data)
	return v, false, err
}

// Nullable reports whether T can hold a Kafka null as nil.
func Nullable[T any]() bool {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return true
	}
	return false
}

// IsNil reports whether v is the nil of a nullable type. Codec.IsNil is cheaper where a codec is at hand.
func IsNil[T any](v T) bool { return Nullable[T]() && firstWord(&v) == nil }

// firstWord reads the first word of a nullable value: the pointer itself, a slice's data pointer, an interface's type word.
// It is nil exactly for the nil value of each of these kinds.
func firstWord[T any](v *T) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(v)) }

// NullError says that a null was met where the Go type can't hold one.
type NullError struct {
	What string // "key" or "value"
	Type string // the Go type
}

func (e *NullError) Error() string {
	return fmt.Sprintf("null %s for %s, which can't hold a null: declare the %s as *%s", e.What, e.Type, e.What, e.Type)
}
