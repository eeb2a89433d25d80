package task

import (
	"errors"
	"fmt"

	"github.com/tributary-io/tributary/processors"
)

// dropped counts the record that is being processed as left out by a node, and enters it in the ledger.
func (t *Task) dropped(n *node, reason string) {
	n.drops.add(reason)
	if t.cfg.Handlers.DroppedTopic == "" || t.context.Topic == "" || t.committing {
		return
	}
	// Operators can't fail at it: who processes the record looks for the error.
	t.ledgerErr = errors.Join(t.ledgerErr, t.enter(reason, t.errorContext(n, &processors.DroppedError{Reason: reason})))
}

// enter sends a record to the ledger.
func (t *Task) enter(reason string, c *processors.ErrorContext) error {
	topic := t.cfg.Handlers.DroppedTopic
	if topic == "" {
		return nil
	}
	err := t.cfg.Collector.Send(&Out{
		Topic: topic, Partition: -1, Key: c.RawKey, Value: c.RawValue, Timestamp: c.Timestamp, Node: c.Node, About: c,
		Headers: append(c.DeadLetterHeaders(), processors.Header{Key: processors.HeaderDroppedReason, Value: []byte(reason)}),
	})
	if err != nil {
		return &fatalError{fmt.Errorf("ledger of dropped records: %w", err)}
	}
	return nil
}

// takeLedgerErr gives the error that entering records has met, once.
func (t *Task) takeLedgerErr() error {
	err := t.ledgerErr
	t.ledgerErr = nil
	return err
}
