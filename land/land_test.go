package land

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/internal/promtool"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/internal/verify"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/schemas"
	"github.com/tributary-io/tributary/serde"
)

func TestMain(m *testing.M) {
	child.Main(map[string]child.Role{instanceRole: child.As(runInstance)})
	code := m.Run()
	if err := realkafka.StopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "stop Kafka:", err)
		code = max(code, 1)
	}
	if err := leaks.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// everyType has each type and logical type of Avro that a table takes.
const everyType = `{"type":"record","name":"Every","namespace":"t.n","doc":"all types","fields":[
 {"name":"id","type":"string","doc":"identifies it"},
 {"name":"b","type":"boolean"},{"name":"i","type":"int"},{"name":"l","type":"long"},{"name":"f","type":"float"},{"name":"d","type":"double"},
 {"name":"s","type":["null","string"],"default":null},{"name":"by","type":["bytes","null"]},
 {"name":"dec","type":["null",{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}]},
 {"name":"fdec","type":{"type":"fixed","name":"Amount","size":6,"logicalType":"decimal","precision":12,"scale":2}},
 {"name":"e","type":{"type":"enum","name":"Color","symbols":["RED","GREEN"]}},{"name":"e2","type":["null","Color"]},
 {"name":"fx","type":{"type":"fixed","name":"Six","size":6}},{"name":"fx2","type":"t.n.Six"},
 {"name":"day","type":{"type":"int","logicalType":"date"}},
 {"name":"tm","type":{"type":"int","logicalType":"time-millis"}},{"name":"tu","type":{"type":"long","logicalType":"time-micros"}},
 {"name":"ts","type":{"type":"long","logicalType":"timestamp-millis"}},{"name":"tsu","type":{"type":"long","logicalType":"timestamp-micros"}},
 {"name":"tsn","type":{"type":"long","logicalType":"timestamp-nanos"}},{"name":"ltz","type":{"type":"long","logicalType":"local-timestamp-micros"}},
 {"name":"u","type":{"type":"string","logicalType":"uuid"}},{"name":"uf","type":{"type":"fixed","name":"Uuid","size":16,"logicalType":"uuid"}},
 {"name":"dur","type":{"type":"fixed","name":"Dur","size":12,"logicalType":"duration"}},
 {"name":"arr","type":{"type":"array","items":["null","long"]}},{"name":"m","type":{"type":"map","values":"string"}},
 {"name":"rec","type":["null",{"type":"record","name":"Inner","fields":[{"name":"x","type":"int"},{"name":"more","type":{"type":"array","items":"Color"}}]}]},
 {"name":"un","type":["null","string","long",{"type":"record","name":"Other","fields":[{"name":"y","type":["null","double"]}]}]},
 {"name":"nothing","type":"null"}]}`

// world is a broker, a registry and a lake.
type world struct {
	cfg    Config
	client *kgo.Client
}

