package ods_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/devbroker"
	"github.com/tributary-io/tributary/examples/ods"
	"github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/internal/realregistry"
	"github.com/tributary-io/tributary/internal/verify"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/serde"
)

// place is what a process of its own must be told.
type place struct {
	Brokers                             []string
	Registry, Lake, Declarations, State string
}

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		asProgram()
	}
	child.Main(map[string]child.Role{"serve": child.As(func(ctx context.Context, at place) error {
		p := &ods.Platform{Brokers: at.Brokers, Registry: at.Registry, Lake: at.Lake, Declarations: at.Declarations, State: at.State,
			Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Getenv: func(name string) string { return settings[name] }}
		return p.Serve(ctx, ods.Pace{Observe: 200 * time.Millisecond, Notice: 300 * time.Millisecond})
	})})
	realkafka.Main(m)
}

// asProgram is the example's program.
func asProgram() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := ods.Command(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ods:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

const patience = 4 * time.Minute

// emptied is a real Kafka on which nothing of the example is left: its topics and groups have the same names in each test.
func emptied(t *testing.T) []string {
	t.Helper()
	brokers := realkafka.Shared(t, 1).Addrs()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ours := func(names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "ods") })
	}
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		topics, topicErr := admin.ListTopics(t.Context())
		groups, groupErr := admin.ListGroups(t.Context())
		left, err := append(ours(topics.Names()), ours(groups.Groups())...), errors.Join(topicErr, groupErr)
		if err == nil && len(left) == 0 {
			return brokers
		}
		if time.Now().After(end) {
			t.Fatalf("of an earlier test are left: %v, %v", left, err)
		}
		// Whatever can't be deleted yet is tried again.
		_, _ = admin.DeleteTopics(t.Context(), ours(topics.Names())...)
		_, _ = admin.DeleteGroups(t.Context(), ours(groups.Groups())...)
	}
}

// life is the whole system, as a process that is killed, on a real Kafka with a real registry.
type life struct {
	*ods.Platform
	t       *testing.T
	process *child.Process
	logged  int // bytes that it had said when it was started last
	want    *shop.Model
	spec    shop.Spec // the last day sent
}

func newLife(t *testing.T) *life {
	p := platform(t, emptied(t), realregistry.Start(t).URL())
	if err := p.Declare(t.Context(), ods.OrderTopic, ods.StagedTopic); err != nil {
		t.Fatal(err)
	}
	spec := shop.Spec{Date: day.AddDate(0, 0, -1), Orders: 500, Seed: 5}
	return &life{Platform: p, t: t, want: shop.NewModel(spec), spec: spec}
}

// nextDay sends the next day.
func (l *life) nextDay() {
	l.t.Helper()
	l.spec = l.spec.Next()
	l.want.AddDay(l.spec.Date)
	if _, err := l.Emit(l.t.Context(), l.spec); err != nil {
		l.t.Fatal(err)
	}
}

// start starts the system, again.
func (l *life) start() {
	l.t.Helper()
	if l.process != nil {
		l.logged = len(l.process.Log())
		if err := l.process.Restart(); err != nil {
			l.t.Fatal(err)
		}
		return
	}
	at := place{l.Brokers, l.Registry, l.Lake, l.Declarations, l.State}
	var err error
	if l.process, err = child.Start("serve", at, filepath.Join(l.t.TempDir(), "log")); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		l.process.Kill()
		if l.t.Failed() {
			text := l.process.Log()
			l.t.Logf("%s", text[max(0, len(text)-6000):])
		}
	})
}

// await waits until the counts are as they shall be.
func (l *life) await(what string, ok func(ods.Counts) bool) {
	l.t.Helper()
	var last ods.Counts
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		c, err := l.Count(l.t.Context())
		if err == nil && ok(c) {
			return
		}
		if last = c; time.Now().After(end) {
			l.t.Fatalf("%s: not within %v: %v, %v", what, patience, last, err)
		}
		if !l.process.Running() {
			l.t.Fatalf("%s: the process has ended", what)
		}
	}
}

// stop ends the system in good order, once it has begun: before, SIGTERM ends it as it ends any program.
func (l *life) stop() {
	l.t.Helper()
	l.await("the system has begun", func(ods.Counts) bool { return len(l.process.Log()) > l.logged })
	if err := l.process.Stop(4 * time.Minute); err != nil {
		l.t.Fatal(err)
	}
}

// settle ends the system in good order, and lands what it has not come to: records behind the last row that make none.
func (l *life) settle() {
	l.t.Helper()
	l.stop()
	if err := l.Land(l.t.Context(), ods.OrderTopic, true); err != nil {
		l.t.Fatal(err)
	}
}

