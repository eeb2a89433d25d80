package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/land"
)

// printed may be written while it is read.
type printed struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *printed) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *printed) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// command runs the command line and returns what it prints.
func command(ctx context.Context, args ...string) (string, error) {
	var out printed
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

// must runs the command line and fails the test on an error, or if the output lacks a text.
func must(t *testing.T, wants []string, args ...string) string {
	t.Helper()
	out, err := command(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	for _, want := range wants {
		if !strings.Contains(out, want) {
			t.Errorf("%v: %q is not in:\n%s", args, want, out)
		}
	}
	return out
}

// TestLandAndDeadLetters lands a topic by its name, and follows bad records to their dead letters and back.
func TestLandAndDeadLetters(t *testing.T) {
	b, err := embedded.StartBroker(embedded.BrokerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r, err := embedded.StartRegistry(embedded.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir := t.TempDir()
	schema := filepath.Join(dir, "small.avsc")
	if err := os.WriteFile(schema, []byte(`{"type":"record","name":"Small","fields":[{"name":"id","type":"long"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	const topic, dead = "ods.shop.things", "ods.shop.things.dead_letters"
	t.Setenv("ODS_SINK_LAKE", filepath.Join(dir, "lake"))
	t.Setenv("ODS_SINK_BATCH_SECONDS", "0.2")
	t.Setenv("ODS_SINK_BROKERS", b.Addrs()[0])
	t.Setenv("ODS_SINK_REGISTRY", r.URL())
	t.Setenv("ODS_SINK_STATE", filepath.Join(dir, "state"))
	table := filepath.Join(dir, "lake", "raw", "shop__things")

	ctx, cancel := context.WithCancel(t.Context())
	type result struct {
		out string
		err error
	}
	ended := make(chan result, 1)
	go func() {
		out, err := command(ctx, "land", topic, "--schema", schema, "--partitions", "1", "--observe", "50ms")
		ended <- result{out, err}
	}()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.UnknownTopicRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, value := range [][]byte{{0, 0, 0, 0, 1, 2}, []byte("bad"), {0, 0, 0, 0, 1, 4}} {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: value, Headers: []kgo.RecordHeader{{Key: "producer", Value: []byte("me")}}}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	landedTo := func(next int64) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(30 * time.Millisecond) {
			_, progress, err := lake.ReadProgress(t.Context(), table)
			if err == nil && len(progress) == 1 && progress[0].Next >= next {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("not landed within 30 s: %v %v", progress, err)
			}
		}
	}
	landedTo(3)
	brokers := "--brokers=" + b.Addrs()[0]
	must(t, []string{"ods.shop.things-0@1", "me", "registry"}, "dlq", "list", dead, brokers)
	must(t, []string{"node land-ods.shop.things", "me"}, "dlq", "group", dead, brokers, "--by", "reason,producer")
	must(t, []string{"1 letter to replay to " + topic, "--yes"}, "dlq", "replay", dead, brokers)
	must(t, []string{"1 replayed"}, "dlq", "replay", dead, brokers, "--yes")
	must(t, []string{"1 left out: replayed before", "nothing to replay"}, "dlq", "replay", dead, brokers, "--yes")
	landedTo(4)
	cancel()
	if got := <-ended; got.err != nil || !strings.Contains(got.out, "2 rows") {
		t.Errorf("land: %v\n%s", got.err, got.out)
	}
	must(t, []string{"replayed before", "failed again"}, "dlq", "replay", dead, brokers)

	var status []land.StreamStatus
	if err := json.Unmarshal([]byte(must(t, nil, "land", "status", topic, "--json")), &status); err != nil {
		t.Fatal(err)
	}
	if len(status) != 1 || status[0].Lag != 0 || status[0].SchemaVersion != 1 || status[0].TableVersion < 1 {
		t.Errorf("status %+v", status)
	}
	must(t, []string{topic, table}, "land", "status", topic)
	must(t, []string{`"waiting": 0`, `"subject": "ods.shop.things-value"`}, "land", "status", topic, "--catalogue")
	must(t, []string{"stream:ods-sink", "offsets  ods.shop.things-0:", "distinct", `"stream:ods-sink"`}, "lake", "log", table, "--columns")
	must(t, []string{"2 rows", "2 dead-lettered", "verified"}, "lake", "verify", table, "--topic", topic, "--dead-letters", dead, brokers)
	must(t, []string{"landed", "observed_at"}, "lake", "show", filepath.Join(dir, "lake", "_ods", "observer"))
	must(t, []string{"50 rows", "identical"}, "land", "prove", topic, "--rows", "50")

	must(t, []string{"nothing that isn't declared", "Nothing was changed"}, "land", "rewrite", topic, "--schema", schema)
	reset := []string{"land", "reset", topic, "--schema", schema, "--tables", "truncate"}
	must(t, []string{"2 rows in", "Nothing was changed"}, reset...)
	must(t, []string{"is reset", "2 rows in"}, append(reset, "--execute")...)
	must(t, []string{"0 rows", "none: emptied", "TRUNCATE"}, "lake", "show", table)
	must(t, []string{topic + " lands in"}, "land", topic, "--schema", schema, "--partitions", "1", "--until-landed")
	must(t, []string{"2 rows", "verified"}, "lake", "verify", table, "--topic", topic, "--dead-letters", dead, brokers)
}

// TestProveNeedsNothing: without brokers, registry and lake all of it runs inside.
func TestProveNeedsNothing(t *testing.T) {
	must(t, []string{"identical"}, "land", "prove", "ods.demo.customers", "--rows", "100")
}

func TestLandMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"the streams are missing":       {"land", "--brokers", "x:1", "--registry", "http://x", "--lake", "y"},
		"the brokers are missing":       {"land", "ods.demo.customers"},
		"no registry is given":          {"land", "ods.un.known"},
		"source and entity":             {"land", "orders", "--schema", filepath.Join("..", "..", "schemas", "ods.demo.customers.avsc")},
		"is no time":                    {"dlq", "list", "x", "--brokers", "x:1", "--since", "yesterday"},
		`can't be grouped by "weather"`: {"dlq", "group", "x", "--brokers", "x:1", "--by", "weather"},
	} {
		if out, err := command(t.Context(), args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q\n%s", args, err, want, out)
		}
	}
}
