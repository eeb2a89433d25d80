package engine

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/filelimit"
)

// outages counts the attempts to reach a broker that failed, of all clients of the instance: a broker that was killed, and is away for a moment.
// One that comes back may take a transaction for ended whose end it hasn't marked, even one of which it has said that it is committed: see
// txn.Producer.Settle. As long as the application has nothing new to do, nothing would fail, and what was committed would never be read.
type outages struct {
	failed  atomic.Int64
	settled atomic.Int64 // of failed, those before the last look
	next    time.Time    // look no earlier; the conductor's own

	log     *slog.Logger
	noFiles filelimit.Notice
}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (o *outages) OnBrokerConnect(to kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil {
		return
	}
	o.failed.Add(1)
	if filelimit.Reached(err) && o.noFiles.Due() {
		o.log.Error("a broker can't be reached for want of a connection, which is tried again", "broker", net.JoinHostPort(to.Host, itoa(to.Port)), "error", filelimit.Explain(err))
	}
}

const (
	outagePatience = 2 * time.Second // for brokers' answers, while no task runs
	outagePause    = 5 * time.Second // until the next look: a broker may be away for hours
)

// settleAfterOutage ends what brokers have left open that were away since the last look. An open transaction is ended first. The gate must be closed.
func (e *Engine) settleAfterOutage() error {
	o := &e.outages
	if o.failed.Load() == o.settled.Load() || e.cfg.clock().Before(o.next) || e.closing.Load() || e.cfg.guarantee != ExactlyOnce {
		return nil
	}
	if _, open := e.producer.Open(); open {
		return nil
	}
	ctx, cancel := context.WithTimeout(e.life, outagePatience)
	defer cancel()
	defer func() { o.next = e.cfg.clock().Add(outagePause) }()
	err := e.producer.AwaitMarks(ctx)
	if err == nil {
		var found txn.Leftover
		if found, err = e.settle(ctx); err != nil && found.Any() {
			return e.resetProducer(e.life, e.showTrouble)
		}
	}
	if err != nil {
		e.log.Debug("whether brokers that were away left a transaction open isn't known yet", "error", err)
	}
	return nil
}
