package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/child"
)

// roleName is what an instance is called in child.Main.
const roleName = "chaos-instance"

// Instance is the role of an instance, for child.Main.
func Instance() map[string]child.Role { return map[string]child.Role{roleName: child.As(serve)} }

// instanceArgs are what an instance is told.
type instanceArgs struct {
	Brokers     []string
	State, Lake string
	HTTP        string
	Guarantee   engine.Guarantee
	Setup       Setup
	Debug       bool
}

// sessionTimeout of the instances; to be stopped for longer means to be thrown out.
const sessionTimeout = 4 * time.Second

func serve(ctx context.Context, args instanceArgs) error {
	p, err := plan(args.Lake)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if args.Debug {
		level = slog.LevelDebug
	}
	opts := append(args.Setup.options(),
		engine.Brokers(args.Brokers...), engine.StateDir(args.State), engine.Processing(args.Guarantee),
		engine.SessionTimeout(sessionTimeout), engine.RebalanceTimeout(8*time.Second), engine.TransactionTimeout(6*time.Second),
		engine.PurgeInterval(5*time.Second), engine.CleanStateAfter(20*time.Second),
		engine.Lake(engine.LakeBatches{Every: 2 * time.Second}),
		engine.HTTP(args.HTTP), engine.Queries(),
		engine.Logger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))))
	e, err := engine.New(p, opts...)
	if err != nil {
		return err
	}
	if err = e.Run(ctx); lackedBrokers(err) {
		return fmt.Errorf("%s: %w", brokersLacked, err)
	}
	return err
}

// brokersLacked begins what an instance says last if brokers that are away explain that it closed without its last commit. Whether they were, the weather
// knows.
const brokersLacked = "brokers didn't do what they were asked"

// lackedBrokers tells whether an instance has closed without its last commit since brokers weren't there: they couldn't be reached, gave no answer in time, or
// had given up a transaction or a membership meanwhile.
func lackedBrokers(err error) bool {
	var uncommitted *engine.UncommittedError
	if !errors.As(err, &uncommitted) {
		return false
	}
	cause := uncommitted.Err
	for _, away := range []error{context.DeadlineExceeded, context.Canceled, io.EOF, net.ErrClosed, kgo.ErrRecordTimeout, kgo.ErrRecordRetries, kgo.ErrAborting,
		kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping, kerr.InvalidTxnState, kerr.TransactionAbortable,
		kerr.UnknownMemberID, kerr.IllegalGeneration} {
		if errors.Is(cause, away) {
			return true
		}
	}
	var network net.Error
	var answer *kerr.Error
	return errors.As(cause, &network) || errors.As(cause, &answer) && answer.Retriable
}
