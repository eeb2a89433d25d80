package console_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/console"
	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/engine/devbroker"
	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// seen is what these tests want to know of state.json.
type seen struct {
	Application, Instance, State string
	Ready                        bool
	Why                          []string
	Totals                       struct {
		Tasks, Running, Restoring int
		Lag, Processed            int64
		LastCommit                time.Time
	}
	Tasks []struct {
		Name, State, Parked string
		Inputs              []struct {
			Topic    string
			Position *int64
		}
		Restore *struct{ Left, Total int64 }
	}
	Stores []struct {
		Name, Kind     string
		Partitions, Of int32
		Entries        *int64
	}
	Lake []struct {
		Sink, Table, Parked string
		Rows, Version       int64
		LastCommit          time.Time
	}
	Members []struct {
		ID, Endpoint string
		Here         bool
		Tasks        int
	}
}

type broker struct {
	addrs  []string
	client *kgo.Client
}

func startBroker(t *testing.T, topics ...string) *broker {
	t.Helper()
	b, err := devbroker.Start(devbroker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := kadm.NewClient(client).CreateTopics(t.Context(), 2, 1, nil, topics...); err != nil {
		t.Fatal(err)
	}
	return &broker{b.Addrs(), client}
}

func (b *broker) produce(t *testing.T, topic string, values ...string) {
	t.Helper()
	for _, v := range values {
		if err := b.client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte(v), Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs an instance with the console until the test ends, or stop is called.
func (b *broker) run(t *testing.T, plan *topology.Plan, dir string, opts ...engine.Option) (e *engine.Engine, stop func()) {
	t.Helper()
	e, err := engine.New(plan, append([]engine.Option{engine.Brokers(b.addrs...), engine.StateDir(dir), engine.Logger(slog.New(slog.DiscardHandler)), engine.HTTP("127.0.0.1:0"),
		engine.CommitInterval(20 * time.Millisecond), engine.ReplicationFactor(1), console.Serve()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return e, stop
}

// get asks for a path below /console; the answer is empty while nobody listens.
func get(t *testing.T, e *engine.Engine, path string) string {
	t.Helper()
	if e.HTTPAddr() == "" {
		return ""
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + e.HTTPAddr() + "/console" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
	return string(body)
}

// await looks at state.json until good is content with it.
func await(t *testing.T, e *engine.Engine, what string, good func(s *seen) bool) *seen {
	t.Helper()
	text := ""
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if text = get(t, e, "/state.json"); text == "" {
			continue
		}
		var s seen
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if good(&s) {
			return &s
		}
	}
	t.Fatalf("not seen: %s; last: %s", what, text)
	return nil
}

func counting(t *testing.T, place string) *topology.Plan {
	t.Helper()
	b := topology.NewBuilder("counting")
	b.Stream("words", serde.String, serde.String).GroupByKey().Count(topology.Store("counts")).ToStream().ToLake(lake.Delta(place), topology.Name("landed"))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// An instance is looked at while it runs, and while it restores its state in another place.
func TestRunningAndRestoring(t *testing.T) {
	b := startBroker(t, "words")
	plan := counting(t, t.TempDir()+"/table")
	b.produce(t, "words", "a", "b", "c", "a", "b", "a")
	e, stop := b.run(t, plan, t.TempDir(), engine.Lake(engine.LakeBatches{Every: 50 * time.Millisecond}))
	s := await(t, e, "all has landed", func(s *seen) bool {
		return s.Ready && s.State == "running" && len(s.Lake) == 1 && s.Lake[0].Rows == 6 && s.Totals.Lag == 0 && len(s.Members) == 1 && len(s.Stores) == 1 &&
			s.Stores[0].Entries != nil && *s.Stores[0].Entries == 3
	})
	if s.Application != "counting" || s.Instance != e.Instance() || s.Totals.Tasks != 4 || s.Totals.Running != 4 || time.Since(s.Totals.LastCommit) > time.Hour || len(s.Why) != 0 {
		t.Errorf("%+v", s)
	}
	if m := s.Members[0]; !m.Here || m.Endpoint != e.HTTPAddr() || m.Tasks != 4 {
		t.Errorf("%+v", m)
	}
	if l := s.Lake[0]; l.Sink != "landed" || !strings.HasPrefix(l.Table, "delta:") || time.Since(l.LastCommit) > time.Hour || l.Parked != "" {
		t.Errorf("%+v", l)
	}
	if st := s.Stores[0]; st.Name != "counts" || st.Kind != "timestampedKeyValue" || st.Partitions != 2 || st.Of != 2 {
		t.Errorf("%+v", st)
	}
	for _, path := range []string{"", "/", "/?sort=lag"} { // "" is sent on to "/"
		if page := get(t, e, path); !strings.Contains(page, "<h1>counting</h1>") || !strings.Contains(page, `<strong class="badge good">running</strong> ready`) || !strings.Contains(page, "KSTREAM-AGGREGATE-") {
			t.Errorf("%s: %s", path, page)
		}
	}
	stop()
	restoresInAnotherPlace(t, b, plan)
}

func restoresInAnotherPlace(t *testing.T, b *broker, plan *topology.Plan) {
	goOn := make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	e, _ := b.run(t, plan, t.TempDir(), engine.OnRestore(func(ev engine.RestoreEvent) {
		if ev.Phase == engine.RestoreBegan {
			<-goOn
		}
	}))
	t.Cleanup(release) // before the instance is ended
	s := await(t, e, "state is restored", func(s *seen) bool { return s.Totals.Restoring == 2 })
	if s.Ready || s.State != "rebalancing" || len(s.Why) != 1 || !strings.Contains(s.Why[0], "2 of them are being restored") {
		t.Errorf("%+v", s)
	}
	left := int64(0)
	for _, task := range s.Tasks {
		if task.Restore != nil {
			left += task.Restore.Left
			if task.State != "restoring" || task.Restore.Left != task.Restore.Total {
				t.Errorf("%+v", task)
			}
		}
	}
	if left < 3 { // one record for each key at least
		t.Errorf("%d offsets are left", left)
	}
	if page := get(t, e, "/"); !strings.Contains(page, `<strong class="badge bad">rebalancing</strong> not ready`) || strings.Count(page, "<progress") != 2 {
		t.Errorf("%s", page)
	}
	release()
	await(t, e, "it runs", func(s *seen) bool { return s.Ready && s.Totals.Running == 4 })
}

// A table that can't be opened is parked, with the reason, and the other one lands.
func TestParked(t *testing.T) {
	b := startBroker(t, "good", "bad")
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tb := topology.NewBuilder("parking")
	tb.Stream("good", serde.String, serde.String).ToLake(lake.Delta(dir+"/table"), topology.Name("good-rows"))
	tb.Stream("bad", serde.String, serde.String).ToLake(lake.Delta(file+"/table"), topology.Name("bad-rows"))
	plan, err := tb.Build()
	if err != nil {
		t.Fatal(err)
	}
	b.produce(t, "good", "a")
	e, _ := b.run(t, plan, t.TempDir(), engine.ParkLake(), engine.Lake(engine.LakeBatches{Every: 50 * time.Millisecond}))
	s := await(t, e, "one lands, the other is parked", func(s *seen) bool {
		return s.Ready && len(s.Lake) == 2 && s.Lake[0].Parked != "" && s.Lake[1].Rows == 1
	})
	if !strings.Contains(strings.Join(s.Why, "\n"), "1 of 2 tables are parked") || !strings.Contains(s.Lake[0].Parked, file) {
		t.Errorf("%+v", s)
	}
	parked := 0
	for _, task := range s.Tasks {
		if task.State == "parked" && task.Parked != "" {
			parked++
		}
	}
	if parked != 2 {
		t.Errorf("%d tasks are parked: %+v", parked, s.Tasks)
	}
	if page := get(t, e, "/"); !strings.Contains(page, `<strong class="badge warn">running</strong> ready`) || !strings.Contains(page, ">parked</span>") {
		t.Errorf("%s", page)
	}
}

// The page is there before Run, by a server of one's own.
func TestBeforeRun(t *testing.T) {
	e, err := engine.New(counting(t, "lake"), engine.Brokers("localhost:1"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mine/", http.StripPrefix("/mine", console.Handler(e)))
	w := httptest.NewRecorder()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/mine/", nil)
	if err != nil {
		t.Fatal(err)
	}
	mux.ServeHTTP(w, r)
	if page := w.Body.String(); !strings.Contains(page, "created") || !strings.Contains(page, "it hasn&#39;t been run yet") {
		t.Errorf("%s", page)
	}
}
