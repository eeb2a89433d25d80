package chaos

import (
	"path/filepath"
	"strconv"
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// The application's names.
const (
	applicationID = "chaos"

	orderTopic    = "orders"    // events of orders, by customer
	paymentTopic  = "payments"  // by order
	customerTopic = "customers" // a table, complete before all else

	paidTopic   = "paid"   // each event of an order with each payment of it
	totalTopic  = "totals" // by region
	closedTopic = "closed" // windows by region, once each

	orderTable  = "orders"
	windowTable = "windows"

	seenStore  = "seen"
	totalStore = "totals"
)

// Times of the application. A run's event time is shorter than the grace by far, and its last records are later than all windows' ends
// and their grace (see feed.close). All of it lies in the hours before now: brokers refuse timestamps of the future, and take what is
// older than a changelog's retention.
const (
	windowSize  = 10 * time.Second
	windowGrace = 2 * time.Hour
	joinWithin  = 3 * time.Hour
	dedupWithin = 48 * time.Hour
	timeBack    = 6 * time.Hour // where event time begins
	timeClose   = 2 * time.Hour // where the closing records are
)

type order struct {
	ID       string // of the event; a repeated event has the same
	Order    string
	Customer string
	Cents    int64
}

type payment struct {
	ID    string
	Order string
	Cents int64
}

type customer struct {
	Region string
}

type enriched struct {
	ID, Order, Customer, Region string
	Cents                       int64
}

type paid struct {
	Event, Payment string
	Cents          int64
}

type totals struct {
	Count, Cents int64
}

func (t totals) add(e enriched) totals { return totals{t.Count + 1, t.Cents + e.Cents} }

type closedWindow struct {
	Region       string
	Start        int64
	Count, Cents int64
}

// plan declares the application. Its tables are below the folder.
func plan(lakeDir string) (*topology.Plan, error) {
	b := topology.NewBuilder(applicationID, topology.StrictNames())
	customers := b.Table(customerTopic, serde.String, serde.JSON[customer](), topology.Store("customers"))
	payments := b.Stream(paymentTopic, serde.String, serde.JSON[payment]())
	orders := b.Stream(orderTopic, serde.String, serde.JSON[order]()).
		DedupBy(func(o order) string { return o.ID }, dedupWithin, topology.Store(seenStore)).
		Join(customers, func(o order, c customer) enriched {
			return enriched{o.ID, o.Order, o.Customer, c.Region, o.Cents}
		}, topology.Name("with-customer"), topology.ValueSerde(serde.JSON[enriched]()))

	orders.ToLake(lake.Delta(filepath.Join(lakeDir, orderTable)), topology.Name("orders-table"))

	orders.SelectKey(func(_ string, e enriched) string { return e.Order }).
		JoinStream(payments, func(e enriched, p payment) paid { return paid{e.ID, p.ID, e.Cents + p.Cents} },
			topology.JoinWithin(joinWithin), topology.Name("with-payment"), topology.Store("with-payment"),
			topology.ValueSerde(serde.JSON[enriched]()), topology.OtherValueSerde(serde.JSON[payment]())).
		To(paidTopic, topology.ValueSerde(serde.JSON[paid]()))

	byRegion := orders.GroupBy(func(_ string, e enriched) string { return e.Region }, topology.Name("by-region"))
	byRegion.
		Aggregate(func() totals { return totals{} }, func(_ string, e enriched, t totals) totals { return t.add(e) },
			topology.Store(totalStore), topology.ValueSerde(serde.JSON[totals]())).
		ToStream().To(totalTopic)

	closed := byRegion.
		Windowed(topology.Tumbling(windowSize).Grace(windowGrace)).
		Aggregate(func() totals { return totals{} }, func(_ string, e enriched, t totals) totals { return t.add(e) },
			topology.Store("windows"), topology.ValueSerde(serde.JSON[totals]())).
		EmitFinal(topology.Name("closed-windows")).
		ToStream().
		Map(func(w topology.Window[string], t totals) (string, closedWindow) {
			return w.Key + "@" + strconv.FormatInt(w.Window.Start, 10), closedWindow{w.Key, w.Window.Start, t.Count, t.Cents}
		}, topology.ValueSerde(serde.JSON[closedWindow]()))
	closed.To(closedTopic)
	closed.ToLake(lake.Delta(filepath.Join(lakeDir, windowTable)), topology.Name("windows-table"))
	return b.Build()
}
