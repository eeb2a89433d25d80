package serde

import "context"

// Checker is implemented by serdes that can be made wrong, such as an Avro schema that doesn't parse or that the Go type
// doesn't fit. A topology checks its serdes at Build; until then the mistake waits in the serde, whose methods return it.
type Checker interface {
	Check() error
}

// Check returns what is wrong with a serde, nil if nothing is or can be.
func Check[T any](s Serde[T]) error {
	if c, ok := s.(Checker); ok {
		return c.Check()
	}
	return nil
}

// Preparer is implemented by serdes that need a step of start-up before they can write, such as the registration of a schema.
// It is called on a serde bound to a topic that the application writes, before the first record, and may do I/O.
type Preparer interface {
	Prepare(ctx context.Context) error
}

// Prepare makes a serde ready to write, if there is anything to do.
func Prepare[T any](ctx context.Context, s Serde[T]) error {
	if p, ok := s.(Preparer); ok {
		return p.Prepare(ctx)
	}
	return nil
}
