package processors

import (
	"fmt"
	"slices"
	"strconv"
)

// ErrorContext describes a failure to an ErrorHandler.
type ErrorContext struct {
	TaskID string
	Node   string
	// Topic, Partition and Offset are those of the record that entered the sub-topology; empty, -1 and -1 in a punctuation.
	Topic     string
	Partition int32
	Offset    int64
	Timestamp int64 // ms
	Headers   []Header
	// RawKey and RawValue are the bytes of that record; nil for null.
	RawKey, RawValue []byte
	Err              error
}

// Verdict is what an ErrorHandler decides.
type Verdict struct {
	// Fail stops the application with the error; otherwise the record is left out and counted.
	Fail bool
	// DeadLetterTopic, if not empty, gets the record's original bytes, with the failure described in headers (KIP-1034). It is
	// written in the same transaction as everything else, so under exactly-once a dead letter of a failing record is not seen. What a global
	// table leaves out is met by every instance; its dead letter is written once.
	DeadLetterTopic string
	// Headers are added to the dead letter, behind those that describe the failure: such as the reason by a name that its readers
	// know. Without a dead letter they count for nothing.
	Headers []Header
}

// ErrorHandler decides what happens to a record that failed. It may be called by several tasks at once. One that is also a DeadLetterer says which
// topics it may send to.
type ErrorHandler interface {
	HandleError(*ErrorContext) Verdict
}

// HandleErrors makes a function an ErrorHandler.
type HandleErrors func(*ErrorContext) Verdict

// HandleError implements ErrorHandler.
func (f HandleErrors) HandleError(c *ErrorContext) Verdict { return f(c) }

// DeadLetterer is an ErrorHandler that knows where its dead letters go, as DeadLetterOnError does: whether these topics exist is then found at
// start, and not with the first record that fails.
type DeadLetterer interface {
	ErrorHandler
	DeadLetterTopics() []string
}

// Handlers are the application's three error handlers. A nil one is FailOnError.
type Handlers struct {
	// Deserialization gets records whose key or value can't be decoded.
	Deserialization ErrorHandler
	// Processing gets errors and panics of user functions.
	Processing ErrorHandler
	// Production gets records that can't be encoded or that the broker refuses.
	Production ErrorHandler
	// Global holds the three handlers of global tables and global stores, if they shall have others; its own DroppedTopic and Global are not
	// used. Nil: the handlers above hold for them, too.
	Global *Handlers
	// DroppedTopic, if not empty, is a ledger of what is left out without being wrong: it gets the original bytes of each record that is
	// counted as dropped, such as a late one, a duplicate or one without a key, and of those that a handler skips without a dead letter. Its
	// headers are those of a dead letter, and HeaderDroppedReason. It is written in the same transaction as everything else. What is left
	// out while no record is being processed, in a punctuation or at a commit, is only counted.
	DroppedTopic string
}

// ForGlobal are the handlers that hold for global tables and global stores.
func (h Handlers) ForGlobal() Handlers {
	if h.Global == nil {
		return h
	}
	return Handlers{Deserialization: h.Global.Deserialization, Processing: h.Global.Processing, Production: h.Global.Production, DroppedTopic: h.DroppedTopic}
}

// Topics are the topics that are known to be written to by the handlers, sorted: the ledger, and those of handlers that are DeadLetterers.
func (h Handlers) Topics() []string {
	var all []string
	if h.DroppedTopic != "" {
		all = append(all, h.DroppedTopic)
	}
	of := []ErrorHandler{h.Deserialization, h.Processing, h.Production}
	if g := h.Global; g != nil {
		of = append(of, g.Deserialization, g.Processing, g.Production)
	}
	for _, handler := range of {
		if d, ok := handler.(DeadLetterer); ok {
			all = append(all, d.DeadLetterTopics()...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// FailOnError stops the application at the first failure. It is the default.
func FailOnError() ErrorHandler {
	return HandleErrors(func(*ErrorContext) Verdict { return Verdict{Fail: true} })
}

// SkipOnError leaves failing records out and counts them.
func SkipOnError() ErrorHandler {
	return HandleErrors(func(*ErrorContext) Verdict { return Verdict{} })
}

// DeadLetterOnError sends failing records to a topic, with their original bytes and the reason in headers, and goes on.
func DeadLetterOnError(topic string) ErrorHandler {
	return toTopic(topic)
}

type toTopic string

var _ DeadLetterer = toTopic("")

func (t toTopic) HandleError(*ErrorContext) Verdict { return Verdict{DeadLetterTopic: string(t)} }
func (t toTopic) DeadLetterTopics() []string        { return []string{string(t)} }

// Headers of a dead letter, as KIP-1034 names them. Values are text.
const (
	HeaderErrorException  = "__streams.errors.exception"  // the error's Go type
	HeaderErrorMessage    = "__streams.errors.message"    // its message, with the node
	HeaderErrorStacktrace = "__streams.errors.stacktrace" // the chain of wrapped errors, with the stack of a panic
	HeaderErrorTopic      = "__streams.errors.topic"      // null where no record was processed: in a punctuation
	HeaderErrorPartition  = "__streams.errors.partition"
	HeaderErrorOffset     = "__streams.errors.offset"
)

// HeaderDroppedReason is the header of a record in the ledger (Handlers.DroppedTopic) that says why it was left out: one of the Dropped…
// constants.
const HeaderDroppedReason = "__tributary.dropped.reason"

// DroppedError describes, in the ledger, a record that an operator left out.
type DroppedError struct{ Reason string }

func (e *DroppedError) Error() string { return "left out: " + e.Reason }

// DeadLetterHeaders returns the record's headers followed by those that describe the failure.
func (c *ErrorContext) DeadLetterHeaders() []Header {
	out := make([]Header, 0, len(c.Headers)+6)
	out = append(out, c.Headers...)
	var topic []byte // null for what a punctuation sends
	if c.Topic != "" {
		topic = []byte(c.Topic)
	}
	return append(out,
		Header{Key: HeaderErrorException, Value: []byte(fmt.Sprintf("%T", rootCause(c.Err)))},
		Header{Key: HeaderErrorMessage, Value: []byte("node " + c.Node + ": " + c.Err.Error())},
		Header{Key: HeaderErrorStacktrace, Value: []byte(stacktrace(c.Err))},
		Header{Key: HeaderErrorTopic, Value: topic},
		Header{Key: HeaderErrorPartition, Value: strconv.AppendInt(nil, int64(c.Partition), 10)},
		Header{Key: HeaderErrorOffset, Value: strconv.AppendInt(nil, c.Offset, 10)},
	)
}

func rootCause(err error) error {
	for {
		next, ok := err.(interface{ Unwrap() error })
		if !ok || next.Unwrap() == nil {
			return err
		}
		err = next.Unwrap()
	}
}

// stacktrace lists the wrapped errors, one a line, and below a panic its stack.
func stacktrace(err error) string {
	s := ""
	for err != nil {
		s += fmt.Sprintf("%T: %v\n", err, err)
		if p, ok := err.(*PanicError); ok {
			s += p.Stack
		}
		next, ok := err.(interface{ Unwrap() error })
		if !ok {
			break
		}
		err = next.Unwrap()
	}
	return s
}
