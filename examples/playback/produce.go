package playback

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ReadEvents reads a file of JSON Lines. A line that is no event is an error that names it.
func ReadEvents(r io.Reader) ([]Event, error) {
	var out []Event
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if e.EventID == "" || e.SessionID == "" {
			return nil, fmt.Errorf("line %d: an event needs event_id and session_id", n)
		}
		out = append(out, e)
	}
	return out, lines.Err()
}

// WriteEvents writes events as JSON Lines.
func WriteEvents(w io.Writer, events []Event) error {
	enc := json.NewEncoder(w)
	for i := range events {
		if err := enc.Encode(&events[i]); err != nil {
			return err
		}
	}
	return nil
}

// Produce sends events in order, keyed by session, and returns once the brokers have them all.
func Produce(ctx context.Context, s Settings, events []Event) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...), kgo.DefaultProduceTopic(s.Topic), kgo.UnknownTopicRetries(-1), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		return err
	}
	defer client.Close()
	var once sync.Once
	var failed error
	for i := range events {
		value, err := json.Marshal(&events[i])
		if err != nil {
			return err
		}
		r := &kgo.Record{Key: []byte(events[i].SessionID), Value: value, Timestamp: events[i].EventTime}
		client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("produce to %s: %w", s.Topic, failed)
	}
	return nil
}
