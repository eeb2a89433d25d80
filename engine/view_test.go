package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// table writes rows to a topic by the default partitioner; a nil value deletes. End decides the fate of the transaction.
func (a *app) table(suffix string, end kgo.TransactionEndTry, rows ...any) {
	a.t.Helper()
	client := a.c.Client(a.t, kgo.TransactionalID(a.name+"-writer"), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err := client.BeginTransaction(); err != nil {
		a.t.Fatal(err)
	}
	for i := 0; i < len(rows); i += 2 {
		r := &kgo.Record{Topic: a.topic(suffix), Key: []byte(rows[i].(string))}
		if rows[i+1] != nil {
			r.Value = []byte(rows[i+1].(string))
		}
		if err := client.ProduceSync(a.t.Context(), r).FirstErr(); err != nil {
			a.t.Fatal(err)
		}
	}
	if err := client.EndTransaction(a.t.Context(), end); err != nil {
		a.t.Fatal(err)
	}
	client.Close()
}

// runView runs a view until the returned function is called.
func (a *app) runView(opts ...Option) (v *View[string, string], updates *updateLog, stop func() error) {
	a.t.Helper()
	v, err := NewView(a.topic("table"), serde.String, serde.String, append([]Option{Brokers(a.c.Addrs...), Logger(testLog(a.t, "view"))}, opts...)...)
	if err != nil {
		a.t.Fatal(err)
	}
	updates = &updateLog{}
	v.OnUpdate(updates.add)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	a.t.Cleanup(func() { stop() })
	select {
	case <-v.Ready():
	case err := <-ended:
		a.t.Fatalf("Run: %v", err)
	case <-time.After(waitLimit):
		a.t.Fatal("the view isn't ready")
	}
	return v, updates, stop
}

type updateLog struct {
	mu   sync.Mutex
	all  []string
	live int
}

func (l *updateLog) add(u Update[string, string]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprint(u.Key, "=", u.Value, u.Deleted, u.Err))
	if !u.CatchingUp {
		l.live++
	}
}

func (l *updateLog) counts() (all, live int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all), l.live
}

func rowsOf(t *testing.T, v *View[string, string]) map[string]string {
	t.Helper()
	m := map[string]string{}
	for e, err := range v.All() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Timestamp == 0 {
			t.Errorf("%s has no time", e.Key)
		}
		m[e.Key] = e.Value
	}
	return m
}

// keysOf are the keys of rows, sorted.
func keysOf(t *testing.T, rows iter.Seq2[state.Entry[string, string], error]) (keys []string) {
	t.Helper()
	for e, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	return keys
}

// A view shows the last committed value of each key, follows the topic, and goes on from its disk.
func TestView(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		for _, kind := range []string{"memory", "disk"} {
			t.Run(kind, func(t *testing.T) { testView(t, newApp(t, c, "view-"+kind), kind == "disk") })
		}
	})
}