// TestKilledAtAnyMoment is the life of a stream on a real Kafka and a real registry. Sink, staging and publisher are one process, which is killed
// with -9 again and again. In the end DuckDB, delta-rs and a consumer count what the generator says.
func TestKilledAtAnyMoment(t *testing.T) {
	r := readers.Open(t)
	l := newLife(t)
	l.leaveOpen()
	l.nextDay()
	l.start()
	l.await("something has landed", func(c ods.Counts) bool { return c.Raw > 0 })
	l.process.Kill()
	l.nextDay()
	l.start()
	time.Sleep(200*time.Millisecond + rand.N(time.Second)) // wherever it is by then
	l.process.Kill()
	l.start()
	l.await("two days have landed", func(c ods.Counts) bool { return c.Raw >= l.want.Raw.Rows })
	l.settle()
	l.changes()
	l.start()
	channel := l.newerProducer()
	l.await("some of the newer producer's have landed", func(c ods.Counts) bool { return c.Raw > l.want.Raw.Rows-channel.rows })
	l.process.Kill()
	l.start()
	events := l.want.Distinct + channel.events
	l.await("all is staged", func(c ods.Counts) bool { return c.Raw >= l.want.Raw.Rows+channel.rows && c.Staged >= events })
	l.settle()
	if _, err := l.Publish(t.Context()); err != nil { // what the last notice was not followed by
		t.Fatal(err)
	}
	l.checkTables(r, channel)
	l.checkPublished(events)
	proof, err := l.Prove(t.Context(), ods.OrderTopic, 300)
	if err != nil || proof.Differing > 0 || proof.Rows != 300 {
		t.Errorf("the round trip: %+v, %v", proof, err)
	}
}

// leaveOpen does what a publisher does that is killed before its transaction ends.
func (l *life) leaveOpen() {
	l.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(l.Brokers...), kgo.TransactionalID("ods-publish"), kgo.UnknownTopicRetries(-1), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		l.t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		l.t.Fatal(err)
	}
	for n := range int32(30) {
		r := &kgo.Record{Topic: ods.StagedTopic, Partition: n % shop.Partitions, Value: []byte("never committed")}
		if err := client.ProduceSync(l.t.Context(), r).FirstErr(); err != nil {
			l.t.Fatal(err)
		}
	}
}

