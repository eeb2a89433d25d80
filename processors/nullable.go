package processors

import (
	"fmt"
	"reflect"

	"github.com/tributary-io/tributary/serde"
)

// nils knows how a Go type stands to null. Made once a node, it costs a branch a record.
type nils[T any] struct{ codec serde.Codec[T] }

func nilsOf[T any]() nils[T] { return nils[T]{serde.NewCodec[T](nil)} }

// isNil reports whether v stands for null.
func (n nils[T]) isNil(v T) bool { return n.codec.IsNil(v) }

// missing reports whether a null bit says that there is no value to call a function with: a nil of a nullable type is one.
func (n nils[T]) missing(null bool) bool { return null && !n.codec.Nullable() }

// arguments checks that a function of key and value can be called.
type arguments[K, V any] struct {
	key   nils[K]
	value nils[V]
}

func argumentsOf[K, V any]() arguments[K, V] { return arguments[K, V]{nilsOf[K](), nilsOf[V]()} }

func (a *arguments[K, V]) check(keyNull, valueNull bool) error {
	if a.key.missing(keyNull) {
		return &NullError{What: "key", Type: reflect.TypeFor[K]().String()}
	}
	if a.value.missing(valueNull) {
		return &NullError{What: "value", Type: reflect.TypeFor[V]().String()}
	}
	return nil
}

// NullError says that a function of key and value can't be called, since one of them is null and its Go type can't hold a null.
type NullError struct {
	What string // "key" or "value"
	Type string // the Go type
}

func (e *NullError) Error() string {
	return fmt.Sprintf("the record's %s is null, which %s can't hold: declare *%[2]s, or read the updates of a table through topology.Changes",
		e.What, e.Type)
}