func testView(t *testing.T, a *app, disk bool) {
	a.create("table", 3)
	a.table("table", kgo.TryCommit, "a", "1", "b", "1", "c", "1", "d", "1", "a", "2", "b", nil)
	a.table("table", kgo.TryAbort, "a", "never", "e", "never")
	var opts []Option
	dir := filepath.Join(a.dir, "view")
	if disk {
		opts = append(opts, ViewOnDisk(dir))
	}
	v, updates, stop := a.runView(opts...)
	want := map[string]string{"a": "2", "c": "1", "d": "1"}
	if got := rowsOf(t, v); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("rows %v, want %v", got, want)
	}
	from, to := "b", "c"
	if got := keysOf(t, v.Range(&from, &to)); !slices.Equal(got, []string{"c"}) {
		t.Errorf("from b to c there are %v", got)
	}
	if got := keysOf(t, v.Prefix([]byte("d"))); !slices.Equal(got, []string{"d"}) {
		t.Errorf("with d begin %v", got)
	}
	if n := v.Behind(); n != 0 {
		t.Errorf("a view that is ready is %d offsets behind", n)
	}
	if all, live := updates.counts(); all != 6 || live != 0 {
		t.Errorf("%d updates, %d of them after the catching up", all, live)
	}
	a.table("table", kgo.TryCommit, "a", "3", "c", nil, "f", "")
	eventually(t, "it follows", func() bool { _, live := updates.counts(); return live == 3 })
	if e, ok, err := v.Get("a"); err != nil || !ok || e.Value != "3" {
		t.Errorf("a: %+v, %v, %v", e, ok, err)
	}
	if e, ok, err := v.Get("f"); err != nil || !ok || e.Value != "" {
		t.Errorf("f, which is empty: %+v, %v, %v", e, ok, err)
	}
	if _, ok, err := v.Get("c"); err != nil || ok {
		t.Errorf("c, which is deleted: %v, %v", ok, err)
	}
	if disk {
		second, err := NewView(a.topic("table"), serde.String, serde.String, Brokers(a.c.Addrs...), ViewOnDisk(dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := second.Run(t.Context()); err == nil {
			t.Error("a second view took the directory")
		}
	}
	if err := stop(); err != nil {
		t.Fatalf("Run: %v", err)
	}
	var absent *NotHereError
	if _, _, err := v.Get("a"); !errors.As(err, &absent) {
		t.Errorf("after the end: %v", err)
	}
	a.table("table", kgo.TryCommit, "g", "1")
	v, updates, _ = a.runView(opts...)
	if all, _ := updates.counts(); disk && all != 1 || !disk && all != 10 {
		t.Errorf("the second start read %d records", all)
	}
	if keys := keysOf(t, v.All()); !slices.Equal(keys, []string{"a", "d", "f", "g"}) {
		t.Errorf("keys %v", keys)
	}
}

// A copy on disk of a topic that was deleted and made anew is not taken for one of the new topic.
func TestViewOfATopicMadeAnew(t *testing.T) {
	c := brokertest.Embedded(t)
	a := newApp(t, c, "view-anew")
	a.create("table", 2)
	a.table("table", kgo.TryCommit, "old", "1", "older", "1")
	dir := filepath.Join(a.dir, "view")
	_, _, stop := a.runView(ViewOnDisk(dir))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	admin := kadm.NewClient(c.Client(t))
	if _, err := admin.DeleteTopic(t.Context(), a.topic("table")); err != nil {
		t.Fatal(err)
	}
	a.create("table", 2)
	a.table("table", kgo.TryCommit, "new", "1", "newer", "1", "newest", "1")
	v, _, _ := a.runView(ViewOnDisk(dir))
	if got := rowsOf(t, v); len(got) != 3 || got["new"] != "1" {
		t.Errorf("rows %v", got)
	}
	copies, err := filepath.Glob(filepath.Join(dir, "topic-*"))
	if err != nil || len(copies) != 1 {
		t.Errorf("copies: %v, %v", copies, err)
	}
}

// A copy whose next record the log no longer has is read anew, so that what was deleted meanwhile doesn't stay.
func TestViewBehindTheLog(t *testing.T) {
	c := brokertest.Embedded(t)
	a := newApp(t, c, "view-behind")
	a.create("table", 1)
	a.table("table", kgo.TryCommit, "gone", "1")
	dir := filepath.Join(a.dir, "view")
	_, _, stop := a.runView(ViewOnDisk(dir))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	a.table("table", kgo.TryCommit, "gone", nil, "kept", "1")
	admin := kadm.NewClient(c.Client(t))
	var cut kadm.Offsets
	cut.Add(kadm.Offset{Topic: a.topic("table"), Partition: 0, At: 3}) // the first record, its marker, the deletion
	if _, err := admin.DeleteRecords(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	v, _, _ := a.runView(ViewOnDisk(dir))
	if got := rowsOf(t, v); len(got) != 1 || got["kept"] != "1" {
		t.Errorf("rows %v", got)
	}
}

// Rows that a writer has put elsewhere than Kafka's default partitioner would are found where the option says, in stores and in views.
func TestPartitionStore(t *testing.T) {
	const partitions, rows = 3, 12
	a := newApp(t, brokertest.Embedded(t), "by-number")
	a.create("table", partitions)
	a.produce("table", partitions, numbered(rows, rows)...) // k7 to partition 7%3
	byNumber := func(key []byte, partitions int32) int32 {
		n, err := strconv.Atoi(strings.TrimPrefix(string(key), "k"))
		if err != nil {
			t.Error(err)
		}
		return int32(n) % partitions
	}
	b := topology.NewBuilder(a.name)
	b.Table(a.topic("table"), serde.String, serde.String, topology.Store("rows"))
	i := a.start(build(b), "i1", PartitionStore("rows", byNumber))
	stored, err := QueryKeyValue(i.Engine, "rows", serde.String, serde.String)
	if err != nil {
		t.Fatal(err)
	}
	i.await(t, "all rows are committed", func(s Stats) bool {
		n := 0
		for _, err := range stored.All() {
			if err == nil {
				n++
			}
		}
		return n == rows
	})
	v, _, _ := a.runView(PartitionStore(a.topic("table"), byNumber))
	for n := range rows {
		key := fmt.Sprint("k", n)
		if _, ok, err := stored.Get(key); !ok || err != nil {
			t.Errorf("%s in the store: %v, %v", key, ok, err)
		}
		if _, ok, err := v.Get(key); !ok || err != nil {
			t.Errorf("%s in the view: %v, %v", key, ok, err)
		}
		if loc, err := i.Locate(t.Context(), "rows", []byte(key)); err != nil || loc.Partition != int32(n%partitions) {
			t.Errorf("%s is located at %+v, %v", key, loc, err)
		}
	}
}

func TestViewErrors(t *testing.T) {
	if _, err := NewView[string, string]("t", serde.String, nil, Brokers("localhost:1")); err == nil {
		t.Error("no serde was taken")
	}
	if _, err := NewView("", serde.String, serde.String, Brokers("localhost:1")); err == nil {
		t.Error("no topic was taken")
	}
	c := brokertest.Embedded(t)
	v, err := NewView("nothing", serde.String, serde.String, Brokers(c.Addrs...))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Run(t.Context()); err == nil {
		t.Error("a topic that doesn't exist was read")
	}
	if err := v.Run(t.Context()); err == nil {
		t.Error("Run was called twice")
	}
}
