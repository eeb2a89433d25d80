package orders

import (
	"time"

	"github.com/tributary-io/tributary/serde"
)

// Event is a value of ods.demo.order_events.
type Event struct {
	EventID    string        `avro:"event_id"`
	OrderID    string        `avro:"order_id"`
	CustomerID string        `avro:"customer_id"`
	Status     string        `avro:"status"`
	Amount     serde.Decimal `avro:"amount"` // in euros, two decimals
	EventTime  time.Time     `avro:"event_time"`
	Coupon     *string       `avro:"coupon"`
}

// Customer is a value of ods.demo.customers.
type Customer struct {
	CustomerID string    `avro:"customer_id"`
	Name       string    `avro:"name"`
	Email      *string   `avro:"email"`
	Region     string    `avro:"region"`
	Since      time.Time `avro:"since"`
}

// Enriched is a row of curated/demo__orders_enriched: an event with its customer's region.
type Enriched struct {
	EventID     string    `json:"event_id" lake:"event_id,comment=Identifies the event; no other row has it."`
	OrderID     string    `json:"order_id" lake:"order_id,ods.key=true,comment=Identifies the order."`
	CustomerID  string    `json:"customer_id" lake:"customer_id,ods.pii=true,comment=Who ordered."`
	Region      string    `json:"region" lake:"region,comment=The customer's region when the event came."`
	Status      string    `json:"status" lake:"status,comment=What happened: placed, shipped, delivered or returned."`
	AmountCents int64     `json:"amount_cents" lake:"amount,decimal(12,2),comment=The order's value in euros."`
	EventTime   time.Time `json:"event_time" lake:"event_time,comment=When it happened."`
	Coupon      *string   `json:"coupon,omitempty" lake:"coupon,comment=The voucher that was used."`
}

// Totals is what a window of a region adds up.
type Totals struct {
	Events int64 `json:"events"`
	Cents  int64 `json:"cents"`
}

// RegionWindow is a row of curated/demo__revenue_by_region: one closed window of one region.
type RegionWindow struct {
	Region       string    `json:"region" lake:"region"`
	WindowStart  time.Time `json:"window_start" lake:"window_start,comment=Inclusive."`
	WindowEnd    time.Time `json:"window_end" lake:"window_end,comment=Exclusive."`
	Events       int64     `json:"events" lake:"events,comment=Events that came in time."`
	RevenueCents int64     `json:"revenue_cents" lake:"revenue,decimal(18,2),comment=The sum of their amounts in euros."`
}
