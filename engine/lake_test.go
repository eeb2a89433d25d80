package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// table is a table in memory, with a real one's rules: a commit lands whole, and only on the progress that it starts from.
type table struct {
	mu       sync.Mutex
	rows     []string
	metas    []sink.Meta
	progress map[sink.Partition]int64
	commits  int
	version  int64
	fault    func(*table) error // before a commit; called with the lock held
	closed   error              // to Open
}

func newTable() *table { return &table{progress: map[sink.Partition]int64{}, version: -1} }

func (t *table) String() string               { return fmt.Sprintf("memory:%p", t) }
func (t *table) Bind(_, _ reflect.Type) error { return nil }
func (t *table) Open(context.Context, sink.Env) (sink.Writer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &tableWriter{t: t}, t.closed
}

func (t *table) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.rows)
}

// once fails unless the table has each of the values once, and nothing else.
func (t *table) once(values []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := map[string]int{}
	for _, r := range t.rows {
		seen[r]++
	}
	var bad []string
	for _, v := range values {
		if seen[v] != 1 {
			bad = append(bad, fmt.Sprintf("%s: %d times", v, seen[v]))
		}
	}
	if len(bad) > 0 || len(t.rows) != len(values) {
		return fmt.Errorf("%d rows of %d values; %d values not once, such as %v", len(t.rows), len(values), len(bad), bad[:min(5, len(bad))])
	}
	return nil
}

type tableWriter struct {
	t    *table
	busy sync.Mutex // its methods are called by one goroutine at a time
}

func (w *tableWriter) enter() func() {
	if !w.busy.TryLock() {
		panic("two goroutines use one writer")
	}
	return w.busy.Unlock
}

func (w *tableWriter) Progress(_ context.Context, parts []sink.Partition) (map[sink.Partition]int64, error) {
	defer w.enter()()
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	out := map[sink.Partition]int64{}
	for _, p := range parts {
		at, ok := w.t.progress[p]
		if !ok {
			at = sink.NoOffset
		}
		out[p] = at
	}
	return out, nil
}

func (w *tableWriter) NewBatch() sink.Batch {
	defer w.enter()()
	return &tableBatch{}
}

func (w *tableWriter) Commit(_ context.Context, b sink.Batch, moves []sink.Move) (sink.Commit, error) {
	defer w.enter()()
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	if w.t.fault != nil {
		if err := w.t.fault(w.t); err != nil {
			return sink.Commit{}, err
		}
	}
	for _, m := range moves {
		at, ok := w.t.progress[m.Partition]
		if !ok {
			at = sink.NoOffset
		}
		if at != m.From {
			return sink.Commit{}, &sink.FencedError{Table: "memory", Partition: m.Partition, Want: m.From, Got: at}
		}
	}
	batch := b.(*tableBatch)
	for _, m := range moves {
		w.t.progress[m.Partition] = m.To
	}
	w.t.rows = append(w.t.rows, batch.rows...)
	w.t.metas = append(w.t.metas, batch.metas...)
	w.t.version++
	w.t.commits++
	return sink.Commit{Version: w.t.version, Rows: int64(len(batch.rows)), Attempts: 1}, nil
}

func (w *tableWriter) Close() error { return nil }

type tableBatch struct {
	rows  []string
	metas []sink.Meta
}

func (b *tableBatch) Append(_, value any, meta *sink.Meta) error {
	v := *value.(*string)
	if strings.HasPrefix(v, "bad") {
		return &sink.RowError{Err: errors.New("can't be stored")}
	}
	b.rows = append(b.rows, v)
	b.metas = append(b.metas, *meta)
	return nil
}
func (b *tableBatch) Rows() int    { return len(b.rows) }
func (b *tableBatch) Bytes() int64 { return int64(100 * len(b.rows)) }
func (b *tableBatch) Release()     {}

