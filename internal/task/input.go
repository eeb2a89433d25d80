package task

import "github.com/tributary-io/tributary/processors"

// Input is one input partition of a task, for a host that adds records one at a time and wants to look neither the input nor its position
// up for each. It is valid as long as the task. The zero Input is none.
type Input struct {
	task  *Task
	queue *queue
}

// Input finds the input of a partition; ok is false if the task doesn't read it.
func (t *Task) Input(tp TopicPartition) (in Input, ok bool) {
	q := t.byTP[tp]
	return Input{t, q}, q != nil
}

// Slot gives an empty record to be filled in place. Filled then does with it what Task.Add does with one record; nothing must come between the two. The
// record's bytes must never change.
func (in Input) Slot() *processors.RawRecord { return in.queue.slot() }

// Filled adds the record that Slot gave. position is as for Task.Add.
func (in Input) Filled(record *processors.RawRecord, position int64) {
	q := in.queue
	if q.n == 0 {
		in.task.waiting = append(in.task.waiting, q)
	}
	q.filled(record)
	q.position = max(q.position, position)
}

// Progress gives what Task.Positions says of this input: the next offset to read, -1 if nothing was read yet, and the largest event time seen.
func (in Input) Progress() (offset, partitionTime int64) {
	return in.queue.next(), in.queue.partitionTime
}
