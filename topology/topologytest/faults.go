package topologytest

import "errors"

// Op is an operation that can be made to fail.
type Op int

// The operations.
const (
	// ProduceOp is a task's writing of a record to a topic. Its failure is fatal for the task, and so for the driver.
	ProduceOp Op = iota
	// CommitOp is the commit of the transaction. The driver does what the engine does: it drops the transaction, goes back to the last
	// commit and goes on.
	CommitOp
	// CommitReplyOp lets the commit land and loses the reply. The driver finds out from the committed offsets and goes on.
	CommitReplyOp
	// LakeOp is the commit of a table. The batch is dropped and its input read again.
	LakeOp

	opCount
)

func (op Op) String() string {
	return [...]string{"produce", "commit", "commit reply", "lake commit"}[op]
}

// FailNext makes the next operation of a kind fail with err. Several failures of one kind queue up.
func (d *Driver) FailNext(op Op, err error) {
	if err == nil {
		err = errors.New("injected failure: " + op.String())
	}
	d.noteError(d.commitPromptly())
	d.failures[op] = append(d.failures[op], err)
}

// failure takes the next failure of a kind, nil if there is none.
func (d *Driver) failure(op Op) error {
	queue := d.failures[op]
	if len(queue) == 0 {
		return nil
	}
	d.failures[op] = queue[1:]
	return queue[0]
}
