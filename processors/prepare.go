package processors

import (
	"context"

	"github.com/tributary-io/tributary/serde"
)

// Preparation is implemented by a Runtime that takes start-up steps of serdes, such as the registration of a schema: they are done
// after the nodes are initialized and before the first record.
type Preparation interface {
	// Prepare adds a step. It may be added again for the same serde.
	Prepare(step func(context.Context) error)
}

// prepareToWrite adds the start-up step of a bound serde that the node will write with, if it has one.
func prepareToWrite[T any](at any, s serde.Serde[T]) {
	p, ok := at.(Preparation)
	if !ok || s == nil {
		return
	}
	if _, ok := s.(serde.Preparer); ok {
		p.Prepare(func(ctx context.Context) error { return serde.Prepare(ctx, s) })
	}
}

// bindToWrite binds a serde to a topic that the node will write with it, if only the name of one (see ForeignKeyJoin), and adds its start-up step.
func bindToWrite[T any](at any, s serde.Serde[T], topic string, isKey bool) serde.Serde[T] {
	s = serde.Bind(s, topic, isKey)
	prepareToWrite(at, s)
	return s
}
