package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tributary-io/tributary/internal/filelock"
)

// BrokerConfig says how StartBroker runs the broker. The zero value is one broker in memory on a free port.
type BrokerConfig struct {
	// Dir keeps everything over restarts. Writes are synced: what was acknowledged survives kill -9 and power loss. Empty
	// means in memory. One process at a time may use it.
	Dir string
	// Brokers is the number of brokers of the cluster, 1 if zero. All live in this process.
	Brokers int
	// Ports gives each broker its port on 127.0.0.1. Empty chooses free ports, others at each start.
	Ports []int
	// Listen is used in place of net.Listen, for a network in memory.
	Listen func(network, address string) (net.Listener, error)
	// Configs are broker configs over the package's own: see kfake.BrokerConfigs.
	Configs map[string]string
	// Logger gets the broker's warnings. Nil means slog.Default.
	Logger *slog.Logger
}

// Broker is a running embedded cluster.
type Broker struct {
	cluster *kfake.Cluster
	seen    *watched
	lock    *filelock.Lock
	stop    chan struct{} // ends retain
	stopped sync.WaitGroup
	once    sync.Once
}

// defaultConfigs keep kfake's cleaner from running: it takes the records of an open transaction for newer ones of their keys and removes those
// before them, which are then lost if the transaction is aborted (Kafka's cleans only what is settled). Compacted topics grow in an
// embedded broker; a test that needs gaps calls Cluster().Compact() while no transaction is open.
var defaultConfigs = map[string]string{
	"log.cleaner.backoff.ms":               "2147483647",
	"group.consumer.heartbeat.interval.ms": "500",
}

// StartBroker starts a cluster. Topics are never made by themselves: they are created, or they are an error. Sessions and
// transaction timeouts of clients may be as short as they like, so that tests of crashes are quick.
func StartBroker(cfg BrokerConfig) (*Broker, error) {
	if cfg.Brokers == 0 {
		cfg.Brokers = max(1, len(cfg.Ports))
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	b := &Broker{seen: newWatched()}
	opts := []kfake.Opt{
		kfake.NumBrokers(cfg.Brokers),
		kfake.GroupMinSessionTimeout(minSession),
		kfake.BrokerConfigs(configs(cfg.Configs)),
		kfake.WithLogger(brokerLogger{cfg.Logger}),
	}
	if len(cfg.Ports) > 0 {
		opts = append(opts, kfake.Ports(cfg.Ports...))
	}
	if cfg.Listen == nil {
		cfg.Listen = net.Listen
	}
	opts = append(opts, kfake.ListenFn(b.seen.watch(cfg.Listen)))
	var open map[int64][]partition // what a crash left
	if cfg.Dir != "" {
		lock, err := lockDir(cfg.Dir)
		if err != nil {
			return nil, fmt.Errorf("embedded broker: %w", err)
		}
		b.lock = lock
		if open, err = mend(filepath.Join(cfg.Dir, "kafka")); err != nil {
			return nil, errors.Join(fmt.Errorf("embedded broker: mend %s: %w", cfg.Dir, err), b.unlock())
		}
		opts = append(opts, kfake.DataDir(filepath.Join(cfg.Dir, "kafka")), kfake.SyncWrites())
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded broker: start: %w", err), b.unlock())
	}
	b.cluster = cluster
	if err := b.seen.abortOpen(cluster, open); err != nil {
		cluster.Close()
		return nil, errors.Join(fmt.Errorf("embedded broker: %w", err), b.unlock())
	}
	stampAppendTime(cluster)
	keepCompacted(cluster)
	tellAborted(cluster)
	b.seen.epochs.refuseZombies(cluster)
	b.seen.open(cluster)
	b.stop = make(chan struct{})
	b.stopped.Go(b.retain)
	return b, nil
}

// retain applies the topics' retention now and then, which kfake does only together with cleaning.
func (b *Broker) retain() {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-tick.C:
			b.cluster.ApplyRetention()
		}
	}
}

func configs(over map[string]string) map[string]string {
	all := maps.Clone(defaultConfigs)
	maps.Copy(all, over)
	return all
}

func lockDir(dir string) (*filelock.Lock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	lock, err := filelock.TryLock(filepath.Join(dir, "broker.lock"))
	if err != nil {
		return nil, fmt.Errorf("data directory %s is in use; stop the process that uses it or choose another directory: %w", dir, err)
	}
	return lock, nil
}

// Addrs are the brokers' addresses, host:port, in order of their ids.
func (b *Broker) Addrs() []string { return b.cluster.ListenAddrs() }

// Cluster is kfake's own handle, for faults in tests.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Close stops the brokers and releases the directory. Everything acknowledged is in it.
func (b *Broker) Close() error {
	b.once.Do(func() { close(b.stop) })
	b.stopped.Wait()
	b.seen.groups.close()
	b.cluster.Close()
	return b.unlock()
}

func (b *Broker) unlock() error {
	if b.lock == nil {
		return nil
	}
	return b.lock.Release()
}

// brokerLogger passes kfake's warnings and errors on.
type brokerLogger struct{ to *slog.Logger }

func (l brokerLogger) Logf(level kfake.LogLevel, msg string, args ...any) {
	switch level {
	case kfake.LogLevelError:
		l.to.Error("embedded broker: " + fmt.Sprintf(msg, args...))
	case kfake.LogLevelWarn:
		l.to.Warn("embedded broker: " + fmt.Sprintf(msg, args...))
	}
}
