package verify

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const topic = "in"

// scene is a topic of one partition, and a table that is made by hand.
type scene struct {
	cfg    Config
	client *kgo.Client
	w      sink.Writer
}

func newScene(t *testing.T, config map[string]string) *scene {
	t.Helper()
	b, err := embedded.StartBroker(embedded.BrokerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	opts := []kgo.Opt{kgo.SeedBrokers(b.Addrs()...)}
	client, err := kgo.NewClient(append(opts, kgo.TransactionalID("t"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	configs := map[string]*string{}
	for k, v := range config {
		configs[k] = &v
	}
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(t.Context(), 1, 1, configs, topic); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, "dead"); err != nil {
		t.Fatal(err)
	}
	s := &scene{cfg: Config{Table: filepath.Join(t.TempDir(), "table"), Topic: topic, DeadLetters: "dead", Client: opts}, client: client}
	table := lake.Delta(s.cfg.Table, lake.SourceColumns(), lake.PlatformProgress())
	if err := table.Bind(reflect.TypeFor[string](), reflect.TypeFor[string]()); err != nil {
		t.Fatal(err)
	}
	if s.w, err = table.Open(t.Context(), sink.Env{ApplicationID: "app", Name: "sink"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.w.Close() })
	return s
}

// emit writes records in one transaction; its marker takes an offset, too.
func (s *scene) emit(t *testing.T, end kgo.TransactionEndTry, records ...*kgo.Record) {
	t.Helper()
	if err := s.client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := s.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := s.client.EndTransaction(t.Context(), end); err != nil {
		t.Fatal(err)
	}
}

func records(n int) (all []*kgo.Record) {
	for i := range n {
		all = append(all, &kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: []byte("v")})
	}
	return all
}

// land lands rows of the offsets, and moves the table's progress.
func (s *scene) land(t *testing.T, from, to int64, offsets ...int64) {
	t.Helper()
	b := s.w.NewBatch()
	defer b.Release()
	value := "v"
	for _, o := range offsets {
		if err := b.Append(nil, &value, &sink.Meta{Topic: topic, Offset: o, BrokerTimestamp: time.Now().UnixMilli()}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.w.Commit(t.Context(), b, []sink.Move{{Partition: sink.Partition{Topic: topic}, From: from, To: to}}); err != nil {
		t.Fatal(err)
	}
}

func (s *scene) verify(t *testing.T) *Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r, err := Table(ctx, s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestNoGaps: aborted records, markers, dead letters, records without a value and records that wait are no gaps.
func TestNoGaps(t *testing.T) {
	s := newScene(t, nil)
	s.emit(t, kgo.TryCommit, records(3)...)                               // 0 to 2, marker 3
	s.emit(t, kgo.TryAbort, records(2)...)                                // 4 and 5, marker 6
	s.emit(t, kgo.TryCommit, &kgo.Record{Topic: topic, Key: []byte("x")}) // 7, marker 8
	s.emit(t, kgo.TryCommit, records(2)...)                               // 9 and 10, marker 11
	s.emit(t, kgo.TryCommit, records(4)...)                               // 12 to 15: they wait
	s.emit(t, kgo.TryCommit, deadLetter(10))
	s.land(t, sink.NoOffset, 12, 0, 1, 2, 9)
	if r := s.verify(t); !r.OK() || r.Records != 10 || r.Rows != 4 || r.Tombstones != 1 || r.DeadLettered != 1 || r.Waiting != 4 || r.Outlived != 0 {
		t.Errorf("%+v", r)
	}
}

// fetched calls f once a client that has it fetches.
type fetched struct {
	sync.Once
	f func()
}

func (h *fetched) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == int16(kmsg.Fetch) {
		go h.Do(h.f)
	}
}

// leaveOpen writes to a topic in a transaction that stays open, as a killed instance does. It ends once a client of the given options fetches.
func (s *scene) leaveOpen(t *testing.T, topic string) []kgo.Opt {
	t.Helper()
	killed, err := kgo.NewClient(append(slices.Clone(s.cfg.Client), kgo.TransactionalID("killed"))...)
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := killed.ProduceSync(t.Context(), &kgo.Record{Topic: topic}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	end := &fetched{f: func() {
		defer close(ended)
		if err := killed.EndTransaction(context.Background(), kgo.TryAbort); err != nil {
			t.Error(err)
		}
	}}
	t.Cleanup(func() { end.Do(end.f); <-ended; killed.Close() })
	return append(slices.Clone(s.cfg.Client), kgo.WithHooks(end))
}

// deadLetter is one of the topic's record at offset.
func deadLetter(offset int64) *kgo.Record {
	e := processors.ErrorContext{Topic: topic, Offset: offset, Err: fmt.Errorf("bad")}
	dead := &kgo.Record{Topic: "dead"}
	for _, h := range e.DeadLetterHeaders() {
		dead.Headers = append(dead.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return dead
}

// TestDeadLettersBehindAnOpenTransaction: what was committed while another's transaction was open is not missing.
func TestDeadLettersBehindAnOpenTransaction(t *testing.T) {
	s := newScene(t, nil)
	s.emit(t, kgo.TryCommit, records(2)...) // 0 and 1
	s.cfg.Client = s.leaveOpen(t, "dead")
	s.emit(t, kgo.TryCommit, deadLetter(1))
	s.land(t, sink.NoOffset, 2, 0)
	var waited []string
	s.cfg.Waits = func(topic string) { waited = append(waited, topic) }
	for range 2 { // the second time nothing is open
		if r := s.verify(t); !r.OK() || r.DeadLettered != 1 || !slices.Equal(waited, []string{"dead"}) {
			t.Errorf("%+v; waited for %v", r, waited)
		}
	}
}

func TestFaultsAreFound(t *testing.T) {
	s := newScene(t, nil)
	s.emit(t, kgo.TryCommit, records(4)...) // 0 to 3, marker 4
	s.land(t, sink.NoOffset, 4, 0, 1, 1, 3, 4, 99)
	r := s.verify(t)
	if r.Missing.Count != 1 || r.Missing.Examples[0].Offset != 2 || r.Doubled.Count != 1 || r.Doubled.Examples[0].Offset != 1 || r.Unexplained.Count != 2 || r.OK() {
		t.Errorf("%+v", r)
	}
}

// TestRowsOutliveRecords: what retention or compaction takes can't be verified, and is no fault.
func TestRowsOutliveRecords(t *testing.T) {
	s := newScene(t, nil)
	s.emit(t, kgo.TryCommit, records(4)...)
	s.land(t, sink.NoOffset, 5, 0, 1, 2, 3)
	cut := kadm.Offsets{}
	cut.AddOffset(topic, 0, 2, -1)
	if _, err := kadm.NewClient(s.client).DeleteRecords(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	if r := s.verify(t); !r.OK() || r.Records != 2 || r.Outlived != 2 {
		t.Errorf("after retention: %+v", r)
	}

	s = newScene(t, map[string]string{"cleanup.policy": "compact"})
	s.emit(t, kgo.TryCommit, records(2)...)
	s.land(t, sink.NoOffset, 3, 0, 1, 2) // 2 stands for a record that compaction took
	if r := s.verify(t); !r.OK() || r.Outlived != 1 {
		t.Errorf("after compaction: %+v", r)
	}
}

func TestTableWithoutSourceColumns(t *testing.T) {
	s := newScene(t, nil)
	s.emit(t, kgo.TryCommit, records(1)...)
	table := lake.Delta(filepath.Join(t.TempDir(), "other"))
	if err := table.Bind(reflect.TypeFor[string](), reflect.TypeFor[string]()); err != nil {
		t.Fatal(err)
	}
	w, err := table.Open(t.Context(), sink.Env{ApplicationID: "app", Name: "sink"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b := w.NewBatch()
	defer b.Release()
	value := "v"
	if err := b.Append(nil, &value, &sink.Meta{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context(), b, []sink.Move{{Partition: sink.Partition{Topic: topic}, From: -1, To: 1}}); err != nil {
		t.Fatal(err)
	}
	s.cfg.Table = strings.TrimPrefix(table.String(), "delta:")
	if _, err := Table(t.Context(), s.cfg); err == nil || !strings.Contains(err.Error(), lake.SourcePartition) {
		t.Errorf("%v", err)
	}
}

// TestBehindAnInternalTopic: an application has read five of seven records; two of its rows wait in the internal
// topic behind a transaction that is still open, and one was lost.
func TestBehindAnInternalTopic(t *testing.T) {
	s := newScene(t, nil)
	const inner = "app-sink-lake"
	admin := kadm.NewClient(s.client)
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, inner); err != nil {
		t.Fatal(err)
	}
	s.emit(t, kgo.TryCommit, records(7)...) // 0 to 6
	through := func(offset int64) *kgo.Record {
		c := processors.Coordinates{Topic: topic, Offset: offset}
		return &kgo.Record{Topic: inner, Headers: []kgo.RecordHeader{{Key: processors.CoordinatesHeader, Value: c.Append(nil)}}}
	}
	s.emit(t, kgo.TryCommit, through(0), through(1))           // 0 and 1, marker 2
	untilRead := s.leaveOpen(t, inner)                         // 3
	s.emit(t, kgo.TryCommit, through(3), through(4))           // 4 and 5, marker 6
	s.emit(t, kgo.TryAbort, through(5))                        // of a transaction that ended badly
	table := lake.Delta(s.cfg.Table+"2", lake.SourceColumns()) // not the platform's progress
	if err := table.Bind(reflect.TypeFor[string](), reflect.TypeFor[string]()); err != nil {
		t.Fatal(err)
	}
	w, err := table.Open(t.Context(), sink.Env{ApplicationID: "app", Name: "sink"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b := w.NewBatch()
	value := "v"
	for _, o := range []int64{0, 1} {
		if err := b.Append(nil, &value, &sink.Meta{Topic: topic, Offset: o}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(t.Context(), b, []sink.Move{{Partition: sink.Partition{Topic: inner, TopicID: [16]byte{1}}, From: sink.NoOffset, To: 3}}); err != nil {
		t.Fatal(err)
	}
	b.Release()
	s.cfg.Table += "2"
	var said []string
	s.cfg.Progress = func(what string, n int64) { said = append(said, what) }
	if r := s.verify(t); r.OK() || r.Missing.Count != 5 {
		t.Errorf("before the application has committed offsets, everything must have landed: %+v", r)
	}
	var offsets kadm.Offsets
	offsets.AddOffset(topic, 0, 5, -1)
	if err := admin.CommitAllOffsets(t.Context(), "app", offsets); err != nil {
		t.Fatal(err)
	}
	s.cfg.Client = untilRead
	// 2 was read and is nowhere; 5 and 6 have not been read.
	if r := s.verify(t); r.OK() || r.Missing.Count != 1 || r.Missing.Examples[0].Offset != 2 || r.Waiting != 4 || r.Rows != 2 {
		t.Errorf("%+v", r)
	}
	if len(said) != 0 {
		t.Errorf("progress of so few: %v", said)
	}
}

func TestOffsets(t *testing.T) {
	o := offsets{}
	for _, at := range []int64{0, 63, 64, pageBits - 1, pageBits, 1 << 40} {
		if !o.add(Coordinates{1, at}) || o.add(Coordinates{1, at}) {
			t.Errorf("%d was there before, or is not there", at)
		}
	}
	if !o.take(Coordinates{1, 64}) || o.take(Coordinates{1, 64}) || o.take(Coordinates{2, 0}) || o.take(Coordinates{1, -1}) {
		t.Error("an offset was taken twice, or one that was not there")
	}
	left := int64(0)
	o.each(func(c Coordinates) { left += c.Offset })
	if left != 63+2*pageBits-1+1<<40 {
		t.Errorf("what is left sums up to %d", left)
	}
}
