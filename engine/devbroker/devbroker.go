package devbroker

import (
	"log/slog"

	"github.com/tributary-io/tributary/internal/embedded"
)

// Config says how a broker runs. The zero value is one in memory on a free port.
type Config struct {
	// Dir keeps topics, groups and transactions over restarts: what was acknowledged survives kill -9, and transactions that were open are aborted. Only one that
	// is just being committed may then be left committed in some partitions and aborted in the others. Empty means in memory. One process at a time may use it.
	Dir string
	// Port on 127.0.0.1; 0 is a free one.
	Port int
	// Logger gets the broker's warnings. Nil means slog.Default.
	Logger *slog.Logger
}

// Broker is a running broker. Its methods may be called concurrently.
type Broker struct{ inner *embedded.Broker }

// Start starts a broker. Close it.
func Start(cfg Config) (*Broker, error) {
	c := embedded.BrokerConfig{Dir: cfg.Dir, Logger: cfg.Logger}
	if cfg.Port != 0 {
		c.Ports = []int{cfg.Port}
	}
	b, err := embedded.StartBroker(c)
	if err != nil {
		return nil, err
	}
	return &Broker{b}, nil
}

// Addrs are the addresses for clients, host:port.
func (b *Broker) Addrs() []string { return b.inner.Addrs() }

// Close stops the broker. Everything acknowledged is in its directory, if it has one.
func (b *Broker) Close() error { return b.inner.Close() }
