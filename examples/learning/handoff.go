package learning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/lake/jsonl"
	"github.com/tributary-io/tributary/lake/sink"
)

// asOfHour is when a day's input counts as being there: at 02:00 UTC of the next day.
const asOfHour = 2

// readyHour is until when a day must be complete: 06:00 UTC of the next day.
const readyHour = 6

// AsOf is the moment whose end offsets a day must have landed through.
func AsOf(day time.Time) time.Time { return midnight(day).AddDate(0, 0, 1).Add(asOfHour * time.Hour) }

// ReadyBy is when a day must be ready.
func ReadyBy(day time.Time) time.Time {
	return midnight(day).AddDate(0, 0, 1).Add(readyHour * time.Hour)
}

func midnight(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// Handoff says whether the landing has all that the topic had at a moment, partition by partition.
type Handoff struct {
	AsOf       time.Time
	Partitions []PartitionHandoff
}

// PartitionHandoff compares a partition of the topic with its landing.
type PartitionHandoff struct {
	Partition int32 `json:"partition"`
	// Required is the end offset as of the moment: the offset of the first record that was appended then or later.
	Required int64 `json:"required"`
	// Landed is where the landing goes on, by its manifests. Rejects and recorded gaps count as landed.
	Landed int64 `json:"landed"`
	// Largest is the greatest offset of a line, -1 for none. It says nothing about completeness: rejects may be behind it.
	Largest int64       `json:"largest"`
	Rejects int64       `json:"rejects"`
	Gaps    []jsonl.Gap `json:"gaps,omitempty"`
}

// Complete tells whether the partition has landed through what is required.
func (p *PartitionHandoff) Complete() bool { return p.Landed >= p.Required }

// IncompleteError says what a day waits for.
type IncompleteError struct{ Handoff Handoff }

func (e *IncompleteError) Error() string {
	var behind []string
	for _, p := range e.Handoff.Partitions {
		if !p.Complete() {
			behind = append(behind, fmt.Sprintf("partition %d has landed through offset %d of %d", p.Partition, p.Landed-1, p.Required-1))
		}
	}
	return fmt.Sprintf("not complete as of %s: %s", e.Handoff.AsOf.UTC().Format(time.RFC3339), strings.Join(behind, ", "))
}

// Err is nil if all partitions are complete, else an *IncompleteError.
func (h *Handoff) Err() error {
	for i := range h.Partitions {
		if !h.Partitions[i].Complete() {
			return &IncompleteError{*h}
		}
	}
	return nil
}

// String is one line for each partition.
func (h *Handoff) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s as of %s\n", ProgressTopic, h.AsOf.UTC().Format(time.RFC3339))
	for _, p := range h.Partitions {
		state := "complete"
		if !p.Complete() {
			state = "INCOMPLETE"
		}
		fmt.Fprintf(&out, "  partition %d  end offset %d  landed to %d  largest offset %d  rejects %d  gaps %v  %s\n", p.Partition, p.Required, p.Landed, p.Largest, p.Rejects, p.Gaps, state)
	}
	return out.String()
}

// CheckHandoff asks the brokers for the end offsets as of a moment, by the append time that they have stamped, and compares them with the
// manifests of the landing below the lake.
func CheckHandoff(ctx context.Context, client *kgo.Client, lake string, asOf time.Time) (*Handoff, error) {
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(ctx, ProgressTopic)
	if err == nil {
		err = topics.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("handoff: look at %s: %w", ProgressTopic, err)
	}
	ends, err := admin.ListOffsetsAfterMilli(ctx, asOf.UnixMilli(), ProgressTopic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("handoff: end offsets of %s: %w", ProgressTopic, err)
	}
	landing, err := jsonl.Open(ctx, lake+"/"+RawProgress)
	if err != nil && !errors.Is(err, jsonl.ErrNoLanding) {
		return nil, err
	}
	h := &Handoff{AsOf: asOf}
	for n := range int32(len(topics[ProgressTopic].Partitions)) {
		end, _ := ends.Lookup(ProgressTopic, n)
		p := PartitionHandoff{Partition: n, Required: end.Offset, Largest: -1}
		if landing != nil {
			c, err := landing.Coverage(ctx, sink.Partition{Topic: ProgressTopic, TopicID: topics[ProgressTopic].ID, Partition: n})
			if err != nil {
				return nil, err
			}
			p.Landed, p.Largest, p.Rejects, p.Gaps = max(c.Next, 0), c.LargestOffset, c.Rejects, c.Gaps
		}
		h.Partitions = append(h.Partitions, p)
	}
	return h, nil
}

// AwaitHandoff waits until a landing is complete as of a moment, or until a deadline by the clock: then the error is an *IncompleteError.
func AwaitHandoff(ctx context.Context, client *kgo.Client, lake string, asOf, until time.Time, now func() time.Time) (*Handoff, error) {
	const pause = 5 * time.Second
	for {
		h, err := CheckHandoff(ctx, client, lake, asOf)
		if err != nil || h.Err() == nil {
			return h, err
		}
		if !now().Before(until) {
			return h, h.Err()
		}
		select {
		case <-ctx.Done():
			return h, errors.Join(ctx.Err(), h.Err())
		case <-time.After(pause):
		}
	}
}
