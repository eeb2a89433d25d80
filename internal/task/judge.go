package task

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
)

// Judge tells which records of a source topic a task would leave out: those without a key, those that can't be decoded, if the
// deserialization-error handler lets them go, and those without a valid event time. A table's store that is restored from its source topic must
// not have them either, since it hadn't while the task ran (KAFKA-8037). It is used by one goroutine.
//
// Without a handler the task can't have got beyond a record that can't be decoded: then only keys are looked at, unless the source has a timestamp
// extractor of its own.
type Judge struct {
	task          *Task
	queue         *queue
	partitionTime int64
	decodes       bool
}

// NewJudge makes a judge of one input. Of cfg it needs ID, Subtopologies, Handlers, Clock and Logger.
func NewJudge(cfg Config, tp TopicPartition) (*Judge, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Task{cfg: cfg, logger: cfg.Logger}
	for _, sub := range cfg.Subtopologies {
		for _, spec := range sub.Nodes {
			if spec.Kind != plan.SourceNode || !slices.Contains(spec.Topics, tp.Topic) {
				continue
			}
			n := &node{spec: spec}
			source, err := spec.Source.NewSource(newRuntime(t, n), nil)
			if err != nil {
				return nil, fmt.Errorf("task %s: node %s: %w", cfg.ID, spec.Name, err)
			}
			n.source = source
			return &Judge{
				task: t, queue: newQueue(tp, n, source.NewHead(tp.Topic)), partitionTime: processors.NoTimestamp,
				decodes: cfg.Handlers.Deserialization != nil || source.LeavesOut(),
			}, nil
		}
	}
	return nil, fmt.Errorf("task %s: internal: no source node reads topic %s", cfg.ID, tp.Topic)
}

// Keeps reports whether the record is one that the task would process. No dead letter is written: that was done when the task met the
// record. An error is the handler's "fail", or the timestamp extractor's.
func (j *Judge) Keeps(raw *processors.RawRecord) (bool, error) {
	if raw.Key == nil || !j.decodes {
		return raw.Key != nil, nil
	}
	j.queue.partitionTime = j.partitionTime
	timestamp, err := j.queue.load(raw)
	if err == nil {
		j.partitionTime = max(j.partitionTime, timestamp)
		return timestamp >= 0, nil
	}
	n := j.queue.node
	var failed *processors.DeserializationError
	if errors.As(err, &failed) {
		c := j.task.loadContext(j.queue, raw, err)
		if handler := j.task.cfg.Handlers.Deserialization; handler != nil && !handler.HandleError(c).Fail {
			return false, nil
		}
	}
	return false, fmt.Errorf("task %s: node %s: %w (a record of the source topic that the store is restored from; it was let through before: give the handler back that did so)",
		j.task.cfg.ID, n.spec.Name, err)
}
