package orders

import (
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/schemas"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Names that others need.
const (
	ApplicationID = "order-totals"
	EventTopic    = "ods.demo.order_events"
	CustomerTopic = "ods.demo.customers"

	RawTable      = "raw/demo__order_events"
	EnrichedTable = "curated/demo__orders_enriched"
	RevenueTable  = "curated/demo__revenue_by_region"

	// The sinks' names are part of the tables' record of progress.
	RawSink      = "raw-order-events"
	EnrichedSink = "orders-enriched"
	RevenueSink  = "revenue-by-region"
)

// Windows of the revenue table, and how long event ids are remembered.
const (
	WindowSize  = 5 * time.Minute
	WindowGrace = 10 * time.Minute
	DedupWithin = 48 * time.Hour
)

// Config is what the application must be told.
type Config struct {
	Registry *serde.Registry
	// Lake is where the tables go: a folder or the URL of an object store.
	Lake string
	// LakeOptions are added to each table's.
	LakeOptions []lake.Option
}

// DeadLetters is the topic for what can't be decoded.
func DeadLetters() string { return schemas.MustStream(EventTopic).DeadLetters }

// Handlers sends what can't be decoded to the dead-letter topic.
func Handlers() processors.Handlers {
	return processors.Handlers{Deserialization: processors.DeadLetterOnError(DeadLetters())}
}

// Topology declares the application.
func Topology(cfg Config) (*topology.Plan, error) {
	b := topology.NewBuilder(ApplicationID)
	events := b.Stream(EventTopic, serde.String, Avro[Event](cfg.Registry, EventTopic), topology.Timestamps(eventTime))
	customers := b.Table(CustomerTopic, serde.String, Avro[Customer](cfg.Registry, CustomerTopic), topology.Store("customers"))

	events.ToLake(cfg.table(RawTable, lake.AvroSchema(schemas.MustStream(EventTopic).Schema), lake.SourceColumns()), topology.Name(RawSink))

	enriched := events.
		DedupBy(func(e Event) string { return e.EventID }, DedupWithin, topology.Store("seen-events")).
		SelectKey(func(_ string, e Event) string { return e.CustomerID }).
		Join(customers, enrich, topology.Name("by-customer"), topology.ValueSerde(serde.JSON[Enriched]()))
	enriched.ToLake(cfg.table(EnrichedTable, lake.SourceColumns()), topology.Name(EnrichedSink))

	enriched.
		GroupBy(func(_ string, e Enriched) string { return e.Region }, topology.Name("by-region")).
		Windowed(topology.Tumbling(WindowSize).Grace(WindowGrace)).
		Aggregate(func() Totals { return Totals{} }, addUp, topology.Store("revenue-by-region"), topology.ValueSerde(serde.JSON[Totals]())).
		EmitFinal(topology.Name("closed-windows")).
		ToStream().
		Map(regionWindow, topology.ValueSerde(serde.JSON[RegionWindow]())).
		ToLake(cfg.table(RevenueTable), topology.Name(RevenueSink))

	return b.Build()
}

// Avro is the serde of a declared stream's values. It keeps to the stream's own subject on internal topics, too, so that the registry
// holds no copies.
func Avro[T any](registry *serde.Registry, topic string) serde.Serde[T] {
	return serde.Avro[T](registry, schemas.MustStream(topic).Schema, serde.AvroSubject(serde.Subject(topic, false)))
}

func (cfg Config) table(name string, opts ...lake.Option) sink.Sink {
	return lake.Delta(cfg.Lake+"/"+name, append(opts, cfg.LakeOptions...)...)
}

var eventTime processors.TimestampExtractor[string, Event] = func(r *processors.Record[string, Event], _ *processors.RawRecord, _ int64) (int64, error) {
	return r.Value.EventTime.UnixMilli(), nil
}

func enrich(e Event, c Customer) Enriched {
	cents, _ := e.Amount.Int64() // the schema's twelve digits fit
	return Enriched{
		EventID: e.EventID, OrderID: e.OrderID, CustomerID: e.CustomerID, Region: c.Region, Status: e.Status,
		AmountCents: cents, EventTime: e.EventTime, Coupon: e.Coupon,
	}
}

func addUp(_ string, e Enriched, t Totals) Totals {
	return Totals{Events: t.Events + 1, Cents: t.Cents + e.AmountCents}
}

func regionWindow(w topology.Window[string], t Totals) (string, RegionWindow) {
	return w.Key, RegionWindow{
		Region: w.Key, WindowStart: time.UnixMilli(w.Window.Start).UTC(), WindowEnd: time.UnixMilli(w.Window.End).UTC(),
		Events: t.Events, RevenueCents: t.Cents,
	}
}
