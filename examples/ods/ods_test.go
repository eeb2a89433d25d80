package ods_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/devbroker"
	"github.com/tributary-io/tributary/examples/ods"
	"github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/land"
	"github.com/tributary-io/tributary/schemas"
	"github.com/tributary-io/tributary/topology/topologytest"
)

var day = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// settings are the sink's, as a test has them: small batches.
var settings = map[string]string{"ODS_SINK_BATCH_SECONDS": "0.2", "ODS_SINK_BATCH_ROWS": "200"}

// embedded is a platform on a broker and a registry in this process.
func embedded(t *testing.T) *ods.Platform {
	t.Helper()
	b, err := devbroker.Start(devbroker.Config{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	r, err := devbroker.StartRegistry(devbroker.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return platform(t, b.Addrs(), r.URL())
}

func platform(t *testing.T, brokers []string, registry string) *ods.Platform {
	t.Helper()
	dir := t.TempDir()
	p := &ods.Platform{Brokers: brokers, Registry: registry, Lake: filepath.Join(dir, "lake"), Declarations: filepath.Join(dir, "streams"),
		State: filepath.Join(dir, "state"), Log: quiet, Getenv: func(name string) string { return settings[name] }}
	if err := ods.Init(p.Declarations); err != nil {
		t.Fatal(err)
	}
	return p
}

// The generator writes by the schema that ships with the library, so the declaration here is the same.
func TestDeclarationIsTheGenerators(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "streams")
	if err := ods.Init(folder); err != nil {
		t.Fatal(err)
	}
	streams, err := land.LoadFolder(folder)
	if err != nil || len(streams) != 2 {
		t.Fatalf("%d streams, %v", len(streams), err)
	}
	s, want := streams[0], schemas.MustStream(ods.OrderTopic)
	if s.Topic != want.Topic || s.Schema != want.Schema || s.Partitions != shop.Partitions || s.Owner == "" || s.Domain == "" || s.Sensitivity != schemas.Confidential {
		t.Errorf("declared %+v", s.Stream)
	}
	if s.Table != ods.RawTable || s.DeadLetters == "" {
		t.Errorf("it lands in %s, and what doesn't fit in %q", s.Table, s.DeadLetters)
	}
}

// What people have changed stays.
func TestInitLeavesWhatIsThere(t *testing.T) {
	folder := t.TempDir()
	for range 2 {
		if err := ods.Init(folder); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(folder, ods.OrderTopic+".avsc")
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []ods.Change{ods.Reword, ods.AddChannel, ods.RequireWarehouse} {
		if err := c.Apply(folder); err != nil {
			t.Fatal(err)
		}
		if _, err := land.LoadFolder(folder); err != nil {
			t.Errorf("a changed declaration doesn't load: %v", err)
		}
		if err := ods.Init(folder); err != nil {
			t.Fatal(err)
		}
		if text, _ := os.ReadFile(name); bytes.Equal(text, before) {
			t.Errorf("the change is gone: %q", c.New)
		}
		if err := c.Undo(folder); err != nil {
			t.Fatal(err)
		}
		if text, _ := os.ReadFile(name); !bytes.Equal(text, before) {
			t.Error("an undone change leaves something")
		}
		if err := c.Undo(folder); err == nil {
			t.Error("what was not done was undone")
		}
	}
}

// The sink's own topology on the harness: which rows come, and which records become dead letters.
func TestSinkOnTheHarness(t *testing.T) {
	const schemaID = 7
	s, err := land.Of(schemas.MustStream(ods.OrderTopic))
	if err != nil {
		t.Fatal(err)
	}
	cfg := land.Config{Lake: t.TempDir(), Streams: []land.Stream{s}}
	plan, err := land.Topology(cfg, lake.SchemaSourceFunc(func(id int) (lake.WriterSchema, error) {
		if id != schemaID {
			return lake.WriterSchema{}, lake.ErrUnknownSchema
		}
		return lake.WriterSchema{Schema: s.Schema}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	d := topologytest.New(t, plan, topologytest.ErrorHandlers(cfg.Handlers()), topologytest.TopicPartitions(s.Topic, shop.Partitions))
	spec := shop.Spec{Date: day, Orders: 100, Seed: 3}
	want := shop.NewModel(spec)
	want.AddDay(day)
	nulls := want.ByFlaw[shop.NullValue]
	for r := range spec.Records(shop.SchemaIDs{OrderEvents: schemaID}) {
		d.Pipe(topologytest.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp})
	}
	var rows int64
	for _, row := range topologytest.LakeRows[[]byte](d, "land-"+s.Topic) {
		if row.Value != nil {
			rows++
		}
	}
	if letters := int64(len(d.Read(s.DeadLetters))); rows != want.Raw.Rows || letters != want.Quarantined-nulls || nulls == 0 {
		t.Errorf("%d rows and %d dead letters, want %d and %d", rows, letters, want.Raw.Rows, want.Quarantined-nulls)
	}
}

// The whole demonstration on a broker in this process, and what may be done again after it.
func TestDemo(t *testing.T) {
	p := embedded(t)
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	var out bytes.Buffer
	demo := ods.Demo{Platform: p, Spec: shop.Spec{Date: day, Orders: 60, Seed: 3}, Rows: 300, Out: &out}
	if err := demo.Run(ctx); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Logf("%s", &out)
	if err := demo.Run(ctx); !errors.Is(err, ods.ErrNotEmpty) {
		t.Errorf("the demonstration began on a topic that holds something: %v", err)
	}
	before, err := p.Count(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// A day that is sent again is in the raw table again, and in staging once, however many rebuild and publish at a time.
	again, err := p.Emit(ctx, demo.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Land(ctx, ods.OrderTopic, true); err != nil {
		t.Fatal(err)
	}
	var repeated, published int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range 3 {
		wg.Go(func() {
			r, err := p.Rebuild(ctx)
			mu.Lock()
			defer mu.Unlock()
			repeated += r.Repeated
			if err != nil || r.Added != 0 {
				t.Errorf("rebuilt: %+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if published, err = p.Publish(ctx); err != nil || published != 0 {
		t.Errorf("published %d events again, %v", published, err)
	}
	after, err := p.Count(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := shop.NewModel(demo.Spec)
	want.AddDay(day)
	if after.Raw != before.Raw+want.Raw.Rows || after.Events != before.Events || after.Staged != before.Staged || repeated != want.Raw.Rows {
		t.Errorf("%d records sent again: %v, then %v; %d repetitions, want %d", again, before, after, repeated, want.Raw.Rows)
	}
	foreign(t, p)
}

// foreign has others write to the published topic: what they have not committed counts for nothing, what they have is found out.
func foreign(t *testing.T, p *ods.Platform) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(p.Brokers...), kgo.TransactionalID("somebody"), kgo.UnknownTopicRetries(-1), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, how := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		var records []*kgo.Record
		for n := range 200 { // more than the publisher looks at first
			records = append(records, &kgo.Record{Topic: ods.StagedTopic, Partition: int32(n % shop.Partitions), Value: []byte(strconv.Itoa(n))})
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := client.EndTransaction(t.Context(), how); err != nil {
			t.Fatal(err)
		}
		n, err := p.Publish(t.Context())
		if how == kgo.TryAbort && (n != 0 || err != nil) {
			t.Errorf("behind an aborted transaction: published %d, %v", n, err)
		}
		if how == kgo.TryCommit && (err == nil || !strings.Contains(err.Error(), "somebody else writes")) {
			t.Errorf("behind records of others: %v", err)
		}
	}
}

// A notice that can't be followed is answered so that it is given again.
func TestNoticeIsAnswered(t *testing.T) {
	d := &ods.Downstream{Platform: embedded(t)}
	post := func(body string) int {
		w := httptest.NewRecorder()
		d.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		return w.Code
	}
	if code := post("nonsense"); code != http.StatusBadRequest {
		t.Errorf("nonsense: %d", code)
	}
	if code := post(`{"tables":[{"topic":"another"}]}`); code != http.StatusNoContent {
		t.Errorf("about another table: %d", code)
	}
	if code := post(`{"tables":[{"topic":"` + ods.OrderTopic + `"}]}`); code != http.StatusInternalServerError {
		t.Errorf("with no raw table: %d", code)
	}
}
