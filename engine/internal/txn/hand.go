package txn

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Hand produces records, for one goroutine at a time. It keeps some entries for itself, so that those who produce at the same time don't wait for one
// another to get one.
type Hand struct {
	p    *Producer
	free *entry
}

// Hand makes a hand. It needs no closing, and goes on being of use after Reset.
func (p *Producer) Hand() *Hand { return &Hand{p: p} }

// Produce sends a record to its partition, beginning a transaction where none is open. It may block while many records are in
// flight. Failures show at Commit, and as soon as they are known in Err.
func (h *Hand) Produce(ctx context.Context, r Record) error {
	p := h.p
	t := p.current.Load()
	if t == nil {
		var err error
		if t, err = p.begin(); err != nil {
			return err
		}
	}
	e := h.take()
	to := &e.record // empty: a record of 200 bytes isn't copied for a few fields
	to.Topic, to.Partition, to.Key, to.Value, to.Headers = r.Topic, r.Partition, r.Key, r.Value, r.Headers
	to.Timestamp = time.UnixMilli(r.Timestamp)
	e.txn, e.end = t, r.End
	p.client.Produce(ctx, &e.record, e.promise)
	return nil
}

func (h *Hand) take() *entry {
	if h.free == nil {
		h.free = h.p.spares.take()
	}
	e := h.free
	h.free, e.next = e.next, nil
	return e
}

// entry is a record on its way, and what its acknowledgement needs. Entries are reused.
type entry struct {
	record  kgo.Record
	promise func(*kgo.Record, error) // acknowledged, bound once
	spares  *spares
	txn     *transaction
	end     *End
	next    *entry // in a chain of entries that aren't used
}

func (e *entry) acknowledged(r *kgo.Record, err error) {
	switch {
	case err != nil:
		e.txn.fail(&ProduceError{Topic: r.Topic, Partition: r.Partition, Err: err})
		e.txn.refuse(r, err)
	default:
		e.txn.written.Add(1)
		if e.end != nil {
			e.end.Reached(r.Offset)
		}
	}
	e.txn, e.end, e.record = nil, nil, kgo.Record{}
	e.spares.put(e)
}

// spares are the entries that aren't used. They come back one by one, on the goroutine of the acknowledgements, and go to hands in chains. A sync.Pool
// would look for each in the other processors' parts, as what it is given always comes from another than the one that asks.
type spares struct {
	mu     sync.Mutex
	begun  *entry // a chain that isn't long enough yet
	length int    // of it
	chains []*entry
}

// chainLength is how many entries a hand takes at once.
const chainLength = 128

func (s *spares) put(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.next = s.begun
	s.begun = e
	if s.length++; s.length == chainLength {
		s.chains = append(s.chains, s.begun)
		s.begun, s.length = nil, 0
	}
}

// take gives at least one entry.
func (s *spares) take() *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.chains) - 1; last >= 0 {
		chain := s.chains[last]
		s.chains[last] = nil
		s.chains = s.chains[:last]
		return chain
	}
	if chain := s.begun; chain != nil {
		s.begun, s.length = nil, 0
		return chain
	}
	e := &entry{spares: s}
	e.promise = e.acknowledged
	return e
}

// trim lets go of all but about so many entries.
func (s *spares) trim(keep int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if most := int(keep/chainLength) + 1; len(s.chains) > most {
		clear(s.chains[most:])
		s.chains = s.chains[:most]
	}
}
