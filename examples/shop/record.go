package shop

import (
	"encoding/binary"
	"encoding/hex"
	"iter"
	"strconv"
	"time"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
)

// SchemaIDs are the ids under which the registry has the schemas. They are in the values, so they are part of what is emitted.
type SchemaIDs struct {
	OrderEvents, Customers int32
}

// Record is a record for a topic.
type Record struct {
	Topic      string
	Partition  int32 // that of Kafka's default partitioner
	Key, Value []byte
	Timestamp  int64 // ms since 1970
}

// Records yields the day's records in the order in which they are to be produced. Keys and values stay valid.
func (s Spec) Records(ids SchemaIDs) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		var mem arena
		for e := range s.Events() {
			r := Record{Topic: OrderTopic, Partition: e.Partition, Timestamp: e.Arrival}
			r.Key = mem.keep(appendOrderID(mem.scratch(), e.OrderDay, e.Order))
			if e.Flaw != NullValue {
				r.Value = mem.keep(e.appendValue(mem.scratch(), ids.OrderEvents))
			}
			if !yield(r) {
				return
			}
		}
	}
}

// unknownSchemaID is far above what registries give out.
const unknownSchemaID = 0x7fff_fff0

// appendValue appends the record's value with its flaw. A NullValue has none.
func (e *Event) appendValue(dst []byte, schemaID int32) []byte {
	switch e.Flaw {
	case BadMagic:
		dst = append(dst, `{"order_id":"`...)
		dst = appendOrderID(dst, e.OrderDay, e.Order)
		return append(dst, `"}`...)
	case UnknownSchema:
		schemaID = unknownSchemaID
	}
	start := len(dst)
	dst = e.appendBody(appendFrame(dst, schemaID))
	if e.Flaw == Truncated {
		return dst[:start+(len(dst)-start)*2/3]
	}
	return dst
}

// appendBody appends the event in Avro's binary encoding with the schema ods.demo.order_events.avsc.
func (e *Event) appendBody(dst []byte) []byte {
	dst = appendUUID(appendLong(dst, 36), &e.ID)
	dst = appendLong(dst, int64(orderIDLen(e.Order)))
	dst = appendOrderID(dst, e.OrderDay, e.Order)
	dst = appendLong(dst, int64(paddedLen(e.Customer, 6)+2))
	dst = customerID(dst, e.Customer)
	dst = appendLong(dst, int64(e.Step))
	var decimal [8]byte
	dst = appendString(dst, string(serde.AppendDecimal(decimal[:0], e.Cents)))
	dst = appendLong(dst, e.Time)
	if e.Coupon == "" {
		return appendLong(dst, 0)
	}
	return appendString(appendLong(dst, 1), e.Coupon)
}

func partitionOf(key []byte) int32 { return processors.PartitionOf(key, Partitions) }

// Avro writes int, long, enum and union index as zigzag varints, which is what Go calls a varint.
func appendLong(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

func appendString(dst []byte, s string) []byte { return append(appendLong(dst, int64(len(s))), s...) }

func appendFrame(dst []byte, schemaID int32) []byte { return serde.AppendFrame(dst, schemaID) }

func putUint64(dst []byte, v uint64) { binary.BigEndian.PutUint64(dst, v) }

// appendOrderID writes o-20260601-0000042.
func appendOrderID(dst []byte, dayNumber int64, index int) []byte {
	dst = append(dst, "o-"...)
	dst = time.UnixMilli(dayNumber*day).UTC().AppendFormat(dst, "20060102")
	return appendPadded(append(dst, '-'), index, 7)
}

func orderIDLen(index int) int { return len("o-20260601-") + paddedLen(index, 7) }

func appendPadded(dst []byte, n, width int) []byte {
	for w := paddedLen(n, 1); w < width; w++ {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

// paddedLen is the number of digits of n, at least width.
func paddedLen(n, width int) int {
	digits := 1
	for ; n >= 10; n /= 10 {
		digits++
	}
	return max(digits, width)
}

func appendUUID(dst []byte, id *[16]byte) []byte {
	for i, end := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, id[[...]int{0, 4, 6, 8, 10}[i]:end])
	}
	return dst
}

// arena cuts small slices from large blocks: one allocation for hundreds of records.
type arena struct {
	block []byte
	buf   []byte
}

// scratch returns a buffer to build the next slice in.
func (a *arena) scratch() []byte { return a.buf[:0] }

// keep copies b, which was built in scratch, to where it stays.
func (a *arena) keep(b []byte) []byte {
	a.buf = b
	if len(a.block) < len(b) {
		a.block = make([]byte, max(64<<10, len(b)))
	}
	kept := a.block[:len(b):len(b)]
	a.block = a.block[len(b):]
	copy(kept, b)
	return kept
}
