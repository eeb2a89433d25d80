package gokacompat_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/gokacompat"
	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

func checkedGroup() *goka.GroupGraph {
	return goka.DefineGroup("g",
		goka.Input("in", new(codec.String), func(goka.Context, any) {}),
		goka.Join("users", new(codec.String)),
		goka.Lookup("words", new(codec.String)),
		goka.Output("out", new(codec.String)),
		goka.Persist(new(codec.Int64)),
	)
}

// problems are what Check finds.
func problems(t *testing.T, addrs []string, opts ...gokacompat.Option) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	app, _ := newApp(t, checkedGroup(), opts...)
	err := app.Check(ctx, kgo.SeedBrokers(addrs...))
	if err == nil {
		return nil
	}
	var c *gokacompat.CheckError
	if !errors.As(err, &c) {
		t.Fatal(err)
	}
	return c.Problems
}

func wantProblems(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i, w := range want {
		if !strings.Contains(got[i], w) {
			t.Errorf("problem %d is %q, want %q in it", i, got[i], w)
		}
	}
}

func TestCheck(t *testing.T) {
	b, err := embedded.StartBroker(embedded.BrokerConfig{Logger: slog.New(slog.DiscardHandler)})
	ok(t, err)
	defer b.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...)) // with Kafka's partitioner
	ok(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	create := func(partitions int32, topics ...string) {
		t.Helper()
		answers, err := admin.CreateTopics(t.Context(), partitions, 1, nil, topics...)
		ok(t, errors.Join(err, answers.Error()))
	}

	create(4, "in", "out")
	wantProblems(t, problems(t, b.Addrs()), "users doesn't exist", "words doesn't exist")
	create(2, "users", "words")
	wantProblems(t, problems(t, b.Addrs()), "in 4, users 2")
	_, err = admin.DeleteTopics(t.Context(), "users")
	ok(t, err)
	create(4, "users")
	wantProblems(t, problems(t, b.Addrs()))

	var records []*kgo.Record
	for i := range 500 {
		records = append(records, &kgo.Record{Topic: "in", Key: fmt.Append(nil, "k", i), Value: []byte("x")})
	}
	ok(t, client.ProduceSync(t.Context(), records...).FirstErr())
	wantProblems(t, problems(t, b.Addrs()), "records looked at are in other partitions")
	if p := problems(t, b.Addrs())[0]; !strings.Contains(p, "Kafka's default partitioner") {
		t.Errorf("%q doesn't say who wrote", p)
	}
	wantProblems(t, problems(t, b.Addrs(), gokacompat.PartitionBy(gokacompat.KafkaPartition)))
	wantProblems(t, problems(t, b.Addrs(), gokacompat.AnyPartition()))
}

// A record that isn't where its key belongs ends the application, unless it may be anywhere.
func TestMisplacedRecords(t *testing.T) {
	const key, partitions = "customer-2", 4
	hashed := int32(crc32.ChecksumIEEE([]byte(key))) % partitions
	hashed = max(hashed, -hashed)
	if hashed == gokacompat.GokaPartition([]byte(key), partitions) {
		t.Fatal("both hashes agree on the key: take another one")
	}
	for name, c := range map[string]struct {
		partition int32
		opts      []gokacompat.Option
		fails     bool
	}{
		"in its place": {gokacompat.GokaPartition([]byte(key), partitions), nil, false},
		"elsewhere":    {(gokacompat.GokaPartition([]byte(key), partitions) + 1) % partitions, nil, true},
		"anywhere":     {(gokacompat.GokaPartition([]byte(key), partitions) + 1) % partitions, []gokacompat.Option{gokacompat.AnyPartition()}, false},
		"by Kafka": {gokacompat.KafkaPartition([]byte(key), partitions),
			[]gokacompat.Option{gokacompat.PartitionBy(gokacompat.KafkaPartition)}, false},
		"by a hash of its own": {hashed, []gokacompat.Option{gokacompat.Hasher(crc32.NewIEEE)}, false},
	} {
		_, plan := newApp(t, goka.DefineGroup("g", goka.Input("in", new(codec.String), func(ctx goka.Context, m any) {
			ctx.Emit("out", ctx.Key(), m)
		}), goka.Output("out", new(codec.String))), append(c.opts, gokacompat.StartAt(topology.Earliest))...)
		d, err := topologytest.Open(plan, topologytest.Partitions(partitions))
		ok(t, err)
		err = d.Pipe(topologytest.Record{Topic: "in", Partition: c.partition, Timestamp: 1, Key: []byte(key), Value: []byte("v")})
		var misplaced *gokacompat.MisplacedError
		if errors.As(err, &misplaced) != c.fails || err != nil && !c.fails {
			t.Errorf("%s: %v", name, err)
		}
		ok(t, d.Close())
	}
}
