package shop

import (
	"time"

	"github.com/tributary-io/tributary/serde"
)

// OrderEvent is a value of ods.demo.order_events.
type OrderEvent struct {
	EventID    string        `avro:"event_id"`
	OrderID    string        `avro:"order_id"`
	CustomerID string        `avro:"customer_id"`
	Status     string        `avro:"status"`
	Amount     serde.Decimal `avro:"amount"` // scale 2
	EventTime  time.Time     `avro:"event_time"`
	Coupon     *string       `avro:"coupon"`
}

// Cents returns the amount in cents; 0 if it has none or more than 64 bits, which the schema excludes.
func (e *OrderEvent) Cents() int64 {
	cents, _ := e.Amount.Int64()
	return cents
}

// Customer is a value of ods.demo.customers.
type Customer struct {
	CustomerID string    `avro:"customer_id"`
	Name       string    `avro:"name"`
	Email      *string   `avro:"email"`
	Region     string    `avro:"region"`
	Since      time.Time `avro:"since"`
}
