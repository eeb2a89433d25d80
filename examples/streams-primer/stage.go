package primer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/topology"
)

// Stage is where a lesson is played: brokers, with topics under a name of its own, and a directory for state.
type Stage struct {
	App     App
	Lesson  *Lesson
	Brokers []string
	Dir     string
	Out     io.Writer // what happens meanwhile
	Log     *slog.Logger

	ctx    context.Context
	client *kgo.Client
	admin  *kadm.Client
}

// Play plays a lesson on brokers and returns its result. Its topics and its group are there only meanwhile.
func Play(ctx context.Context, l *Lesson, brokers []string, out io.Writer, log *slog.Logger) (result []string, err error) {
	dir, err := os.MkdirTemp("", "tributary-primer-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.UnknownTopicRetries(-1))
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	defer client.Close()
	s := &Stage{
		App: App(fmt.Sprintf("primer-%s-%d", l.Name, time.Now().UnixNano())), Lesson: l, Brokers: brokers, Dir: dir, Out: out, Log: log,
		ctx: ctx, client: client, admin: kadm.NewClient(client),
	}
	if err := s.set(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.strike()) }()
	if l.Play != nil {
		return l.Play(s)
	}
	return s.Run()
}

// set makes the topics and writes the input.
func (s *Stage) set() error {
	forever := "-1" // the records' times are in the past
	for name, partitions := range s.Lesson.Topics {
		answer, err := s.admin.CreateTopic(s.ctx, partitions, -1, map[string]*string{"retention.ms": &forever}, s.App.Topic(name))
		if err = errors.Join(err, answer.Err); err != nil {
			return fmt.Errorf("create topic %s: %w", s.App.Topic(name), err)
		}
	}
	if err := s.served(); err != nil {
		return err
	}
	for _, r := range s.Lesson.Input {
		record := &kgo.Record{Topic: s.App.Topic(r.Topic), Key: []byte(r.Key), Value: r.value(), Timestamp: time.UnixMilli(r.timestamp())}
		if err := s.client.ProduceSync(s.ctx, record).FirstErr(); err != nil {
			return fmt.Errorf("write input: %w", err)
		}
	}
	return nil
}

// served waits until the brokers know the topics.
func (s *Stage) served() error {
	var names []string
	for name := range s.Lesson.Topics {
		names = append(names, s.App.Topic(name))
	}
	for {
		ends, err := s.admin.ListEndOffsets(s.ctx, names...)
		if err == nil {
			err = ends.Error()
		}
		if err == nil {
			return nil
		}
		if !kerr.IsRetriable(err) {
			return fmt.Errorf("look at the topics: %w", err)
		}
		select {
		case <-s.ctx.Done():
			return fmt.Errorf("the topics were made, but the brokers don't serve them: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// strike removes what the lesson has left on the brokers.
func (s *Stage) strike() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), time.Minute)
	defer cancel()
	topics, err := s.admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	var mine []string
	for _, name := range topics.Names() {
		if strings.HasPrefix(name, string(s.App)+"-") {
			mine = append(mine, name)
		}
	}
	if _, err := s.admin.DeleteTopics(ctx, mine...); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	_, _ = s.admin.DeleteGroup(ctx, string(s.App)) // a lesson that was refused has none
	return nil
}

// Anonymous takes the application's name out of a text.
func (s *Stage) Anonymous(text string) string { return strings.ReplaceAll(text, string(s.App), "APP") }

// Run runs the lesson's topology until all of its output is there, and returns that.
func (s *Stage) Run() ([]string, error) {
	there, err := s.Lesson.InHarness()
	if err != nil {
		return nil, err
	}
	i, err := s.Start("one")
	if err != nil {
		return nil, err
	}
	err = s.until(i, fmt.Sprintf("%d records of output", len(there)), func() (bool, error) {
		lines, err := s.output()
		return len(lines) >= len(there), err
	})
	if err = errors.Join(err, i.Stop()); err != nil {
		return nil, err
	}
	return s.output()
}

// RunRefused runs a topology that can't be started, and returns why.
func (s *Stage) RunRefused(plan *topology.Plan) error {
	e, err := engine.New(plan, s.options("refused")...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Minute)
	defer cancel()
	return e.Run(ctx)
}

func (s *Stage) options(instance string, more ...engine.Option) []engine.Option {
	return append([]engine.Option{
		engine.Brokers(s.Brokers...), engine.StateDir(filepath.Join(s.Dir, instance)), engine.Logger(s.Log), engine.CommitInterval(20 * time.Millisecond),
	}, more...)
}

// Instance is an instance of the application that runs.
type Instance struct {
	*engine.Engine
	cancel context.CancelFunc
	ended  chan error
}

// Start starts an instance. Those with the same name have the same state directory, one after the other.
func (s *Stage) Start(name string, more ...engine.Option) (*Instance, error) {
	plan, err := s.Lesson.Build(s.App)
	if err != nil {
		return nil, err
	}
	e, err := engine.New(plan, s.options(name, more...)...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	i := &Instance{Engine: e, cancel: cancel, ended: make(chan error, 1)}
	go func() { i.ended <- e.Run(ctx) }()
	return i, nil
}

// Stop ends the instance in order: it commits what it has processed.
func (i *Instance) Stop() error {
	i.cancel()
	err := <-i.ended
	i.ended <- nil // it may be called again
	return err
}

// until waits until something is so, as long as the instance runs. Three minutes without it are an error.
func (s *Stage) until(i *Instance, what string, is func() (bool, error)) error {
	deadline := time.After(3 * time.Minute)
	for {
		if ok, err := is(); ok || err != nil {
			return err
		}
		select {
		case err := <-i.ended:
			i.ended <- nil
			return errors.Join(fmt.Errorf("the instance ended before there was %s", what), err)
		case <-deadline:
			return fmt.Errorf("not within three minutes: %s", what)
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// output reads what is committed of the output.
func (s *Stage) output() (lines []string, err error) {
	topic := s.App.Topic(s.Lesson.Output)
	ends, err := s.admin.ListCommittedOffsets(s.ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", topic, err)
	}
	left, from := map[int32]int64{}, map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		if end.Offset > 0 {
			left[end.Partition], from[end.Partition] = end.Offset, kgo.NewOffset().AtStart()
		}
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	defer client.Close()
	for len(left) > 0 {
		fetches := client.PollFetches(s.ctx)
		if err := errors.Join(s.ctx.Err(), fetches.Err()); err != nil {
			return nil, fmt.Errorf("read %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				lines = append(lines, line(string(r.Key), r.Value, r.Timestamp.UnixMilli()))
			}
			if r.Offset >= left[r.Partition]-1 {
				delete(left, r.Partition)
			}
		})
	}
	return lines, nil
}

// written is how many records and markers the output has, committed or not.
func (s *Stage) written() (int64, error) {
	ends, err := s.admin.ListEndOffsets(s.ctx, s.App.Topic(s.Lesson.Output))
	if err == nil {
		err = ends.Error()
	}
	if kerr.IsRetriable(err) {
		return 0, nil
	}
	var n int64
	ends.Each(func(end kadm.ListedOffset) { n += end.Offset })
	return n, err
}
