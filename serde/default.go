package serde

import (
	"time"

	"github.com/google/uuid"
)

// Default finds the built-in serde for exactly T, or for *T of a built-in T. A named type such as `type OrderID string` has
// none: whether its bytes are those of its underlying type is for its owner to say.
func Default[T any]() (s Serde[T], ok bool) {
	s, ok = builtinFor[T]().(Serde[T])
	return s, ok
}

// builtinFor switches on *T since a value of T can't tell an interface type apart from nil.
func builtinFor[T any]() any {
	switch any((*T)(nil)).(type) {
	case *string:
		return String
	case *[]byte:
		return Bytes
	case *int16:
		return Int16
	case *int32:
		return Int32
	case *int64:
		return Int64
	case *int:
		return Int
	case *float32:
		return Float32
	case *float64:
		return Float64
	case *bool:
		return Bool
	case *uuid.UUID:
		return UUID
	case *time.Time:
		return Time
	}
	return builtinForPointer[T]()
}

func builtinForPointer[T any]() any {
	switch any((*T)(nil)).(type) {
	case **string:
		return Ptr(String)
	case **[]byte:
		return Ptr(Bytes)
	case **int16:
		return Ptr(Int16)
	case **int32:
		return Ptr(Int32)
	case **int64:
		return Ptr(Int64)
	case **int:
		return Ptr(Int)
	case **float32:
		return Ptr(Float32)
	case **float64:
		return Ptr(Float64)
	case **bool:
		return Ptr(Bool)
	case **uuid.UUID:
		return Ptr(UUID)
	case **time.Time:
		return Ptr(Time)
	}
	return nil
}
