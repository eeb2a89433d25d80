package task

import (
	"errors"

	"github.com/tributary-io/tributary/processors"
)

// fatalError makes any error fatal for the task.
type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }
func (e *fatalError) Fatal()        {}

// recoverTo turns a panic into an error. It must be deferred.
func recoverTo(err *error) {
	if p := recover(); p != nil {
		*err = processors.NewPanicError(p)
	}
}

// logStack logs the stack of a panic, which its error doesn't show, once for each node and place: a panic comes back with each record of its kind.
func (t *Task) logStack(nodeName string, err error) {
	var p *processors.PanicError
	if !errors.As(err, &p) {
		return
	}
	place := nodeName + " " + p.At
	if t.panicked[place] {
		return
	}
	if t.panicked == nil {
		t.panicked = make(map[string]bool)
	}
	t.panicked[place] = true
	t.logger.Warn("user code panicked; its stack is shown once", "node", nodeName, "error", p, "stack", p.Stack)
}

// located makes err fatal, and says where it happened unless it does so itself.
func (t *Task) located(nodeName string, err error) error {
	var p *processors.ProcessingError
	if errors.As(err, &p) {
		return err
	}
	t.logStack(nodeName, err)
	var ts *processors.TimestampError
	if errors.As(err, &ts) || processors.IsFatal(err) {
		return err
	}
	return t.processingError(nodeName, err)
}

func (t *Task) processingError(nodeName string, err error) error {
	c := &t.context
	return &processors.ProcessingError{
		Node: nodeName, TaskID: t.cfg.ID.String(), Topic: c.Topic, Partition: c.Partition, Offset: c.Offset, Err: err,
	}
}

// failed hands an error of user code to the processing-error handler.
func (t *Task) failed(n *node, err error) error {
	if processors.IsFatal(err) {
		return err
	}
	c := t.errorContext(n, err)
	return t.judge(t.cfg.Handlers.Processing, c, n, processors.DroppedProcessing, func() error {
		return t.processingError(n.spec.Name, err)
	})
}

// serializationFailed hands a failed serialization to the production-error handler. If that says "fail", it is an error like any other: the
// processing-error handler is asked next.
func (t *Task) serializationFailed(n *node, topic string, err error) error {
	var s *processors.SerializationError
	if !errors.As(err, &s) {
		err = &processors.SerializationError{What: "record", Topic: topic, Err: err}
	}
	c := t.errorContext(n, err)
	return t.judge(t.cfg.Handlers.Production, c, n, processors.DroppedProduction, func() error { return err })
}

// refused hands a record that the brokers don't take to the production-error handler.
func (t *Task) refused(n *node, err error) error {
	return t.judge(t.cfg.Handlers.Production, t.errorContext(n, err), n, processors.DroppedProduction, func() error {
		return t.processingError(n.spec.Name, err)
	})
}

func (t *Task) errorContext(n *node, err error) *processors.ErrorContext {
	c := &t.context
	return &processors.ErrorContext{
		TaskID: t.cfg.ID.String(), Node: n.spec.Name, Topic: c.Topic, Partition: c.Partition, Offset: c.Offset,
		Timestamp: c.Timestamp, Headers: c.Headers, RawKey: c.RawKey, RawValue: c.RawValue, Err: err,
	}
}

// judge asks handler and does what it says: a dead letter first, then nil if the record is left out, else what fatal makes.
func (t *Task) judge(handler processors.ErrorHandler, c *processors.ErrorContext, n *node, reason string, fatal func() error) error {
	t.logStack(n.spec.Name, c.Err)
	verdict := processors.Verdict{Fail: true}
	if handler != nil {
		verdict = handler.HandleError(c)
	}
	if verdict.DeadLetterTopic != "" {
		err := t.cfg.Collector.Send(&Out{
			Topic: verdict.DeadLetterTopic, Partition: -1, Key: c.RawKey, Value: c.RawValue,
			Timestamp: c.Timestamp, Headers: append(c.DeadLetterHeaders(), verdict.Headers...), Node: c.Node, About: c,
		})
		if err != nil {
			return &fatalError{err}
		}
	}
	if verdict.Fail {
		return fatal()
	}
	if verdict.DeadLetterTopic == "" {
		if err := t.enter(reason, c); err != nil {
			return err
		}
	}
	n.drops.add(reason)
	log := t.logger
	if verdict.DeadLetterTopic != "" {
		log = log.With("dead_letter_topic", verdict.DeadLetterTopic)
	}
	log.Warn("record left out", "node", c.Node, "topic", c.Topic, "partition", c.Partition, "offset", c.Offset, "error", c.Err)
	return nil
}
