package txn

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// IsRefusal tells that an error is about the record, not about the producer or the brokers: the same record will be refused again.
func IsRefusal(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge) || errors.Is(err, kerr.InvalidRecord) ||
		errors.Is(err, kerr.InvalidTimestamp)
}

// Fingerprint stands for the contents of a record, within this process.
type Fingerprint [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// Fingerprint of the record: of all that a broker judges.
func (r *Record) Fingerprint() Fingerprint {
	return fingerprint(r.Topic, r.Key, r.Value, r.Timestamp, r.Headers)
}

func fingerprint(topic string, key, value []byte, timestamp int64, headers []Header) (f Fingerprint) {
	for i, seed := range seeds {
		var h maphash.Hash
		h.SetSeed(seed)
		maphash.WriteComparable(&h, timestamp)
		part := func(b []byte) {
			maphash.WriteComparable(&h, b == nil)
			maphash.WriteComparable(&h, len(b))
			h.Write(b)
		}
		part([]byte(topic))
		part(key)
		part(value)
		for _, hd := range headers {
			part([]byte(hd.Key))
			part(hd.Value)
		}
		f[i] = h.Sum64()
	}
	return f
}

// Refused is a record of a batch that a broker has refused for good. The answer is about the batch: where it had several records, not all of
// them need be to blame.
type Refused struct {
	Record Fingerprint
	Topic  string
	Err    error
}

// maxRefused bounds the memory for refused records of one transaction.
const maxRefused = 5000

func (t *transaction) refuse(r *kgo.Record, err error) {
	if !IsRefusal(err) {
		return
	}
	f := fingerprint(r.Topic, r.Key, r.Value, r.Timestamp.UnixMilli(), r.Headers)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.refused) < maxRefused {
		t.refused = append(t.refused, Refused{f, r.Topic, err})
	}
}

// Refused lists the records of the open transaction that were refused for good, as far as answers have come.
func (p *Producer) Refused() []Refused {
	t := p.current.Load()
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refused[:len(t.refused):len(t.refused)]
}

// Flush waits until all records so far are answered. Unlike the other methods it may be called while others produce.
func (p *Producer) Flush(ctx context.Context) error {
	if err := p.client.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}
