package input

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// Customers is the number of rows of the customers table.
const Customers = 100_000

// Base is the event time of the first record in ms: 2026-01-01T00:00:00Z. The events of one run span an hour.
const Base int64 = 1_767_225_600_000

const (
	spanMicros  = 3_600_000_000
	recent      = 1000 // a repeat is one of so many events before it
	repeatEvery = 10
)

var statuses = [...]string{"placed", "shipped", "delivered", "returned"}

// Event is one order event.
type Event struct {
	Order     int
	Value     []byte // JSON; not to be changed
	Timestamp int64  // ms
}

// Generator gives events, the same for the same arguments. New events walk a permutation of the orders, so that the first keys of
// them have differing ones.
type Generator struct {
	keys       int64
	stepMicros int64
	state      uint64 // of splitmix64
	fresh, n   int64
	last       [recent]Event
	next       int // in last
}

// NewGenerator makes a generator of records that span an hour, of the given number of orders.
func NewGenerator(seed uint64, keys, records int) *Generator {
	return &Generator{keys: int64(keys), stepMicros: spanMicros / int64(records), state: seed*0x9E3779B97F4A7C15 + 1}
}

func (g *Generator) draw() uint64 {
	g.state += 0x9E3779B97F4A7C15
	z := g.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Next gives the next event.
func (g *Generator) Next() Event {
	ts := Base + g.n*g.stepMicros/1000
	r := g.draw()
	repeats := g.n >= recent && r%repeatEvery == 0
	g.n++
	if repeats {
		e := g.last[(r>>8)%recent]
		e.Timestamp = ts
		return e
	}
	e := Event{Order: g.newOrder(), Timestamp: ts}
	e.Value = g.value(e.Order, ts)
	g.last[g.next] = e
	g.next = (g.next + 1) % recent
	return e
}

// newOrder steps by primes, which are coprime with powers of ten.
func (g *Generator) newOrder() int {
	pass := g.fresh / g.keys
	step := int64(611_953)
	if pass%2 == 1 {
		step = 746_773
	}
	order := (g.fresh*step + pass) % g.keys
	g.fresh++
	return int(order)
}

func (g *Generator) value(order int, ts int64) []byte {
	status := statuses[g.draw()&3]
	cents := 100 + g.draw()%50_000
	b := append(make([]byte, 0, 160), `{"event_id":"`...)
	b = appendUUID(b, g.draw(), g.draw())
	b = append(b, `","order_id":"o-`...)
	b = strconv.AppendInt(b, int64(order), 10)
	b = append(b, `","status":"`...)
	b = append(b, status...)
	b = append(b, `","amount":`...)
	b = strconv.AppendUint(b, cents/100, 10)
	b = append(b, '.', byte('0'+cents/10%10), byte('0'+cents%10))
	b = append(b, `,"ts":`...)
	b = strconv.AppendInt(b, ts, 10)
	return append(b, '}')
}

func appendUUID(dst []byte, high, low uint64) []byte {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], high)
	binary.BigEndian.PutUint64(raw[8:], low)
	for i, part := range [...][]byte{raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}

// OrderKey is the key of an order's events.
func OrderKey(order int) string { return "o-" + strconv.Itoa(order) }

// CustomerKey is the key of a customer, and of events by customer.
func CustomerKey(customer int) string { return "c-" + strconv.Itoa(customer%Customers) }

// CustomerValue is a customer's row.
func CustomerValue(c int) []byte {
	n := strconv.Itoa(c)
	return []byte(`{"customer_id":"c-` + n + `","name":"Customer ` + n + `","bucket":` + strconv.Itoa(c%16) + `}`)
}
