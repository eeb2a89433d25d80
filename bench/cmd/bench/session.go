package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/bench/internal/input"
	"github.com/tributary-io/tributary/internal/realkafka"
)

// seed of the input.
const seed = 1

// session is a broker with its input, and a directory for what runs leave behind.
type session struct {
	opts    options
	cluster *realkafka.Cluster // nil where no workload needs one
	client  *kgo.Client
	dir     string
	runs    int
}

// begin starts what the workloads need.
func begin(ctx context.Context, o options) (*session, error) {
	dir, err := os.MkdirTemp("", "tributary-bench-")
	if err != nil {
		return nil, err
	}
	s := &session{opts: o, dir: dir}
	if slices.Equal(o.workloads, []string{"g"}) {
		return s, nil
	}
	if err := s.startBroker(ctx); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// beginEmpty starts brokers without an input.
func beginEmpty(o options, brokers int) (*session, error) {
	dir, err := os.MkdirTemp("", "tributary-bench-")
	if err != nil {
		return nil, err
	}
	s := &session{opts: o, dir: dir}
	if err := s.startBrokers(brokers); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

func (s *session) startBrokers(n int) (err error) {
	say("starting Kafka %s", realkafka.Version())
	// Event times lie in the past: retention must not take the input.
	settings := map[string]string{"log.retention.ms": "-1", "log.retention.check.interval.ms": "86400000"}
	if s.cluster, err = realkafka.Launch(n, []string{"-Xmx" + s.opts.heap}, settings); err != nil {
		return err
	}
	s.client, err = kgo.NewClient(kgo.SeedBrokers(s.cluster.Addrs()...))
	return err
}

func (s *session) startBroker(ctx context.Context) error {
	if err := s.startBrokers(1); err != nil {
		return err
	}
	began := time.Now()
	if err := input.Produce(ctx, s.cluster.Addrs(), s.opts.records, s.opts.keys, seed); err != nil {
		return err
	}
	say("wrote 2 x %d records in %.1f s", s.opts.records, time.Since(began).Seconds())
	return nil
}

// end stops the broker and removes the session's files.
func (s *session) end() error {
	var errs []error
	if s.client != nil {
		s.client.Close()
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// application makes a name for a run's application.
func (s *session) application(who, workload string) string {
	s.runs++
	return fmt.Sprintf("%s-%s-%d", who, workload, s.runs)
}

// cleanUp removes an application's topics, group and state.
func (s *session) cleanUp(ctx context.Context, application string) error {
	admin := kadm.NewClient(s.client)
	all, err := admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("clean up after %s: %w", application, err)
	}
	var mine []string
	for _, name := range all.Names() {
		if strings.HasPrefix(name, application) {
			mine = append(mine, name)
		}
	}
	if _, err := admin.DeleteTopics(ctx, mine...); err != nil {
		return fmt.Errorf("clean up after %s: %w", application, err)
	}
	_, _ = admin.DeleteGroups(ctx, application) // may be gone already
	return os.RemoveAll(s.stateDir(application))
}

func (s *session) stateDir(application string) string { return filepath.Join(s.dir, application) }

func (s *session) brokers() string {
	if s.cluster == nil {
		return ""
	}
	return strings.Join(s.cluster.Addrs(), ",")
}

func (s *session) brokerPID() string {
	if s.cluster == nil {
		return ""
	}
	return strconv.Itoa(s.cluster.Pid(1))
}

// brokerData is where the peers' program looks for the sizes of changelogs.
func (s *session) brokerData() string { return filepath.Join(s.cluster.Dir(), "n1", "data") }

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
