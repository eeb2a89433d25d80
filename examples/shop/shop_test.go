package shop

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	oracle "github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/schemas"
	"github.com/tributary-io/tributary/serde"
)

func spec(t testing.TB, date string, orders int, seed uint64) Spec {
	t.Helper()
	d, err := ParseDate(date)
	if err != nil {
		t.Fatal(err)
	}
	s := Spec{Date: d, Orders: orders, Seed: seed}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return s
}

// digest hashes everything that a record is.
func digest(h hash.Hash, r Record) {
	var n [8]byte
	for _, b := range [][]byte{[]byte(r.Topic), r.Key, r.Value} {
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		if b == nil {
			binary.BigEndian.PutUint64(n[:], 1<<63)
		}
		h.Write(n[:])
		h.Write(b)
	}
	binary.BigEndian.PutUint64(n[:], uint64(r.Timestamp)<<8|uint64(r.Partition))
	h.Write(n[:])
}

// The stream is a promise: these bytes never change.
func TestGoldenBytes(t *testing.T) {
	s := spec(t, "2026-06-01", 1000, 42)
	ids := SchemaIDs{OrderEvents: 1, Customers: 2}
	h := sha256.New()
	n := 0
	for r := range s.Records(ids) {
		digest(h, r)
		n++
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != goldenOrders || n != goldenOrderCount {
		t.Errorf("the order events of 2026-06-01 are %d with the hash %s, want %d with %s", n, got, goldenOrderCount, goldenOrders)
	}
	h.Reset()
	n = 0
	for r := range s.CustomerRecords(ids) {
		digest(h, r)
		n++
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != goldenCustomers || n != goldenCustomerCount {
		t.Errorf("the customers are %d with the hash %s, want %d with %s", n, got, goldenCustomerCount, goldenCustomers)
	}
}

func TestSpecsDiffer(t *testing.T) {
	sum := func(s Spec) string {
		h := sha256.New()
		for r := range s.Records(SchemaIDs{1, 2}) {
			digest(h, r)
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	base := spec(t, "2026-06-01", 100, 1)
	sums := []string{sum(base), sum(spec(t, "2026-06-02", 100, 1)), sum(spec(t, "2026-06-01", 101, 1)), sum(spec(t, "2026-06-01", 100, 2))}
	slices.Sort(sums)
	if len(slices.Compact(sums)) != 4 {
		t.Error("two specs give the same stream")
	}
	if again := sum(spec(t, "2026-06-01", 100, 1)); again != sum(base) {
		t.Error("a spec gives two streams")
	}
}

func TestCheck(t *testing.T) {
	good := spec(t, "2026-06-01", 1, 0)
	for _, change := range []func(*Spec){
		func(s *Spec) { s.Orders = 0 },
		func(s *Spec) { s.Orders = 1 << 29 },
		func(s *Spec) { s.Date = s.Date.Add(time.Hour) },
		func(s *Spec) { s.Date = s.Date.AddDate(-7, 0, 0) },
	} {
		s := good
		change(&s)
		if s.Check() == nil {
			t.Errorf("%+v passed", s)
		}
	}
	if _, err := ParseDate("1.6.2026"); err == nil {
		t.Error("1.6.2026 passed for a date")
	}
}

// Whatever arrives of an order must be in exactly one day's stream, on the day of its arrival, however long ago it was placed.
func TestDaysLookBackCompletely(t *testing.T) {
	first := spec(t, "2026-06-01", 200, 7)
	type arrival struct {
		order, step, repeat int
		at                  int64
	}
	var want, got []arrival
	for index := range first.Orders {
		l := first.life(first.dayNumber(), index)
		for step := range steps {
			for repeat, at := range l.arrival[step] {
				if at != 0 {
					want = append(want, arrival{index, int(step), repeat, at})
				}
			}
		}
	}
	s := first
	for range lookBack + 3 {
		last := int64(0)
		for e := range s.Events() {
			if e.Arrival < last || e.Arrival/day != s.dayNumber() {
				t.Fatalf("arrival %d after %d on day %d", e.Arrival, last, s.dayNumber())
			}
			last = e.Arrival
			if e.Flaw != Sound || e.OrderDay != first.dayNumber() {
				continue
			}
			repeat := 0
			if e.Repeat {
				repeat = 1
			}
			got = append(got, arrival{e.Order, int(e.Step), repeat, e.Arrival})
		}
		s = s.Next()
	}
	order := func(a, b arrival) int {
		return (a.order-b.order)*100 + (a.step-b.step)*10 + a.repeat - b.repeat
	}
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if d := cmp.Diff(want, got, cmp.AllowUnexported(arrival{})); d != "" {
		t.Error(d)
	}
}

func TestSlots(t *testing.T) {
	s := makeSlot(day-1, 12, 1<<orderBits-1, Returned, 1)
	if s.ms() != day-1 || s.ago() != 12 || s.index() != 1<<orderBits-1 || s.step() != Returned || !s.repeat() {
		t.Errorf("%d %d %d %v %v", s.ms(), s.ago(), s.index(), s.step(), s.repeat())
	}
	if lookBack >= flawed {
		t.Errorf("%d days back don't fit into a slot", lookBack)
	}
}

// Each record must be exactly the event, as the serde under test and an independent library read it.
func TestRecordsDecode(t *testing.T) {
	ctx := t.Context()
	reg := serde.NewMemoryRegistry()
	defer reg.Close()
	schema := schemas.MustStream(OrderTopic).Schema
	id, err := reg.Register(ctx, OrderTopic+"-value", schema)
	if err != nil {
		t.Fatal(err)
	}
	s := spec(t, "2026-06-01", 500, 3)
	decode := serde.Avro[OrderEvent](reg, schema)
	skim := serde.AvroBytes(reg, schema)
	other := oracle.MustParse(schema)
	pick := kgo.StickyKeyPartitioner(nil).ForTopic(OrderTopic)
	day := events(s)
	for r := range s.Records(SchemaIDs{OrderEvents: int32(id)}) {
		e := day[0]
		day = day[1:]
		if string(r.Key) != e.OrderID() || r.Timestamp != e.Arrival || r.Partition != e.Partition || r.Topic != OrderTopic {
			t.Fatalf("record %+v for event %+v", r, e)
		}
		if p := pick.Partition(&kgo.Record{Key: r.Key}, Partitions); p != int(r.Partition) {
			t.Fatalf("key %s goes to partition %d, not %d", r.Key, p, r.Partition)
		}
		if e.Flaw == NullValue {
			if r.Value != nil {
				t.Fatalf("a null value of %d bytes", len(r.Value))
			}
			continue
		}
		got, err := decode.Decode(r.Value)
		_, skimErr := skim.Decode(r.Value)
		if e.Flaw != Sound {
			if err == nil || skimErr == nil || serde.Retriable(err) {
				t.Fatalf("%s: got %+v, %v, %v", e.Flaw, got, err, skimErr)
			}
			continue
		}
		if err != nil || skimErr != nil {
			t.Fatal(err, skimErr)
		}
		want := OrderEvent{
			EventID: e.EventID(), OrderID: e.OrderID(), CustomerID: e.CustomerID(), Status: e.Step.String(),
			Amount: serde.DecimalOf(e.Cents), EventTime: time.UnixMilli(e.Time).UTC(),
		}
		if e.Coupon != "" {
			want.Coupon = &e.Coupon
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		var theirs OrderEvent
		if rest, err := other.Decode(r.Value[5:], &theirs); err != nil || len(rest) > 0 {
			t.Fatalf("the oracle: %v, %d bytes left", err, len(rest))
		}
		if d := cmp.Diff(want, theirs); d != "" {
			t.Fatalf("the oracle: %s", d)
		}
	}
}

// events lists the day's events.
func events(s Spec) []Event {
	var all []Event
	for e := range s.Events() {
		all = append(all, *e)
	}
	return all
}

func TestRepetitionsAreTheSameBytesLater(t *testing.T) {
	s := spec(t, "2026-06-01", 2000, 5)
	day := events(s)
	first := map[[16]byte]Record{}
	repeated := 0
	for r := range s.Records(SchemaIDs{1, 2}) {
		e := day[0]
		day = day[1:]
		if e.Flaw != Sound {
			continue
		}
		orig, ok := first[e.ID]
		if !ok {
			first[e.ID] = r
			continue
		}
		repeated++
		if !e.Repeat || string(orig.Value) != string(r.Value) || string(orig.Key) != string(r.Key) || orig.Partition != r.Partition || r.Timestamp <= orig.Timestamp {
			t.Errorf("%+v repeats %+v", r, orig)
		}
	}
	if repeated < 50 {
		t.Errorf("only %d repetitions", repeated)
	}
}

func TestCustomersTable(t *testing.T) {
	ctx := t.Context()
	reg := serde.NewMemoryRegistry()
	defer reg.Close()
	schema := schemas.MustStream(CustomerTopic).Schema
	id, err := reg.Register(ctx, CustomerTopic+"-value", schema)
	if err != nil {
		t.Fatal(err)
	}
	s := spec(t, "2026-06-01", 20_000, 3)
	decode := serde.Avro[Customer](reg, schema)
	if err := serde.Check(decode); err != nil {
		t.Fatal(err)
	}
	table := map[string]Customer{}
	deleted, moved := 0, 0
	for r := range s.CustomerRecords(SchemaIDs{Customers: int32(id)}) {
		if r.Timestamp >= s.Date.UnixMilli()-30*day || r.Partition != partitionOf(r.Key) {
			t.Fatalf("record %+v", r)
		}
		if r.Value == nil {
			delete(table, string(r.Key))
			deleted++
			continue
		}
		c, err := decode.Decode(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		if c.CustomerID != string(r.Key) || !strings.HasPrefix(c.Name, "Customer ") || c.Since.IsZero() {
			t.Fatalf("%+v under %s", c, r.Key)
		}
		if before, ok := table[string(r.Key)]; ok && before.Region != c.Region {
			moved++
		}
		table[string(r.Key)] = c
	}
	for number := range s.Customers() {
		region, ok := s.RegionOf(number)
		c, have := table[string(customerID(nil, number))]
		if ok != have || ok && c.Region != region {
			t.Fatalf("customer %d: the table has %+v, %v; the model %s, %v", number, c, have, region, ok)
		}
	}
	if deleted == 0 || moved == 0 || len(table)+deleted == s.Customers() {
		t.Errorf("%d deleted, %d moved, %d of %d known: each must occur", deleted, moved, len(table)+deleted, s.Customers())
	}
}

func BenchmarkRecords(b *testing.B) {
	s := spec(b, "2026-06-01", 100_000, 1)
	n := 0
	for b.Loop() {
		for range s.Records(SchemaIDs{1, 2}) {
			n++
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}
