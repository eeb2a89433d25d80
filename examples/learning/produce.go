package learning

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Record is a record of one of the two topics, as it is written.
type Record struct {
	Topic string
	Key   *string // nil for a null key
	Value []byte
}

// Validate judges a record by the validator of its topic.
func (r *Record) Validate() error {
	var err error
	switch r.Topic {
	case ProgressTopic:
		_, err = ParseProgress(r.Key, r.Value)
	case EnrollmentTopic:
		_, err = ParseEnrollment(r.Key, r.Value)
	default:
		err = fmt.Errorf("no producer writes to topic %q", r.Topic)
	}
	return err
}

// Producer writes to the platform's topics. A record counts as written when two replicas have it (acks=all, min.insync.replicas=2), and is
// written once even where a reply is lost (idempotence).
type Producer struct {
	client *kgo.Client
	// Unchecked lets records through that the validator rejects: as producers do that don't use it.
	Unchecked bool
}

// NewProducer connects a producer. Close it.
func NewProducer(brokers []string, client ...kgo.Opt) (*Producer, error) {
	opts := append(clientOptions(brokers, client), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.UnknownTopicRetries(-1), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	c, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("producer: %w", err)
	}
	return &Producer{client: c}, nil
}

// Produce writes records in order and returns when all are acknowledged. Those that the validator rejects are not written; the error has a
// Rejection for each of them, and what else failed.
func (p *Producer) Produce(ctx context.Context, records ...Record) error {
	var errs []error
	failed := make(chan error, len(records))
	for i := range records {
		r := &records[i]
		if err := r.Validate(); err != nil && !p.Unchecked {
			errs = append(errs, fmt.Errorf("record %d: %w", i, err))
			continue
		}
		out := &kgo.Record{Topic: r.Topic, Value: r.Value}
		if r.Key != nil {
			out.Key = []byte(*r.Key)
		}
		p.client.Produce(ctx, out, func(_ *kgo.Record, err error) {
			if err != nil {
				failed <- fmt.Errorf("record %d: %w", i, err)
			}
		})
	}
	if err := p.client.Flush(ctx); err != nil {
		errs = append(errs, err)
	}
	close(failed)
	for err := range failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Client is the producer's connection, for administration.
func (p *Producer) Client() *kgo.Client { return p.client }

// Close disconnects.
func (p *Producer) Close() { p.client.Close() }