func newWorld(t *testing.T, brokers []string, registry string) *world {
	t.Helper()
	if brokers == nil {
		b, err := embedded.StartBroker(embedded.BrokerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		brokers = b.Addrs()
	}
	if registry == "" {
		r, err := embedded.StartRegistry(embedded.RegistryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		registry = r.URL()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	dir := t.TempDir()
	w := &world{client: client, cfg: Config{Brokers: brokers, Registry: registry, Lake: filepath.Join(dir, "lake"), State: filepath.Join(dir, "state"),
		Log: slog.New(slog.DiscardHandler)}}
	w.cfg.Batch.Every = 200 * time.Millisecond
	if err := w.cfg.Environment(func(string) string { return "" }); err != nil {
		t.Fatal(err)
	}
	return w
}

const small = `{"type":"record","name":"Small","doc":"a small thing","fields":[{"name":"id","type":"long","doc":"its number"},{"name":"note","type":["null","string"],"default":null}]}`

func testStream(t *testing.T, topic, schema string) Stream {
	t.Helper()
	s, err := Of(schemas.Stream{Topic: topic, Schema: schema, Owner: "o@example.org", Domain: "test", Sensitivity: schemas.Internal, Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start runs an instance; the returned function ends it in good order.
func (w *world) start(t *testing.T) (*Sink, func()) {
	t.Helper()
	s, err := Open(t.Context(), w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	var done bool
	stop := func() {
		if done {
			return
		}
		done = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.Close()
	}
	t.Cleanup(stop)
	return s, stop
}

// emit writes values into a topic, by partition in turn.
func (w *world) emit(t *testing.T, topic string, values ...[]byte) {
	t.Helper()
	for i, v := range values {
		r := &kgo.Record{Topic: topic, Partition: int32(i % 2), Value: v, Headers: []kgo.RecordHeader{{Key: "producer", Value: []byte("test")}}}
		if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// id is the registry's id of a stream's schema.
func (w *world) id(t *testing.T, s *Stream) int32 {
	t.Helper()
	reg, err := serde.NewRegistry(w.cfg.Registry)
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	id, err := reg.Lookup(t.Context(), serde.Subject(s.Topic, false), s.Schema)
	if err != nil {
		t.Fatal(err)
	}
	return int32(id)
}

func smallValue(id int32, n int64) []byte {
	return append(appendLong(serde.AppendFrame(nil, id), n), 0)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	eventuallyBy(t, time.Now().Add(4*time.Minute), what, ok)
}

func eventuallyBy(t *testing.T, end time.Time, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, time.Since(began).Round(time.Second))
		}
	}
}

func (w *world) rows(t *testing.T, s *Stream) (rows []lake.Row) {
	t.Helper()
	for row, err := range lake.ReadRows(t.Context(), w.cfg.TablePlace(s)) {
		if errors.Is(err, lake.ErrNoTable) {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestLand lands two topics over a restart, with records that don't fit, and looks at everything that a person would look at.
func TestLand(t *testing.T) { land(t, newWorld(t, nil, "")) }

func land(t *testing.T, w *world) {
	one, two := testStream(t, "ods.shop.orders", small), testStream(t, "ods.shop.returns.eu", small)
	w.cfg.Streams, w.cfg.Observe = []Stream{one, two}, 100*time.Millisecond
	s, stop := w.start(t)
	id := w.id(t, &one)
	var values [][]byte
	for n := range int64(100) {
		values = append(values, smallValue(id, n))
	}
	values = append(values, []byte("not Avro"), smallValue(999_999, 1), nil) // bad, of an unknown schema, and without a value
	w.emit(t, one.Topic, values...)
	w.emit(t, two.Topic, smallValue(id, 7))
	eventually(t, "landed", func() bool { return len(w.rows(t, &one)) == 100 && len(w.rows(t, &two)) == 1 })
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	eventually(t, "the observer", func() bool {
		last := s.observer.Last()
		return len(last) == 2 && last[0].Lag == 0 && last[0].Landed == 103
	})
	observed(t, server.URL)
	stop()
	if got := w.rows(t, &two)[0]; got["id"] != int64(7) || got[lake.RunID] != "stream:ods-sink" || got[lake.SourceTimestamp] == nil || got[lake.CreatedAt] == nil {
		t.Errorf("row %v", got)
	}
	info, err := lake.Show(t.Context(), w.cfg.TablePlace(&one), 10)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(info.Place, "raw/shop__orders") || info.Properties["ods.owner"] != "o@example.org" || info.Description != "a small thing" {
		t.Errorf("table %s: %v %q", info.Place, info.Properties, info.Description)
	}
	for _, p := range info.Progress {
		if p.AppID != fmt.Sprintf("ods-sink/%s/%d", one.Topic, p.Partition) || p.Next != p.Version+1 || len(info.Progress) != 2 {
			t.Errorf("progress %+v", p)
		}
	}

	// The next instance goes on from the table. What is written while nobody runs is landed then.
	w.emit(t, one.Topic, smallValue(id, 100), smallValue(id, 101), []byte("bad again"))
	_, stop = w.start(t)
	eventually(t, "landed after the restart", func() bool { return len(w.rows(t, &one)) == 102 })
	w.checkCommitted(t, &one, 106)
	stop()
	r, err := verify.Table(t.Context(), verify.Config{Table: w.cfg.TablePlace(&one), Topic: one.Topic, DeadLetters: one.DeadLetters,
		Client: []kgo.Opt{kgo.SeedBrokers(w.cfg.Brokers...)}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || r.Rows != 102 || r.DeadLettered != 3 || r.Tombstones != 1 {
		t.Errorf("verify: %+v", r)
	}
}

// observed looks at the observer's answers.
func observed(t *testing.T, url string) {
	t.Helper()
	get := func(path string) string {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var catalogue []CatalogueEntry
	if err := json.Unmarshal([]byte(get("/catalogue")), &catalogue); err != nil {
		t.Fatal(err)
	}
	if e := catalogue[0]; e.Topic != "ods.shop.orders" || e.Subject != "ods.shop.orders-value" || e.Version != 1 || e.Total != 103 || e.Landed != 103 || e.Waiting != 0 || e.Owner == "" {
		t.Errorf("catalogue: %+v", e)
	}
	metrics := get("/metrics")
	for _, want := range []string{`tributary_stream_landed_offset{partition="0",topic="ods.shop.orders"} 52`, "tributary_lake_rows_total"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s:\n%s", want, metrics)
		}
	}
	if said := promtool.Check(t, strings.NewReader(metrics), "check", "metrics"); said != "" {
		t.Errorf("promtool: %s", said)
	}
	if text := get("/streams"); !strings.Contains(text, `"lag": 0`) {
		t.Errorf("streams: %s", text)
	}
	http.DefaultClient.CloseIdleConnections()
}

// checkCommitted waits for the group's offsets, which follow the table for those who look at lags.
func (w *world) checkCommitted(t *testing.T, s *Stream, want int64) {
	t.Helper()
	eventually(t, "committed offsets", func() bool {
		got, err := kadm.NewClient(w.client).FetchOffsets(t.Context(), w.cfg.Group)
		if err != nil {
			return false
		}
		var sum int64
		got.Each(func(o kadm.OffsetResponse) {
			if o.Topic == s.Topic {
				sum += o.At
			}
		})
		return sum == want
	})
}

func TestProveEveryType(t *testing.T) {
	w := newWorld(t, nil, "")
	prove(t, w, testStream(t, "ods.test.every", everyType), 2000)
}

func TestProveShippedStreams(t *testing.T) {
	w := newWorld(t, nil, "")
	for _, d := range schemas.Streams() {
		s, err := Of(d)
		if err != nil {
			t.Fatal(err)
		}
		prove(t, w, s, 200)
	}
}

func prove(t *testing.T, w *world, s Stream, rows int) {
	t.Helper()
	p, err := Prove(t.Context(), w.cfg, s, ProofConfig{Rows: rows, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if p.Differing != 0 || p.Batches == 0 {
		t.Errorf("%d of %d rows differ, in %d batches:\n%s", p.Differing, p.Rows, p.Batches, strings.Join(p.Differences, "\n"))
	}
	if _, err := os.Stat(p.Table); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the proof's table is still there: %v", err)
	}
}

// TestProveFormats sends the same rows as JSON and as Protobuf, whose schema is made of the declared one.
func TestProveFormats(t *testing.T) {
	w := newWorld(t, nil, "")
	s := testStream(t, "ods.test.json", everyType)
	s.Format = JSON
	prove(t, w, s, 1000)
	s = testStream(t, "ods.test.proto", everyType)
	s.Format = Protobuf
	if _, err := Prove(t.Context(), w.cfg, s, ProofConfig{Rows: 10}); err == nil || !strings.Contains(err.Error(), "field arr: arrays of nulls") {
		t.Errorf("what Protobuf has no like of: %v", err)
	}
	s.Schema = strings.Replace(everyType, `"items":["null","long"]`, `"items":"long"`, 1)
	prove(t, w, s, 1000)
	for _, d := range schemas.Streams() {
		for _, format := range []Format{JSON, Protobuf} {
			s, err := Of(d)
			if err != nil {
				t.Fatal(err)
			}
			s.Format = format
			prove(t, w, s, 50)
		}
	}
}

// TestProofFindsDifferences makes sure that the proof can fail.
func TestProofFindsDifferences(t *testing.T) {
	w := newWorld(t, nil, "")
	s := testStream(t, "ods.test.small", small)
	p, err := Prove(t.Context(), w.cfg, s, ProofConfig{Rows: 3, Keep: true})
	if err != nil || p.Differing != 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	g, err := newGenerator(small, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[coordinates]map[string]any{{9, 9}: {}}
	for i := range 2 { // the first two landed, one of them with another value, and one that did not
		_, row, err := g.row(nil)
		if err != nil {
			t.Fatal(err)
		}
		want[coordinates{int32(i), 0}] = row
	}
	want[coordinates{0, 0}]["id"] = int64(-12345)
	if err := p.compare(t.Context(), want, "stream:x"); err != nil {
		t.Fatal(err)
	}
	if p.Differing < 4 {
		t.Errorf("differences: %v", p.Differences)
	}
}