// landing is a topology that lands a topic as it is.
func landing(name string, tables ...*table) *topology.Plan {
	b := topology.NewBuilder(name)
	s := b.Stream(name+"-in", serde.String, serde.String)
	for i, t := range tables {
		s.Filter(func(_, v string) bool { return v != "drop" }).ToLake(t, topology.Name(fmt.Sprint("table", i)))
	}
	p, err := b.Build()
	if err != nil {
		panic(err)
	}
	return p
}

// countsLanded lands the results of a topology with state.
func countsLanded(name string, t *table) *topology.Plan {
	b := topology.NewBuilder(name)
	b.Stream(name+"-in", serde.String, serde.String).
		GroupBy(func(_, v string) string { return v }, topology.Name("by-value")).
		Count(topology.Store("counts")).
		ToStream().
		Map(func(k string, n int64) (string, string) { return k, fmt.Sprintf("%s:%d", k, n) }).
		ToLake(t, topology.Name("counts-table"))
	p, err := b.Build()
	if err != nil {
		panic(err)
	}
	return p
}

func unique(from, n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprint("u", from+i)
	}
	return values
}

var quickLake = Lake(LakeBatches{Every: 100 * time.Millisecond})

// A topic is landed as it is, over restarts, by its own offsets.
func TestLandedOnceOverRestarts(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "landing")
		a.create("in", 3)
		tab := newTable()
		for round := range 3 {
			a.produce("in", 3, unique(round*1000, 1000)...)
			i := a.start(landing(a.name, tab), "i1", quickLake)
			eventually(t, "landed", func() bool { return tab.count() >= (round+1)*1000 })
			i.await(t, "shown in Kafka", func(Stats) bool {
				got, err := kadm.NewClient(a.c.Client(t)).FetchOffsets(t.Context(), a.name)
				var sum int64
				got.Each(func(o kadm.OffsetResponse) { sum += o.At })
				return err == nil && sum == int64((round+1)*1000)
			})
			i.stop(t)
		}
		if err := tab.once(unique(0, 3000)); err != nil {
			t.Error(err)
		}
		commits := tab.commits
		i := a.start(landing(a.name, tab), "i1", quickLake)
		i.await(t, "runs", func(s Stats) bool { return s.State == Running && s.Lag == 0 })
		i.stop(t)
		if tab.commits != commits {
			t.Errorf("%d commits to the table without a new record", tab.commits-commits)
		}
	})
}

// Two tables fed by one task, with commits that fail, are refused because another writer came first, and take long, and tasks that move.
func TestLandedOnceInBadWeather(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "weather")
		a.create("in", 4)
		rnd := rand.New(rand.NewPCG(1, 2))
		tabs := []*table{newTable(), newTable()}
		for _, tab := range tabs {
			tab.fault = func(*table) error {
				switch rnd.IntN(6) {
				case 0:
					return errors.New("the store is away")
				case 1:
					return &sink.FencedError{Table: "memory"}
				case 2:
					time.Sleep(30 * time.Millisecond)
				}
				return nil
			}
		}
		var mu sync.Mutex // the random source is shared by both tables
		for _, tab := range tabs {
			inner := tab.fault
			tab.fault = func(t *table) error { mu.Lock(); defer mu.Unlock(); return inner(t) }
		}
		i1 := a.start(landing(a.name, tabs...), "i1", quickLake)
		produced := 0
		feed := func() {
			a.produce("in", 4, unique(produced, 500)...)
			produced += 500
			time.Sleep(100 * time.Millisecond)
		}
		for range 5 {
			feed()
		}
		i2 := a.start(landing(a.name, tabs...), "i2", quickLake)
		for range 10 {
			feed()
		}
		i1.stop(t)
		feed()
		for _, tab := range tabs {
			eventually(t, "landed", func() bool { return tab.count() >= produced })
		}
		i2.stop(t)
		for i, tab := range tabs {
			if err := tab.once(unique(0, produced)); err != nil {
				t.Errorf("table %d: %v", i, err)
			}
		}
	})
}

