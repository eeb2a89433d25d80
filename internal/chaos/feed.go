package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	customerCount = 200
	regionCount   = 20
)

// feed produces the application's input. What it produces depends on the seed and on the pace only; how much of it, on the time it has.
type feed struct {
	client *kgo.Client
	rnd    *rand.Rand
	start  time.Time // of event time
	pace   int       // orders in a second
	recent []order   // a few of the last events, to be repeated and paid

	mu   sync.Mutex
	sent int64 // records that the brokers have
	err  error // the first failure
}

// newFeed makes a feed whose event time begins timeBack before now.
func newFeed(brokers []string, seed uint64, pace int, now time.Time) (*feed, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ProducerLinger(20*time.Millisecond),
		kgo.UnknownTopicRetries(-1), kgo.MaxBufferedRecords(50_000))
	if err != nil {
		return nil, err
	}
	return &feed{client: client, rnd: rand.New(rand.NewPCG(seed, 1)), start: now.Add(-timeBack).Truncate(windowSize), pace: pace}, nil
}

func (f *feed) close() { f.client.Close() }

// customers produces the table.
func (f *feed) customers(ctx context.Context) error {
	for i := range customerCount {
		f.produce(ctx, customerTopic, customerOf(i), customer{Region: regionOf(f.rnd.IntN(regionCount))}, f.start.Add(-time.Hour))
	}
	return f.flush(ctx)
}

func customerOf(i int) string { return fmt.Sprintf("c%03d", i) }
func regionOf(i int) string   { return fmt.Sprintf("r%02d", i) }

// run produces orders and payments until ctx ends. What it has begun is then in the topics, or an error.
func (f *feed) run(ctx context.Context) error {
	const slice = 50 * time.Millisecond
	tick := time.NewTicker(slice)
	defer tick.Stop()
	whole := context.WithoutCancel(ctx)
	perSlice := max(1, f.pace*int(slice)/int(time.Second))
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return f.flush(whole)
		case <-tick.C:
			for range perSlice {
				f.step(whole, n)
				n++
			}
		}
	}
}

// step produces the n-th order, sometimes a repetition of an old one, and sometimes a payment.
func (f *feed) step(ctx context.Context, n int) {
	at := f.start.Add(time.Duration(n)*time.Second/time.Duration(f.pace) + time.Duration(f.rnd.IntN(40_000)-20_000)*time.Millisecond)
	o := order{
		ID: fmt.Sprintf("e%08d", n), Order: fmt.Sprintf("o%07d", n/2), Customer: customerOf(f.rnd.IntN(customerCount)), Cents: 1 + f.rnd.Int64N(10_000),
	}
	f.produce(ctx, orderTopic, o.Customer, o, at)
	if len(f.recent) < 2000 {
		f.recent = append(f.recent, o)
	} else {
		f.recent[f.rnd.IntN(len(f.recent))] = o
	}
	old := f.recent[f.rnd.IntN(len(f.recent))]
	switch draw := f.rnd.IntN(10); {
	case draw == 0:
		f.produce(ctx, orderTopic, old.Customer, old, at)
	case draw < 5:
		f.produce(ctx, paymentTopic, old.Order, payment{ID: fmt.Sprintf("p%08d", n), Order: old.Order, Cents: 1 + f.rnd.Int64N(100)}, at)
	}
}

// closing produces an order for each customer, so late that all windows of before are over in every partition of every topic. All that was
// produced before must have been processed.
func (f *feed) closing(ctx context.Context) error {
	at := f.start.Add(timeBack - timeClose)
	for i := range customerCount {
		c := customerOf(i)
		f.produce(ctx, orderTopic, c, order{ID: "closing-" + c, Order: "closing-" + c, Customer: c}, at)
	}
	return f.flush(ctx)
}

// closed is the time before which windows are closed by closing.
func (f *feed) closedBefore() int64 {
	return f.start.Add(timeBack - timeClose - windowGrace).UnixMilli()
}

func (f *feed) produce(ctx context.Context, topic, key string, value any, at time.Time) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // they are plain
	}
	f.client.Produce(ctx, &kgo.Record{Topic: topic, Key: []byte(key), Value: text, Timestamp: at}, func(_ *kgo.Record, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if err == nil {
			f.sent++
		} else if f.err == nil {
			f.err = err
		}
	})
}

func (f *feed) flush(ctx context.Context) error {
	err := f.client.Flush(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		err = f.err
	}
	if err != nil {
		return fmt.Errorf("produce input: %w", err)
	}
	return nil
}
