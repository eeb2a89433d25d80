package txn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Config says what a producer is.
type Config struct {
	// Client are the options for reaching the cluster.
	Client []kgo.Opt
	// TransactionalID names the producer for ever: a new one with the same id fences the old one. Empty makes a producer
	// without transactions, for at-least-once.
	TransactionalID string
	// Timeout is how long a transaction may stay open before the coordinator aborts it. It bounds how long readers, and an
	// instance that takes over, wait for a dead one.
	Timeout time.Duration
	// Records and Bytes bound what is on its way to the brokers; who produces more waits. 0: the client's own bound for Records, none for Bytes.
	// kgo.MaxBufferedRecords in Client goes before Records.
	Records, Bytes int
	Logger         *slog.Logger
}

// Producer produces records in transactions. Many goroutines may produce at once, each with a Hand of its own; the other methods
// are called by one at a time, while none produces.
type Producer struct {
	cfg    Config
	client *kgo.Client
	shown  atomic.Pointer[kgo.Client] // the same, to Waiting
	// implicit is whether the cluster runs transactions of version 2 (KIP-890): requests add themselves to the transaction,
	// and each end gives a new epoch.
	implicit bool
	written  int64 // records of the last Commit
	fates    fates

	mu      sync.Mutex // guards the beginning of a transaction
	current atomic.Pointer[transaction]
	spares  spares
}

// transaction is what is known of the open transaction. A record's acknowledgement finds it by its entry, so one that comes late
// can't be taken for that of a later transaction.
type transaction struct {
	began   time.Time
	written atomic.Int64 // records acknowledged. Acknowledgements come one after the other: workers that counted would wait for one another

	mu      sync.Mutex
	err     error // the first that a record met
	refused []Refused
}

// End follows how far records got into a partition: the offset behind the last one acknowledged.
type End struct{ next atomic.Int64 }

// Next is the offset behind the last record, 0 if there was none. It is complete once the transaction is committed.
func (e *End) Next() int64 { return e.next.Load() }

// Reached notes that there is a record at an offset.
func (e *End) Reached(offset int64) {
	for {
		old := e.next.Load()
		if old > offset || e.next.CompareAndSwap(old, offset+1) {
			return
		}
	}
}

// New makes a producer. Nothing is sent before Reset.
func New(cfg Config) *Producer {
	return &Producer{cfg: cfg}
}

// Reset starts the producer anew, at first as well as after any outcome but Committed: whatever this transactional id has open is
// ended by the coordinator, and older producers of the same id are fenced. It retries until ctx ends.
func (p *Producer) Reset(ctx context.Context) error {
	p.Close()
	var opts []kgo.Opt
	if p.cfg.Records > 0 {
		opts = append(opts, kgo.MaxBufferedRecords(p.cfg.Records))
	}
	opts = append(opts, p.cfg.Client...)
	opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if p.cfg.TransactionalID != "" {
		opts = append(opts, kgo.TransactionalID(p.cfg.TransactionalID), kgo.TransactionTimeout(p.cfg.Timeout))
	}
	if p.cfg.Bytes > 0 {
		opts = append(opts, kgo.MaxBufferedBytes(p.cfg.Bytes))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return fmt.Errorf("producer: %w", err)
	}
	p.client = client
	p.shown.Store(client)
	if err := p.init(ctx); err != nil {
		return fmt.Errorf("producer %s: %w", p.cfg.TransactionalID, err)
	}
	return nil
}

func (p *Producer) init(ctx context.Context) error {
	if p.cfg.TransactionalID == "" {
		return nil
	}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := p.identify(ctx)
		if err == nil {
			return nil
		}
		if permanent(err) {
			return err
		}
		p.cfg.Logger.Warn("producer can't be initialized yet", "transactional_id", p.cfg.TransactionalID, "error", err)
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}

// identify learns which protocol of transactions the cluster runs, and how the last one ended, and gets the producer id and epoch.
func (p *Producer) identify(ctx context.Context) error {
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, p.client)
	if err != nil {
		return fmt.Errorf("ask for the cluster's features: %w", err)
	}
	p.implicit = false
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "transaction.version" && f.MaxVersionLevel >= 2 {
			p.implicit = true
		}
	}
	if err := p.learnFate(ctx); err != nil {
		return err
	}
	if _, _, err := p.client.ProducerID(ctx); err != nil {
		return fmt.Errorf("get producer id: %w", err)
	}
	return nil
}

// Close drops what is open, without ending it, and releases the client.
func (p *Producer) Close() {
	p.current.Store(nil)
	if p.client != nil {
		p.shown.Store(nil)
		p.client.Close()
		p.client = nil
	}
}

// Header is a record's header.
type Header = kgo.RecordHeader

// Record is a record to produce. Its bytes must stay as they are until the transaction ends.
type Record struct {
	Topic      string
	Partition  int32
	Key, Value []byte // nil is null
	Timestamp  int64  // ms
	Headers    []Header
	// End, if not nil, is told the record's offset.
	End *End
}

func (p *Producer) begin() (*transaction, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.current.Load(); t != nil {
		return t, nil
	}
	if p.cfg.TransactionalID != "" {
		if err := p.client.BeginTransaction(); err != nil {
			return nil, fmt.Errorf("begin transaction: %w", err)
		}
	}
	p.fates.begun(p.implicit)
	t := &transaction{began: time.Now()}
	p.current.Store(t)
	return t, nil
}

func (t *transaction) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
}

func (t *transaction) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Open tells since when a transaction is open; ok is false if none is. One that is open has a record, as it begins with one.
func (p *Producer) Open() (since time.Time, ok bool) {
	t := p.current.Load()
	if t == nil {
		return time.Time{}, false
	}
	return t.began, true
}

// Err is the error that the first failing record of the open transaction met, if any: it can't be committed any more.
func (p *Producer) Err() error {
	if t := p.current.Load(); t != nil {
		return t.failed()
	}
	return nil
}

// Waiting tells whether a hand waits for room, and how many records of the open transaction brokers have taken. Any goroutine may ask.
func (p *Producer) Waiting() (taken int64, waiting bool) {
	if t := p.current.Load(); t != nil {
		taken = t.written.Load()
	}
	client := p.shown.Load()
	if client == nil {
		return taken, false
	}
	records, _ := client.OptValue(kgo.MaxBufferedRecords).(int64)
	bytes, _ := client.OptValue(kgo.MaxBufferedBytes).(int64)
	// The client counts those that wait, too.
	return taken, client.BufferedProduceRecords() > records || bytes > 0 && client.BufferedProduceBytes() > bytes
}
