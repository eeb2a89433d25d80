package engine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Benchmarks on real Kafka, one broker, all on this machine. Give the number of records by -benchtime, such as 1000000x.

func benchTopics(b *testing.B, name string, partitions int32) *kgo.Client {
	b.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(realkafka.Shared(b, 1).Addrs()...), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	for _, topic := range []string{name + "-in", name + "-out"} {
		if _, err := kadm.NewClient(client).CreateTopic(b.Context(), partitions, 1, nil, topic); err != nil {
			b.Fatal(err)
		}
	}
	return client
}

// fill writes n records of 100 bytes with the given number of keys.
func fill(b *testing.B, client *kgo.Client, topic string, n, keys int) {
	b.Helper()
	value := make([]byte, 100)
	for i := range value {
		value[i] = byte('a' + i%26)
	}
	for i := range n {
		client.Produce(b.Context(), &kgo.Record{Topic: topic, Key: []byte(fmt.Sprint("key", i%keys)), Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				b.Error(err)
			}
		})
	}
	if err := client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// runUntil runs an instance until it has processed everything, and reports how fast that was. It returns the state directory.
func runUntil(b *testing.B, plan *topology.Plan, dir string, done func(Stats) bool, opts ...Option) {
	b.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	e, err := New(plan, append([]Option{Brokers(realkafka.Shared(b, 1).Addrs()...), StateDir(dir), Logger(log), ReplicationFactor(1)}, opts...)...)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for e.Stats().State != Running {
		time.Sleep(time.Millisecond)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for !done(e.Stats()) {
		time.Sleep(time.Millisecond)
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "allocs/record")
	b.ReportMetric(0, "ns/op")
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

func passThrough(name string) *topology.Plan {
	t := topology.NewBuilder(name)
	t.Stream(name+"-in", serde.Bytes, serde.Bytes).Filter(func(_, v []byte) bool { return len(v) > 0 }).To(name + "-out")
	return build(t)
}

func BenchmarkPassThrough(b *testing.B) {
	for _, g := range []Guarantee{ExactlyOnce, AtLeastOnce} {
		b.Run([]string{"exactlyonce", "atleastonce"}[g], func(b *testing.B) {
			name := fmt.Sprintf("bench-pass-%d-%d", g, time.Now().UnixNano())
			client := benchTopics(b, name, 4)
			fill(b, client, name+"-in", b.N, 1000)
			runUntil(b, passThrough(name), b.TempDir(), func(s Stats) bool { return s.Processed >= int64(b.N) && s.Lag == 0 }, Processing(g))
		})
	}
}

// BenchmarkRaw is the client alone doing what a pass-through does: consume and produce.
func BenchmarkRaw(b *testing.B) {
	name := fmt.Sprintf("bench-raw-%d", time.Now().UnixNano())
	client := benchTopics(b, name, 4)
	fill(b, client, name+"-in", b.N, 1000)
	raw, err := kgo.NewClient(kgo.SeedBrokers(realkafka.Shared(b, 1).Addrs()...), kgo.ConsumeTopics(name+"-in"), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for n := 0; n < b.N; {
		raw.PollFetches(b.Context()).EachRecord(func(r *kgo.Record) {
			n++
			raw.Produce(b.Context(), &kgo.Record{Topic: name + "-out", Key: r.Key, Value: r.Value, Timestamp: r.Timestamp}, nil)
		})
	}
	if err := raw.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "allocs/record")
	b.ReportMetric(0, "ns/op")
}

// countsByKey counts records by their key, without a repartition: one state update and one result for each record.
func countsByKey(name string) *topology.Plan {
	t := topology.NewBuilder(name)
	t.Stream(name+"-in", serde.String, serde.Bytes).GroupByKey().Count(topology.Store("counts")).ToStream().To(name + "-out")
	return build(t)
}

func BenchmarkCount(b *testing.B) {
	name := fmt.Sprintf("bench-count-%d", time.Now().UnixNano())
	client := benchTopics(b, name, 4)
	fill(b, client, name+"-in", b.N, max(1, b.N/10))
	runUntil(b, countsByKey(name), b.TempDir(), func(s Stats) bool { return s.Processed >= int64(b.N) && s.Lag == 0 })
}

// BenchmarkRestore counts b.N keys, removes the state, and measures how long it takes to come back.
func BenchmarkRestore(b *testing.B) {
	name := fmt.Sprintf("bench-restore-%d", time.Now().UnixNano())
	client := benchTopics(b, name, 4)
	fill(b, client, name+"-in", b.N, b.N)
	dir := b.TempDir()
	runUntil(b, countsByKey(name), dir, func(s Stats) bool { return s.Processed >= int64(b.N) && s.Lag == 0 }, CommitInterval(time.Second))
	if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	runUntil(b, countsByKey(name), dir, func(Stats) bool { return true })
	took := time.Since(began)
	b.ReportMetric(float64(b.N)/took.Seconds(), "records/s")
	b.ReportMetric(took.Seconds(), "s/restore")
}
