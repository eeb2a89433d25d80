package processors

import (
	"errors"
	"fmt"

	"github.com/tributary-io/tributary/internal/callsite"
)

// Fatal marks errors that must stop the task: no handler sees them again on their way up.
type Fatal interface {
	error
	Fatal()
}

// IsFatal reports whether err, or an error that it wraps, is Fatal.
func IsFatal(err error) bool {
	var f Fatal
	return errors.As(err, &f)
}

// ProcessingError is what is left of a failure in user code after the processing-error handler said "fail". It is Fatal.
type ProcessingError struct {
	Node      string
	TaskID    string
	Topic     string
	Partition int32
	Offset    int64
	Err       error
}

func (e *ProcessingError) Error() string {
	where := "in a punctuation"
	if e.Topic != "" {
		where = fmt.Sprintf("at %s-%d offset %d", e.Topic, e.Partition, e.Offset)
	}
	return fmt.Sprintf("task %s: node %s failed %s: %v", e.TaskID, e.Node, where, e.Err)
}

func (e *ProcessingError) Unwrap() error { return e.Err }

// Fatal marks the error as fatal for the task.
func (e *ProcessingError) Fatal() {}

// PanicError is a panic in user code. Its message tells where, without the stack.
type PanicError struct {
	Value any
	// At is the "file.go:line" of the user's function in which it happened; of the place of the panic, if there is no such function in the stack.
	At string
	// Stack is the stack from the place of the panic on, without this module's own frames.
	Stack string
}

// NewPanicError describes a panic that was recovered with the value. It must be called while the panic is being recovered from, by the function
// that was deferred.
func NewPanicError(value any) *PanicError {
	at, stack := callsite.Panicked()
	return &PanicError{Value: value, At: at, Stack: stack}
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v (%s)", e.Value, e.At) }

// Unwrap gives the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// DeserializationError says that a record's key or value could not be decoded.
type DeserializationError struct {
	What      string // "key" or "value"
	Topic     string
	Partition int32
	Offset    int64
	Err       error
}

func (e *DeserializationError) Error() string {
	return fmt.Sprintf("%s-%d offset %d: the %s can't be decoded: %v", e.Topic, e.Partition, e.Offset, e.What, e.Err)
}

func (e *DeserializationError) Unwrap() error { return e.Err }

// RefusedError says that the brokers don't take a record, and never will: it is too large for its topic, or invalid there (without a key in a
// compacted topic, for example). It goes to the production-error handler.
type RefusedError struct {
	Topic string
	Err   error
}

func (e *RefusedError) Error() string { return fmt.Sprintf("topic %s: %v", e.Topic, e.Err) }

func (e *RefusedError) Unwrap() error { return e.Err }

// TimestampError says that a record has no valid event time and the extractor refuses it. It is Fatal.
type TimestampError struct {
	Topic     string
	Partition int32
	Offset    int64
	Timestamp int64
	Err       error
}

func (e *TimestampError) Error() string {
	msg := fmt.Sprintf("%s-%d offset %d: invalid event time %d", e.Topic, e.Partition, e.Offset, e.Timestamp)
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg + "; choose a timestamp extractor that skips or replaces such times"
}

func (e *TimestampError) Unwrap() error { return e.Err }

// Fatal marks the error as fatal for the task.
func (e *TimestampError) Fatal() {}

// StoreAccessError says that a node asked for a store that is not connected to it.
type StoreAccessError struct {
	Node, Store string
}

func (e *StoreAccessError) Error() string {
	return fmt.Sprintf("node %s has no access to store %q: connect the store to it (name it in Process, or let the processor provide it)", e.Node, e.Store)
}

// UnknownChildError says that a processor forwarded to a child that it does not have.
type UnknownChildError struct {
	Node, Child string
}

func (e *UnknownChildError) Error() string {
	return fmt.Sprintf("node %s has no child %q", e.Node, e.Child)
}

// NegativeTimeError says that a processor forwarded a record with a negative time.
type NegativeTimeError struct {
	Node      string
	Timestamp int64 // ms
}

func (e *NegativeTimeError) Error() string {
	return fmt.Sprintf("node %s forwards a record with the negative time %d", e.Node, e.Timestamp)
}

// SerializationError says that a key or value could not be encoded for a topic.
type SerializationError struct {
	What  string // "key" or "value"
	Topic string
	Err   error
}

func (e *SerializationError) Error() string {
	return fmt.Sprintf("the %s can't be encoded for topic %s: %v", e.What, e.Topic, e.Err)
}

func (e *SerializationError) Unwrap() error { return e.Err }

// Guard wraps a node's body so that an error or panic in it goes to the processing-error handler, and so that the context shows
// the record's own time and headers while the node runs.
func Guard[K, V any](rt Runtime, body Next[K, V]) Next[K, V] {
	ctx := rt.Context()
	return func(r *Record[K, V]) (err error) {
		timestamp, headers := ctx.Timestamp, ctx.Headers
		ctx.Timestamp, ctx.Headers = r.Timestamp, r.Headers
		defer func() {
			if p := recover(); p != nil {
				err = rt.Failed(NewPanicError(p))
			} else if err != nil {
				err = rt.Failed(err)
			}
			ctx.Timestamp, ctx.Headers = timestamp, headers
		}()
		return body(r)
	}
}
