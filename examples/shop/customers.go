package shop

import (
	"fmt"
	"iter"
)

// regions have a name that isn't ASCII on purpose.
var regions = [...]string{"north", "south", "east", "west", "øresund"}

// Regions lists the sales regions.
func Regions() []string { return regions[:] }

// Customers is how many customer ids orders refer to.
func (s Spec) Customers() int { return min(max(s.Orders/10, 20), 200_000) }

// customer is what the compacted topic says about one customer in the end, and how it came to it.
type customer struct {
	number   int
	unknown  bool // no record at all
	deleted  bool // a null after the record
	moved    bool // a first record with another region
	region   int
	since    int32 // day number
	hasEmail bool
}

func (s Spec) customer(number int) customer {
	d := drawFor(s.Seed, forCustomer, uint64(number), 0)
	c := customer{number: number, region: int(d.below(int64(len(regions))*2)) / 2}
	if d.permille(400) {
		c.region = 0 // some regions are busier
	}
	c.unknown = d.permille(4)
	c.deleted = !c.unknown && d.permille(4)
	c.moved = d.permille(100)
	c.since = int32(epochMS/day) - int32(d.below(2000))
	c.hasEmail = d.permille(900)
	return c
}

// RegionOf returns the region that the customers table has for the number in the end; ok is false if the customer isn't in it.
func (s Spec) RegionOf(number int) (region string, ok bool) {
	c := s.customer(number)
	return regions[c.region], !c.unknown && !c.deleted
}

func customerID(dst []byte, number int) []byte { return appendPadded(append(dst, "c-"...), number, 6) }

// CustomerRecords yields the records of the customers topic, in their order. They depend on Orders and Seed only, not on the
// date, and are older than every order event; a second emission changes nothing in the table. Memory as for Records.
func (s Spec) CustomerRecords(ids SchemaIDs) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		var mem arena
		for number := range s.Customers() {
			c := s.customer(number)
			if c.unknown {
				continue
			}
			emit := func(version int, value []byte) bool {
				key := mem.keep(customerID(mem.scratch(), number))
				return yield(Record{
					Topic: CustomerTopic, Partition: partitionOf(key), Key: key, Value: value,
					Timestamp: epochMS + int64(number)*4 + int64(version),
				})
			}
			if c.moved {
				first := c
				first.region = (c.region + 1) % len(regions)
				if !emit(0, mem.keep(first.appendValue(mem.scratch(), ids.Customers))) {
					return
				}
			}
			if !emit(1, mem.keep(c.appendValue(mem.scratch(), ids.Customers))) {
				return
			}
			if c.deleted && !emit(2, nil) {
				return
			}
		}
	}
}

func (c *customer) appendValue(dst []byte, schemaID int32) []byte {
	dst = appendFrame(dst, schemaID)
	dst = appendString(dst, string(customerID(nil, c.number)))
	dst = appendString(dst, fmt.Sprintf("Customer %d", c.number))
	if c.hasEmail {
		dst = appendString(appendLong(dst, 1), fmt.Sprintf("c%d@example.org", c.number))
	} else {
		dst = appendLong(dst, 0)
	}
	dst = appendString(dst, regions[c.region])
	return appendLong(dst, int64(c.since))
}
