package workload

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tributary-io/tributary/bench/internal/input"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Order is an order event.
type Order struct {
	EventID string  `json:"event_id"`
	OrderID string  `json:"order_id"`
	Status  string  `json:"status"`
	Amount  float64 `json:"amount"`
	TS      int64   `json:"ts"`
}

// Customer is a row of the customers table.
type Customer struct {
	CustomerID string `json:"customer_id"`
	Name       string `json:"name"`
	Bucket     int    `json:"bucket"`
}

// CountsStore is the store of workload d.
const CountsStore = "counts"

// windowGrace is long enough that no record of a backlog is late, however far apart the partitions are read.
const windowGrace = 2 * time.Hour

// Build declares a workload's topology for an application that writes to the topic out.
func Build(workload, application, out string, opts ...topology.BuilderOption) (*topology.Plan, error) {
	if workload == "i" { // a group with the callbacks that were written for goka
		return buildGroup(workload, application, out)
	}
	b := topology.NewBuilder(application, opts...)
	switch workload {
	case "a": // stateless: what comes in goes out
		b.Stream(input.Orders, serde.Bytes, serde.Bytes).MapValues(func(v []byte) []byte { return v }).To(out)
	case "b": // each event once, for good
		b.Stream(input.Orders, serde.Bytes, serde.Bytes).TryDedupBy(eventID, topology.Forever, topology.Store("seen")).To(out)
	case "c": // orders with their customer, counted by status and bucket in windows of a minute
		orders := b.Stream(input.OrdersByCustomer, serde.String, serde.JSON[Order]())
		customers := b.Table(input.CustomerTable, serde.String, serde.JSON[Customer](), topology.Store("customers"))
		orders.LeftJoin(customers, statusAndBucket).
			GroupBy(func(_ string, group string) string { return group }, topology.Name("by-group")).
			Windowed(topology.Tumbling(time.Minute).Grace(windowGrace)).
			Count(topology.Store("windows")).
			ToStream().
			Map(func(w topology.Window[string], n int64) (string, int64) {
				return w.Key + "@" + strconv.FormatInt(w.Window.Start, 10), n
			}).
			To(out)
	case "d": // records by key, a million keys
		b.Stream(input.Orders, serde.String, serde.Bytes).GroupByKey().Count(topology.Store(CountsStore))
	case "d-out": // the same with its results in a topic
		b.Stream(input.Orders, serde.String, serde.Bytes).GroupByKey().Count(topology.Store(CountsStore)).ToStream().To(out)
	case "h": // nothing to do
		b.Stream(input.Empty, serde.Bytes, serde.Bytes).ForEach(func(_, _ []byte) {})
	default:
		return nil, fmt.Errorf("there is no workload %q", workload)
	}
	return b.Build()
}

// Input names the topic that a workload's records are counted by.
func Input(workload string) string {
	switch workload {
	case "c":
		return input.OrdersByCustomer
	case "h":
		return input.Empty
	}
	return input.Orders
}

var orders = serde.JSON[Order]()

func eventID(_, value []byte) (string, error) {
	o, err := orders.Decode(value)
	return o.EventID, err
}

func statusAndBucket(o Order, c *Customer) string {
	if c == nil {
		return o.Status + "|none"
	}
	return o.Status + "|" + strconv.Itoa(c.Bucket)
}
