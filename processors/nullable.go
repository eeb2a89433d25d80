package processors

import (
	"fmt"
	"reflect"

	"github.com/tributary-io/tributary/serde"
)

// nils knows whether T can hold a null as nil. Made once a node, it costs a branch a record.
type nils[T any] = serde.Codec[T]

func nilsOf[T any]() nils[T] { return serde.NewCodec[T](nil) }

// NullError says that a function that takes the key and the value can't be called since one of them is null and its Go type can't
// hold a null.
type NullError struct {
	What string // "key" or "value"
	Type string // the Go type
}

func (e *NullError) Error() string {
	return fmt.Sprintf("the record's %s is null, and %s can't hold a null: use *%s, or for the updates of a table topology.Changes",
		e.What, e.Type, e.Type)
}

func nullError[T any](what string) error {
	return &NullError{What: what, Type: reflect.TypeFor[T]().String()}
}

// argumentsOf checks that a function of key and value can be called for r: a null is passed on only where the Go type holds it.
func missingArgument[K, V any](r *Record[K, V], keys nils[K], values nils[V]) error {
	if r.KeyNull && !keys.Nullable() {
		return nullError[K]("key")
	}
	if r.ValueNull && !values.Nullable() {
		return nullError[V]("value")
	}
	return nil
}
