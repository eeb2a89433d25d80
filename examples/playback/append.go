package playback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/lake/sink"
)

// AppendID names the append lander: its consumer group, and what the table knows it by.
const AppendID = "playback-append-lander"

// AppendTable is the name of the append lander's table.
func (s *Settings) AppendTable() string { return s.Table + appendSuffix }

// appender lands events at least once: it polls, gathers, appends to the table, and then commits offsets to Kafka. That is the loop
// that is usually written by hand. Between the last two steps lies a moment at which a crash makes the next process append the same
// events again, and readers must drop duplicates by event id. (The exactly-once lander has no such moment: the table's commit holds the
// offsets.)
type appender struct {
	s        Settings
	log      *slog.Logger
	client   *kgo.Client
	table    sink.Writer
	batch    sink.Batch
	since    time.Time
	read     []*kgo.Record // newest of each partition, to be committed
	appended map[int32]int64
}

// Append lands events at least once until ctx ends.
func Append(ctx context.Context, s Settings, log *slog.Logger) error {
	if err := claim(ctx, s, AppendID, s.AppendTable(), log); err != nil {
		return err
	}
	table := s.table(s.AppendTable(), "playback-append/"+s.Instance)
	if err := table.Bind(reflect.TypeFor[string](), reflect.TypeFor[Landed]()); err != nil {
		return err
	}
	w, err := table.Open(ctx, sink.Env{ApplicationID: AppendID, Name: LanderSink, Logger: log})
	if err != nil {
		return err
	}
	defer w.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...), kgo.ConsumerGroup(AppendID), kgo.ConsumeTopics(s.Topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.BlockRebalanceOnPoll(), kgo.SessionTimeout(10*time.Second), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	a := &appender{s: s, log: log, client: client, table: w, batch: w.NewBatch(), appended: map[int32]int64{}}
	for ctx.Err() == nil {
		if err := a.poll(ctx); err != nil {
			return err
		}
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
	defer cancel()
	return a.flush(drain)
}

// poll reads until a batch is full or old, and lands it.
func (a *appender) poll(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	fetches := a.client.PollRecords(wait, a.s.MaxRows-a.batch.Rows())
	cancel()
	defer a.client.AllowRebalance()
	for _, e := range fetches.Errors() {
		if !errors.Is(e.Err, context.DeadlineExceeded) && !errors.Is(e.Err, context.Canceled) {
			return fmt.Errorf("read %s-%d: %w", e.Topic, e.Partition, e.Err)
		}
	}
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		for _, r := range p.Records {
			a.add(r)
		}
		if n := len(p.Records); n > 0 {
			a.read = append(a.read, p.Records[n-1])
		}
	})
	if a.batch.Rows() >= a.s.MaxRows || !a.since.IsZero() && time.Since(a.since) >= a.s.MaxAge {
		return a.flush(context.WithoutCancel(ctx))
	}
	return nil
}

// add puts one record into the batch. What can't be read is counted and left out.
func (a *appender) add(r *kgo.Record) {
	if a.since.IsZero() {
		a.since = time.Now()
	}
	var e Event
	key := string(r.Key)
	err := json.Unmarshal(r.Value, &e)
	if err == nil {
		row := landed(e)
		err = a.batch.Append(&key, &row, &sink.Meta{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, BrokerTimestamp: r.Timestamp.UnixMilli()})
	}
	if err != nil {
		a.log.Warn("an event can't be landed and is left out", "partition", r.Partition, "offset", r.Offset, "error", err)
		return
	}
	a.appended[r.Partition]++
}

// flush appends the batch and then commits the offsets.
func (a *appender) flush(ctx context.Context) error {
	if a.since.IsZero() {
		return nil
	}
	if err := a.append(ctx); err != nil {
		return err
	}
	// A crash here is what makes duplicates.
	if err := a.client.CommitRecords(ctx, a.read...); err != nil {
		return fmt.Errorf("commit offsets: %w", err)
	}
	a.batch.Release()
	a.batch, a.since, a.read, a.appended = a.table.NewBatch(), time.Time{}, nil, map[int32]int64{}
	return nil
}

// append lands the batch. The table counts how many rows were appended from each partition; these counts bind it to no offset.
func (a *appender) append(ctx context.Context) error {
	for {
		var parts []sink.Partition
		for p := range a.appended {
			parts = append(parts, sink.Partition{Topic: a.s.Topic, Partition: p})
		}
		if len(parts) == 0 {
			return nil
		}
		counts, err := a.table.Progress(ctx, parts)
		if err != nil {
			return err
		}
		var moves []sink.Move
		for p, n := range counts {
			moves = append(moves, sink.Move{Partition: p, From: n, To: max(n, 0) + a.appended[p.Partition]})
		}
		if _, err = a.table.Commit(ctx, a.batch, moves); err == nil || !sink.IsFenced(err) {
			return err
		}
	}
}
