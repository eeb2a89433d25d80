package shop

import "iter"

// Flaw is why a record can't be decoded.
type Flaw uint8

// The flaws.
const (
	Sound         Flaw = iota // none
	BadMagic                  // JSON text instead of Confluent's wire format
	Truncated                 // the value ends in the middle
	UnknownSchema             // a schema id that no registry has given
	NullValue                 // a null where every value is an event
	flawKinds
)

var flawNames = [flawKinds]string{"sound", "bad magic byte", "truncated", "unknown schema id", "null value"}

func (f Flaw) String() string { return flawNames[f] }

// Event is one record of the stream, before its encoding. Where Flaw isn't Sound, only Flaw, OrderDay, Order, Arrival and
// Partition count.
type Event struct {
	Flaw      Flaw
	Repeat    bool  // a repetition of an event that has arrived before, perhaps the day before
	Step      Step  // what happened
	Partition int32 // of the order topic
	Order     int   // the order's number among those of its day
	OrderDay  int64 // the day it was placed, counted from 1970
	Customer  int   // the customer's number
	Cents     int64 // the order's value
	Coupon    string
	Time      int64 // when it happened, in ms since 1970
	Arrival   int64 // when the record was sent, in ms since 1970: the record's timestamp
	ID        [16]byte
}

// OrderID is the event's order_id, and the record's key.
func (e *Event) OrderID() string { return string(appendOrderID(nil, e.OrderDay, e.Order)) }

// CustomerID is the event's customer_id.
func (e *Event) CustomerID() string { return string(customerID(nil, e.Customer)) }

// EventID is the event's event_id, a UUID in text.
func (e *Event) EventID() string { return string(appendUUID(nil, &e.ID)) }

// flaws is how many records of a day can't be decoded: of each kind one, and one more for every 2,000 orders.
func (s Spec) flaws() int { return (int(flawKinds) - 1) * (1 + s.Orders/2000) }

func (s Spec) drawFlaw(i int) draw {
	return drawFor(s.Seed, forFlaw, uint64(s.dayNumber()), uint64(i))
}

// Events yields the day's events in the order of their arrival. The Event is reused: copy what you keep.
func (s Spec) Events() iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		today := s.dayNumber()
		var (
			e   Event
			key []byte
		)
		for _, slot := range s.schedule() {
			if slot.ago() == flawed {
				s.flawedEvent(&e, slot)
			} else {
				s.soundEvent(&e, slot)
			}
			e.Arrival = today*day + slot.ms()
			key = appendOrderID(key[:0], e.OrderDay, e.Order)
			e.Partition = partitionOf(key)
			if !yield(&e) {
				return
			}
		}
	}
}

func (s Spec) soundEvent(e *Event, slot slot) {
	l := s.life(s.dayNumber()-int64(slot.ago()), slot.index())
	step := slot.step()
	*e = Event{
		Repeat: slot.repeat(), Step: step, Order: l.index, OrderDay: l.placedOn, Customer: l.customer, Cents: l.cents,
		Coupon: coupons[l.coupon], Time: l.at[step],
	}
	id := drawFor(s.Seed, forEventID, uint64(l.placedOn), uint64(l.index)<<stepBits|uint64(step))
	putUint64(e.ID[:8], id.next())
	putUint64(e.ID[8:], id.next())
	e.ID[6] = e.ID[6]&0x0f | 0x40 // version 4, as if it were random
	e.ID[8] = e.ID[8]&0x3f | 0x80
}

// flawedEvent gives a flawed record the key of an order of the day. The life of that order lends it its content.
func (s Spec) flawedEvent(e *Event, at slot) {
	d := s.drawFlaw(at.index())
	d.next() // the arrival
	s.soundEvent(e, makeSlot(at.ms(), 0, int(d.below(int64(s.Orders))), Placed, 0))
	e.Flaw = Flaw(1 + at.index()%(int(flawKinds)-1))
}