// Behind state there is an internal topic: rows are exactly once, carry the source's coordinates, and what is landed is purged.
func TestResultsOfStateAreLandedOnce(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "staged")
		a.create("in", 2)
		tab := newTable()
		i := a.start(countsLanded(a.name, tab), "i1", quickLake, PurgeInterval(200*time.Millisecond))
		a.produce("in", 2, numbered(600, 30)...)
		eventually(t, "the first landed", func() bool { return tab.count() >= 300 })
		i.stop(t)
		a.produce("in", 2, numbered(600, 30)...)
		i = a.start(countsLanded(a.name, tab), "i2", quickLake, PurgeInterval(200*time.Millisecond)) // another machine
		eventually(t, "landed", func() bool { return tab.count() >= 1200 })
		var want []string
		for k := range 30 {
			for n := range 40 {
				want = append(want, fmt.Sprintf("v%d:%d", k, n+1))
			}
		}
		if err := tab.once(want); err != nil {
			t.Error(err)
		}
		for _, m := range tab.metas {
			if m.Topic != a.topic("in") {
				t.Fatalf("a row comes from %q, want the source topic", m.Topic)
			}
		}
		lakeTopic := a.name + "-counts-table-lake"
		eventually(t, "landed records are purged", func() bool {
			starts, err := kadm.NewClient(a.c.Client(t)).ListStartOffsets(t.Context(), lakeTopic)
			var sum int64
			starts.Each(func(o kadm.ListedOffset) { sum += o.Offset })
			return err == nil && sum >= 1200
		})
		i.stop(t)
	})
}

// Rows that can't be stored go to a topic, once each, in spite of replays.
func TestLakeDeadLettersComeOnce(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "lakedead")
		a.create("in", 1)
		a.create("dead", 1)
		dead := a.read("dead")
		tab := newTable()
		away := true
		tab.fault = func(*table) error {
			if away {
				return errors.New("the store is away")
			}
			return nil
		}
		handlers := ErrorHandlers(processors.Handlers{Processing: processors.DeadLetterOnError(a.topic("dead"))})
		a.produce("in", 1, "u0", "bad1", "u1", "bad2", "drop")
		i := a.start(landing(a.name, tab), "i1", quickLake, handlers, CloseTimeout(time.Second))
		eventually(t, "dead letters", func() bool { return len(dead.all()) == 2 })
		i.cancel() // nothing is landed, so all of it is read again
		<-i.ended
		i.ended <- nil
		tab.mu.Lock()
		away = false
		tab.mu.Unlock()
		a.produce("in", 1, "u2", "bad3")
		i = a.start(landing(a.name, tab), "i1", quickLake, handlers)
		eventually(t, "landed", func() bool { return tab.count() == 3 })
		eventually(t, "the third dead letter", func() bool { return len(dead.all()) >= 3 })
		i.stop(t)
		if err := tab.once([]string{"u0", "u1", "u2"}); err != nil {
			t.Error(err)
		}
		if got := dead.all(); len(got) != 3 {
			t.Errorf("%d dead letters, want 3", len(got))
		}
	})
}

// A table that has lost its progress, while Kafka knows that it was fed, is an error that names both.
func TestLostTableIsAnError(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "losttable")
	a.create("in", 1)
	a.produce("in", 1, unique(0, 10)...)
	tab := newTable()
	i := a.start(landing(a.name, tab), "i1", quickLake)
	eventually(t, "landed", func() bool { return tab.count() == 10 })
	i.stop(t)
	i = a.start(landing(a.name, newTable()), "i1", quickLake)
	err := i.failure(t)
	var bad *LakeProgressError
	if !errors.As(err, &bad) || bad.Group != 10 {
		t.Fatalf("got %v, want a LakeProgressError with the group's offset 10", err)
	}
}
