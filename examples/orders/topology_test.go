package orders_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/examples/orders"
	model "github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/schemas"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// An application is tested with a few records, written as a reader would tell them.
func TestOneOrder(t *testing.T) {
	registry, _ := newRegistry(t)
	plan, err := orders.Topology(orders.Config{Registry: registry, Lake: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	d := topologytest.New(t, plan)
	customers := topologytest.Input(d, orders.CustomerTopic, serde.String, orders.Avro[orders.Customer](registry, orders.CustomerTopic))
	events := topologytest.Input(d, orders.EventTopic, serde.String, orders.Avro[orders.Event](registry, orders.EventTopic))

	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	event := func(id, order string, after time.Duration, cents int64) {
		events.Pipe(order, orders.Event{
			EventID: id, OrderID: order, CustomerID: "c-1", Status: "placed", Amount: serde.DecimalOf(cents), EventTime: noon.Add(after),
		}, noon.Add(after).UnixMilli())
	}
	customers.Pipe("c-1", orders.Customer{CustomerID: "c-1", Name: "Ada", Region: "north", Since: noon}, noon.UnixMilli())
	event("e-1", "o-1", 0, 1250)
	event("e-1", "o-1", 0, 1250) // the producer tries again
	event("e-2", "o-2", 4*time.Minute, 1000)
	event("e-3", "o-3", 16*time.Minute, 500) // closes the first window
	event("e-4", "o-4", time.Minute, 9999)   // too late for it

	if raw := topologytest.LakeRows[orders.Event](d, orders.RawSink); len(raw) != 5 {
		t.Errorf("%d raw rows, want all 5 records", len(raw))
	}
	enriched := topologytest.LakeRows[orders.Enriched](d, orders.EnrichedSink)
	if len(enriched) != 4 || enriched[0].Value.Region != "north" || enriched[1].Meta.Topic != orders.EventTopic || enriched[1].Meta.Offset != 2 {
		t.Errorf("enriched rows: %+v", enriched)
	}
	got := topologytest.LakeRows[orders.RegionWindow](d, orders.RevenueSink)
	want := orders.RegionWindow{Region: "north", WindowStart: noon, WindowEnd: noon.Add(orders.WindowSize), Events: 2, RevenueCents: 2250}
	if len(got) != 1 {
		t.Fatalf("%d closed windows, want 1", len(got))
	}
	if diff := cmp.Diff(want, *got[0].Value); diff != "" {
		t.Error(diff)
	}
}

// A generated day, over three partitions, gives what the model says.
func TestDayMatchesModel(t *testing.T) {
	registry, ids := newRegistry(t)
	plan, err := orders.Topology(orders.Config{Registry: registry, Lake: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	d := topologytest.New(t, plan, topologytest.Partitions(model.Partitions), topologytest.ErrorHandlers(orders.Handlers()))
	date, err := model.ParseDate("2026-06-01")
	if err != nil {
		t.Fatal(err)
	}
	spec := model.Spec{Date: date, Orders: 1500, Seed: 7}
	for r := range spec.CustomerRecords(ids) {
		d.Pipe(topologytest.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp})
	}
	for r := range spec.Records(ids) {
		d.Pipe(topologytest.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp})
	}
	want := model.NewModel(spec)
	want.AddDay(date)

	if got := len(d.Read(orders.DeadLetters())); int64(got) != want.Quarantined {
		t.Errorf("%d dead letters, want %d", got, want.Quarantined)
	}
	if got := len(topologytest.LakeRows[orders.Event](d, orders.RawSink)); int64(got) != want.Raw.Rows {
		t.Errorf("%d raw rows, want %d", got, want.Raw.Rows)
	}
	var cents int64
	rows := topologytest.LakeRows[orders.Enriched](d, orders.EnrichedSink)
	for _, r := range rows {
		cents += r.Value.AmountCents
	}
	if int64(len(rows)) != want.Enriched.Rows || cents != want.Enriched.Cents {
		t.Errorf("%d enriched rows over %d cents, want %d over %d", len(rows), cents, want.Enriched.Rows, want.Enriched.Cents)
	}
	compareWindows(t, topologytest.LakeRows[orders.RegionWindow](d, orders.RevenueSink), want.Windows.Closed())
}

func compareWindows(t *testing.T, rows []topologytest.LakeRow[orders.RegionWindow], closed []model.WindowRow) {
	t.Helper()
	type key struct {
		region string
		start  int64
	}
	got := map[key][2]int64{}
	for _, r := range rows {
		k := key{r.Value.Region, r.Value.WindowStart.UnixMilli()}
		if _, twice := got[k]; twice {
			t.Errorf("window %v came out twice", k)
		}
		got[k] = [2]int64{r.Value.Events, r.Value.RevenueCents}
	}
	want := map[key][2]int64{}
	for _, w := range closed {
		want[key{w.Region, w.Start}] = [2]int64{w.Count, w.Cents}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(key{})); diff != "" {
		t.Errorf("closed windows (-want +got):\n%s", diff)
	}
}

func newRegistry(t *testing.T) (*serde.Registry, model.SchemaIDs) {
	t.Helper()
	registry := serde.NewMemoryRegistry()
	register := func(topic string) int32 {
		id, err := registry.Register(context.Background(), serde.Subject(topic, false), schemas.MustStream(topic).Schema)
		if err != nil {
			t.Fatal(err)
		}
		return int32(id)
	}
	return registry, model.SchemaIDs{OrderEvents: register(orders.EventTopic), Customers: register(orders.CustomerTopic)}
}
