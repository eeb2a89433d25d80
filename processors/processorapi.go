package processors

import (
	"errors"
	"log/slog"
	"reflect"
	"time"

	"github.com/tributary-io/tributary/state"
)

// Processor is an operator written by a user (the Processor API). One is made for each task, and used by the task's worker only.
//
// An error or panic of Process, or of a punctuation, goes to the processing-error handler. An error of Init stops the task.
type Processor[KIn, VIn, KOut, VOut any] interface {
	// Init is called once, before the first record. The stores are open.
	Init(ctx ProcessorContext[KOut, VOut]) error
	// Process takes a record. The record is valid until the call returns and must not be changed: copy it, or what you keep of it.
	Process(r *Record[KIn, VIn]) error
	// Close is called when the task closes.
	Close() error
}

// FixedKeyProcessor is a Processor that can't change keys: what it sends keeps the key of the record being processed, so nothing
// has to be repartitioned behind it.
type FixedKeyProcessor[K, VIn, VOut any] interface {
	Init(ctx FixedKeyContext[K, VOut]) error
	Process(r *Record[K, VIn]) error
	Close() error
}

// BaseContext is what all kinds of processors are given.
type BaseContext interface {
	ApplicationID() string
	TaskID() string
	NodeName() string
	Logger() *slog.Logger
	// Stores finds the stores connected to the processor. See KeyValueStore and its like for typed access.
	Stores() state.Stores
	// Metadata tells where the record being processed entered the sub-topology. ok is false in a punctuation.
	Metadata() (m Metadata, ok bool)
	// Headers are those of the record being processed.
	Headers() []Header
	// StreamTimeMs is the largest event time that the task has seen, or NoTimestamp.
	StreamTimeMs() int64
	// Now is the wall clock.
	Now() time.Time
	// Schedule calls f every interval of the given time; see Runtime.Schedule.
	Schedule(interval time.Duration, t PunctuationType, f func(timestampMs int64) error) Cancellable
	// RequestCommit asks for a commit as soon as possible.
	RequestCommit()
	// BeforeCommit has f called before each commit of the task, as long as the processor lives; call it in Init. Nothing of the task
	// is processed meanwhile, and what f sends and writes is part of the commit. An error is fatal for the task: nothing of what would
	// have been committed is.
	BeforeCommit(f func() error)
	// Dropped counts a record that the processor left out, by reason: one of the Dropped… constants, such as DroppedExpired for a
	// put that a window store refused as too old.
	Dropped(reason string)
}

// Metadata are the coordinates of the record that entered the sub-topology: behind a repartition topic, that topic's.
type Metadata struct {
	Topic     string
	Partition int32
	Offset    int64
}

// ProcessorContext connects a Processor to its task.
type ProcessorContext[K, V any] interface {
	BaseContext
	// Forward sends r to all children in order. r may be reused when it returns. Null bits need not be set where K or V can hold a
	// nil. An error is fatal for the task: return it.
	Forward(r *Record[K, V]) error
	// ForwardTo sends r to one child; an *UnknownChildError if there is none of that name.
	ForwardTo(child string, r *Record[K, V]) error
}

// FixedKeyContext connects a FixedKeyProcessor to its task. What is sent has the key of the record being processed, whatever r says;
// so a punctuation can send nothing.
type FixedKeyContext[K, V any] interface {
	BaseContext
	Forward(r *Record[K, V]) error
	ForwardTo(child string, r *Record[K, V]) error
}

// WithValue is r with another value.
func WithValue[K, V, V2 any](r *Record[K, V], v V2) Record[K, V2] {
	return Record[K, V2]{
		Key: r.Key, KeyNull: r.KeyNull, Value: v, ValueNull: nilsOf[V2]().isNil(v),
		Timestamp: r.Timestamp, Headers: r.Headers,
	}
}

// WithKey is r with another key.
func WithKey[K, V, K2 any](r *Record[K, V], k K2) Record[K2, V] {
	return Record[K2, V]{
		Key: k, KeyNull: nilsOf[K2]().isNil(k), Value: r.Value, ValueNull: r.ValueNull,
		Timestamp: r.Timestamp, Headers: r.Headers,
	}
}

// Process makes a node of a user's processor. newProcessor is called once for each task.
func Process[KIn, VIn, KOut, VOut any](newProcessor func() Processor[KIn, VIn, KOut, VOut]) Supplier {
	return SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		ctx, err := newProcessorContext[KOut, VOut](rt, children)
		if err != nil {
			return Instance{}, err
		}
		p, err := made(newProcessor)
		if err != nil {
			return Instance{}, err
		}
		return Instance{
			Next:  Guard(rt, func(r *Record[KIn, VIn]) error { return ctx.outcome(p.Process(r)) }),
			Init:  func() (err error) { defer recovered(&err); return p.Init(ctx) },
			Close: func() (err error) { defer recovered(&err); return p.Close() },
		}, nil
	})
}

// made is a new processor of the user's, or an error if there is none.
func made[P any](newProcessor func() P) (p P, err error) {
	defer recovered(&err)
	p = newProcessor()
	if v := reflect.ValueOf(&p).Elem(); v.Kind() == reflect.Interface && v.IsNil() {
		return p, errors.New("the function that makes the processor has returned nil")
	}
	return p, nil
}

// ProcessValues makes a node of a user's fixed-key processor. newProcessor is called once for each task.
func ProcessValues[K, VIn, VOut any](newProcessor func() FixedKeyProcessor[K, VIn, VOut]) Supplier {
	return SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		inner, err := newProcessorContext[K, VOut](rt, children)
		if err != nil {
			return Instance{}, err
		}
		ctx := &fixedKeyContext[K, VOut]{processorContext: inner}
		p, err := made(newProcessor)
		if err != nil {
			return Instance{}, err
		}
		body := func(r *Record[K, VIn]) error {
			ctx.key, ctx.keyNull, ctx.inRecord = r.Key, r.KeyNull, true
			defer func() { ctx.inRecord = false }()
			return ctx.outcome(p.Process(r))
		}
		return Instance{
			Next:  Guard(rt, body),
			Init:  func() (err error) { defer recovered(&err); return p.Init(ctx) },
			Close: func() (err error) { defer recovered(&err); return p.Close() },
		}, nil
	})
}