// changes changes the declaration while the system is down: a doc and a tag, which the next start publishes; a required field, which the registry
// refuses; and an optional one.
func (l *life) changes() {
	l.t.Helper()
	ctx := l.t.Context()
	place := filepath.Join(l.Lake, ods.RawTable)
	before, err := lake.Show(ctx, place, 1)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := ods.Reword.Apply(l.Declarations); err != nil {
		l.t.Fatal(err)
	}
	for range 2 { // the second start finds nothing to publish
		if err := l.Land(ctx, ods.OrderTopic, true); err != nil {
			l.t.Fatal(err)
		}
	}
	after, err := lake.Show(ctx, place, 1)
	if err != nil {
		l.t.Fatal(err)
	}
	if last := after.History[0]; after.Version != before.Version+1 || !last.Metadata || last.Added+last.Removed != 0 {
		l.t.Errorf("a changed doc took the table from version %d to %d: %+v", before.Version, after.Version, last)
	}
	if err := ods.RequireWarehouse.Apply(l.Declarations); err != nil {
		l.t.Fatal(err)
	}
	if err := l.Declare(ctx, ods.OrderTopic); err == nil {
		l.t.Error("the registry took a required field")
	} else {
		l.t.Logf("refused: %v", err)
	}
	for _, err := range []error{ods.RequireWarehouse.Undo(l.Declarations), ods.AddChannel.Apply(l.Declarations)} {
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// sent is what the newer producer has sent.
type sent struct{ rows, events int64 }

// newerProducer sends a day with the new field, beside the old producers.
func (l *life) newerProducer() (out sent) {
	l.t.Helper()
	l.nextDay()
	n, err := l.EmitChannel(l.t.Context(), l.spec, "web")
	if err != nil {
		l.t.Fatal(err)
	}
	seen := map[[16]byte]bool{}
	for e := range l.spec.Events() {
		if e.Flaw == shop.Sound {
			out.rows++
			seen[e.ID] = true
		}
	}
	if out.events = int64(len(seen)); n != out.rows {
		l.t.Errorf("the newer producer sent %d records, want %d", n, out.rows)
	}
	return out
}

// checkTables has readers of others count.
func (l *life) checkTables(r *readers.Readers, channel sent) {
	t := l.t
	t.Helper()
	raw, staging := filepath.Join(l.Lake, ods.RawTable), filepath.Join(l.Lake, ods.StagingTable)
	rows, events := l.want.Raw.Rows+channel.rows, l.want.Distinct+channel.events
	count := func(table, sql string, want map[string]int64) {
		t.Helper()
		row := r.DuckDB(t, table, sql).Rows[0]
		for column, n := range want {
			if got := row.Int(t, column); got != n {
				t.Errorf("DuckDB: %s: %s is %d, want %d", filepath.Base(filepath.Dir(table)), column, got, n)
			}
		}
	}
	count(raw, `select count(*) as n, count(distinct (_kafka_partition, _kafka_offset)) as places, count(distinct event_id) as events, count(channel) as channel,
		sum(case when channel is null then cast(amount * 100 as bigint) else 0 end)::bigint as cents from t`,
		map[string]int64{"n": rows, "places": rows, "events": events, "channel": channel.rows, "cents": l.want.Raw.Cents})
	count(staging, `select count(*) as n, count(distinct event_id) as events, count(channel) as channel from t`,
		map[string]int64{"n": events, "events": events, "channel": channel.events})
	for step := shop.Placed; step <= shop.Returned; step++ {
		count(raw, fmt.Sprintf("select count(*) as n from t where channel is null and status = '%v'", step), map[string]int64{"n": l.want.Raw.BySteps[step]})
	}
	d := r.DeltaRS(t, raw, readers.Txns("ods-sink/"+ods.OrderTopic+"/0"))
	if d.Count != rows || d.Configuration["ods.owner"] == "" || d.Configuration["ods.topic"] != ods.OrderTopic {
		t.Errorf("delta-rs: %d rows, want %d; properties %v", d.Count, rows, d.Configuration)
	}
	if d.Comment("coupon") != "The code of the voucher that was used, null without one." || d.Field("coupon", "ods.sensitivity") != "confidential" ||
		d.Field("customer_id", "ods.pii") != true || d.Comment("channel") == "" {
		t.Errorf("delta-rs: coupon is %q, %v; customer_id's pii is %v; channel is %q", d.Comment("coupon"), d.Field("coupon", "ods.sensitivity"),
			d.Field("customer_id", "ods.pii"), d.Comment("channel"))
	}
	letters := int64(0)
	for _, err := range verify.Committed(t.Context(), []kgo.Opt{kgo.SeedBrokers(l.Brokers...)}, ods.OrderTopic+".dead_letters") {
		if err != nil {
			t.Fatal(err)
		}
		letters++
	}
	if want := l.want.Quarantined - l.want.ByFlaw[shop.NullValue]; letters != want {
		t.Errorf("%d dead letters, want %d", letters, want)
	}
	if d := r.DeltaRS(t, staging); d.Count != events {
		t.Errorf("delta-rs: %d staged rows, want %d", d.Count, events)
	}
}

// checkPublished reads the published stream: each event once, in the order of the raw topic.
func (l *life) checkPublished(events int64) {
	t := l.t
	t.Helper()
	registry, err := serde.NewRegistry(l.Registry)
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	schema, err := os.ReadFile(filepath.Join(l.Declarations, ods.StagedTopic+".avsc"))
	if err != nil {
		t.Fatal(err)
	}
	decode := serde.Avro[shop.OrderEvent](registry, string(schema))
	seen := map[string]bool{}
	last := map[int32]int64{}
	for r, err := range l.Published(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := decode.Decode(r.Value)
		if err != nil || seen[e.EventID] || string(r.Key) != e.OrderID {
			t.Fatalf("partition %d offset %d: event %s of order %s (key %s): twice is %t, %v", r.Partition, r.Offset, e.EventID, e.OrderID, r.Key, seen[e.EventID], err)
		}
		seen[e.EventID] = true
		raw, err := strconv.ParseInt(string(r.Headers[0].Value), 10, 64)
		if before, ok := last[r.Partition]; err != nil || ok && raw <= before {
			t.Fatalf("partition %d offset %d: raw offset %d behind %d, %v", r.Partition, r.Offset, raw, before, err)
		}
		last[r.Partition] = raw
	}
	if int64(len(seen)) != events {
		t.Errorf("%d events are published, want %d", len(seen), events)
	}
}

// The demonstration is the same on a real cluster.
func TestDemoOnRealKafka(t *testing.T) {
	r, err := devbroker.StartRegistry(devbroker.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	demo := ods.Demo{Platform: platform(t, emptied(t), r.URL()), Spec: shop.Spec{Date: day, Orders: 60, Seed: 3}, Rows: 300, Out: &out}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	if err := demo.Run(ctx); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
}
