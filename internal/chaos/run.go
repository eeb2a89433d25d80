package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/realkafka"
)

const (
	brokerCount   = 3
	instanceCount = 3 // and an extra one
	partitions    = 6
	stopLimit     = 45 * time.Second // for an instance to close in order
)

// Config is what a run is told.
type Config struct {
	// Dir is for logs, state and the lake. What is there afterwards is the caller's.
	Dir string
	// Seed chooses the input, the weather and how instances share their tasks.
	Seed uint64
	// Duration is how long the weather lasts; starting, settling and closing the books come on top.
	Duration time.Duration
	// Pace is the number of orders a second. About half as many payments come with them.
	Pace int
	// Settle bounds how long the application may take to process what is left once all is well.
	Settle    time.Duration
	Guarantee engine.Guarantee
	// NoZombies leaves out the stopping of instances beyond their session.
	NoZombies bool
	Log       *slog.Logger
}

// world is a run in progress.
type world struct {
	cfg       *Config
	setup     Setup
	kafka     *realkafka.Cluster
	admin     *kadm.Client
	feed      *feed
	instances []*child.Process
	http      []string // of the instances
	inputs    []string // topics that the application reads
}

// Run makes weather for a while, and closes the books. The cluster is the run's alone. An error says that it could not be carried through;
// what is wrong with the results is in the report.
func Run(ctx context.Context, cfg Config, kafka *realkafka.Cluster) (*Report, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addrs()...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	w := &world{cfg: &cfg, setup: drawSetup(cfg.Seed), kafka: kafka, admin: kadm.NewClient(client)}
	report := &Report{Seed: cfg.Seed, Setup: w.setup, Duration: cfg.Duration, Guarantee: cfg.Guarantee}
	err = w.run(ctx, report)
	for _, p := range w.instances {
		p.Kill()
	}
	return report, err
}

func (w *world) run(ctx context.Context, report *Report) (err error) {
	if w.feed, err = newFeed(w.kafka.Addrs(), w.cfg.Seed, w.cfg.Pace, time.Now()); err != nil {
		return err
	}
	defer w.feed.close()
	if err := w.prepare(ctx); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	sky := newWeather(w.cfg.Seed, w.cfg, w.kafka, w.instances)
	if err := w.storm(ctx, sky); err != nil {
		return err
	}
	sky.revive()
	report.weather(sky)
	w.cfg.Log.Info("the weather is over", "produced", w.feed.sent)
	calm := time.Now()
	if err := w.settle(ctx); err != nil {
		return err
	}
	if err := w.feed.closing(ctx); err != nil {
		return err
	}
	if err := w.instances[w.feed.rnd.IntN(instanceCount)].Restart(); err != nil { // once more, with a kill, in the middle of closing windows
		return err
	}
	if err := w.settle(ctx); err != nil {
		return err
	}
	report.Settled = time.Since(calm)
	return w.audit(ctx, sky, report)
}

// prepare makes topics and the table of customers, and starts the instances.
func (w *world) prepare(ctx context.Context) error {
	p, err := plan(w.lake())
	if err != nil {
		return err
	}
	for topic, config := range map[string]map[string]*string{
		orderTopic: nil, paymentTopic: nil, customerTopic: {"cleanup.policy": new("compact")}, paidTopic: nil, totalTopic: nil, closedTopic: nil,
	} {
		if _, err := w.admin.CreateTopic(ctx, partitions, brokerCount, config, topic); err != nil {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	for _, sub := range p.Internal().Subtopologies {
		w.inputs = append(w.inputs, sub.SourceTopics...)
	}
	slices.Sort(w.inputs)
	w.inputs = slices.Compact(w.inputs)
	if err := w.feed.customers(ctx); err != nil {
		return err
	}
	for i := range instanceCount + 1 {
		if err := w.startInstance(i); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) lake() string { return filepath.Join(w.cfg.Dir, "lake") }

func (w *world) startInstance(i int) error {
	dir := filepath.Join(w.cfg.Dir, fmt.Sprint("instance-", i))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	ports, err := child.FreePorts(1)
	if err != nil {
		return err
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	p, err := child.Start(roleName, instanceArgs{
		Brokers: w.kafka.Addrs(), State: dir, Lake: w.lake(), HTTP: addr, Guarantee: w.cfg.Guarantee, Setup: w.setup,
	}, dir+".log")
	if err != nil {
		return err
	}
	w.instances, w.http = append(w.instances, p), append(w.http, addr)
	return nil
}

// storm feeds the application in bad weather, until all is well again.
func (w *world) storm(ctx context.Context, sky *weather) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Duration)
	defer cancel()
	fed := make(chan error, 1)
	go func() { fed <- w.feed.run(ctx) }()
	go w.progress(ctx)
	sky.blow(ctx)
	return <-fed
}

// progress tells now and then how it goes.
func (w *world) progress(ctx context.Context) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			lag, err := w.lag(ctx)
			w.feed.mu.Lock()
			sent := w.feed.sent
			w.feed.mu.Unlock()
			w.cfg.Log.Info("under way", "produced", sent, "lag", lag, "error", err)
		}
	}
}

// settle waits until all is processed and committed: no lag for a while.
func (w *world) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Settle)
	defer cancel()
	for quiet := 0; quiet < 8; quiet++ {
		lag, err := w.lag(ctx)
		if lag > 0 || err != nil {
			quiet = 0
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("not settled within %v: a lag of %d is left", w.cfg.Settle, lag), err)
		case <-time.After(300 * time.Millisecond):
		}
	}
	return nil
}

// lag is how many offsets of the application's inputs are not committed.
func (w *world) lag(ctx context.Context) (lag int64, err error) {
	ends, err := w.admin.ListCommittedOffsets(ctx, w.inputs...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, err
	}
	committed, err := w.admin.FetchOffsets(ctx, applicationID)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return 0, err
	}
	ends.Each(func(o kadm.ListedOffset) {
		at, _ := committed.Lookup(o.Topic, o.Partition)
		lag += max(0, o.Offset-max(0, at.At))
	})
	return lag, nil
}

// audit closes the instances and the books.
func (w *world) audit(ctx context.Context, sky *weather, report *Report) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	m, err := readModel(ctx, w.kafka.Addrs(), w.feed.closedBefore())
	if err != nil {
		return err
	}
	report.model(m)
	asked, err := storeBook(ctx, w.http[0], m)
	if err != nil {
		return err
	}
	for i, p := range w.instances {
		if !p.Running() {
			report.Failures = append(report.Failures, fmt.Errorf("instance %d has ended by itself", i))
		} else if err := sky.close(p); err != nil {
			report.Failures = append(report.Failures, fmt.Errorf("closing instance %d: %w", i, err))
		}
	}
	books, err := closeBooks(ctx, w.kafka.Addrs(), w.lake(), m)
	report.Books = append(books, asked)
	return err
}
