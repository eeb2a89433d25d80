package serde_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	oracle "github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/schemas"
	"github.com/tributary-io/tributary/serde"
)

// orderEvent is the Go form of ods.demo.order_events.
type orderEvent struct {
	EventID    string        `avro:"event_id"`
	OrderID    string        `avro:"order_id"`
	CustomerID string        `avro:"customer_id"`
	Status     string        `avro:"status"`
	Amount     serde.Decimal `avro:"amount"`
	EventTime  time.Time     `avro:"event_time"`
	Coupon     *string       `avro:"coupon"`
}

var orderSchema = schemas.MustStream("ods.demo.order_events").Schema

// prepared makes a serde that is bound and registered with a registry of its own, where its schema has the id 1.
func prepared[T any](t testing.TB, schema string) (serde.Serde[T], *serde.Registry) {
	t.Helper()
	reg := serde.NewMemoryRegistry()
	t.Cleanup(reg.Close)
	s := serde.Bind(serde.Avro[T](reg, schema), "orders", false)
	if err := serde.Check(s); err != nil {
		t.Fatal(err)
	}
	if err := serde.Prepare(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s, reg
}

func drawOrder(t *rapid.T) orderEvent {
	o := orderEvent{
		EventID:    rapid.String().Draw(t, "event_id"),
		OrderID:    rapid.String().Draw(t, "order_id"),
		CustomerID: rapid.String().Draw(t, "customer_id"),
		Status:     rapid.SampledFrom([]string{"placed", "shipped", "delivered", "returned"}).Draw(t, "status"),
		Amount:     serde.DecimalOf(rapid.Int64Range(-999_999_999_999, 999_999_999_999).Draw(t, "amount")),
		EventTime:  time.UnixMilli(rapid.Int64Range(-1<<45, 1<<45).Draw(t, "event_time")).UTC(),
	}
	if rapid.Bool().Draw(t, "has coupon") {
		c := rapid.String().Draw(t, "coupon")
		o.Coupon = &c
	}
	return o
}

// The library behind serde.Avro and an independent one must agree on every value of the order schema, in both directions.
func TestAvroAgreesWithTheOracle(t *testing.T) {
	s, _ := prepared[orderEvent](t, orderSchema)
	other := oracle.MustParse(orderSchema)
	rapid.Check(t, func(t *rapid.T) {
		want := drawOrder(t)
		data, err := s.Append(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		generic := map[string]any{
			"event_id": want.EventID, "order_id": want.OrderID, "customer_id": want.CustomerID, "status": want.Status,
			"amount": []byte(want.Amount), "event_time": want.EventTime, "coupon": nil,
		}
		if want.Coupon != nil {
			generic["coupon"] = *want.Coupon
		}
		theirs, err := other.Encode(generic)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, append([]byte{0, 0, 0, 0, 1}, theirs...)) {
			t.Fatalf("%+v: ours % x, the oracle's % x", want, data, theirs)
		}
		got, err := s.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		for n := range len(data) { // whatever is missing at the end is noticed
			if v, err := s.Decode(data[:n:n]); err == nil {
				t.Fatalf("the first %d of %d bytes gave %+v", n, len(data), v)
			} else if serde.Retriable(err) {
				t.Fatalf("%v is retriable, though the record is cut off", err)
			}
		}
		if v, err := s.Decode(append(data, 0)); err == nil {
			t.Fatalf("a byte more gave %+v", v)
		}
	})
}

func TestAvroPrimitives(t *testing.T) {
	s, _ := prepared[string](t, `"string"`)
	wire(t, s, "Zoë", "0000000001"+"085a6fc3ab")
	n, _ := prepared[int64](t, `"long"`)
	wire(t, n, -1, "0000000001"+"01")
	p, _ := prepared[*orderEvent](t, orderSchema)
	v := &orderEvent{EventID: "e", Status: "placed", Amount: serde.DecimalOf(5), EventTime: time.UnixMilli(7).UTC()}
	data, err := p.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	back, err := p.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(v, back); d != "" {
		t.Error(d)
	}
}

func TestAvroDoesNotKeepValues(t *testing.T) {
	s, _ := prepared[orderEvent](t, orderSchema)
	c := "summer"
	with, err := s.Append(nil, orderEvent{Status: "placed", Amount: serde.DecimalOf(1), Coupon: &c})
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.Decode(with)
	if err != nil {
		t.Fatal(err)
	}
	clear(with[len(with)-6:])
	if *first.Coupon != "summer" {
		t.Errorf("the value aliases its bytes: %q", *first.Coupon)
	}
	c = "winter"
	again, err := s.Append(nil, orderEvent{Status: "placed", Amount: serde.DecimalOf(1), Coupon: &c})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 { // until the pool gives back what the first used
		if _, err := s.Decode(again); err != nil {
			t.Fatal(err)
		}
	}
	if *first.Coupon != "summer" {
		t.Errorf("a later record wrote into an earlier value: %q", *first.Coupon)
	}
}

func TestAvroFrames(t *testing.T) {
	s, _ := prepared[orderEvent](t, orderSchema)
	for _, c := range []struct {
		data string
		want string
	}{
		{"", "too few"},
		{"\x00\x00\x00\x01", "too few"},
		{"{\"a\":1}", "the first byte is 0x7b"},
		{"\x00\x00\x00\x00\x63rest", "get schema 99: unknown schema"},
		{"\x00\x00\x00\x00\x01", "cut off"},
	} {
		v, err := s.Decode([]byte(c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) || serde.Retriable(err) {
			t.Errorf("%q gave %+v, error %v (retriable %v), want %q", c.data, v, err, serde.Retriable(err), c.want)
		}
	}
	if id, body, err := serde.ParseFrame(append(serde.AppendFrame(nil, 0x01020304), "body"...)); id != 0x01020304 || string(body) != "body" || err != nil {
		t.Errorf("a frame came back as %x, %q, %v", id, body, err)
	}
}

func TestAvroMistakesAreFoundByCheck(t *testing.T) {
	reg := serde.NewMemoryRegistry()
	defer reg.Close()
	rec := func(fields string) string { return `{"type":"record","name":"R","fields":[` + fields + `]}` }
	check := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	check(serde.Check(serde.Avro[string](reg, `{"type":"recrod"}`)), "Avro schema for string")
	check(serde.Check(serde.Avro[string](nil, `"string"`)), "no schema registry")
	check(serde.Check(serde.Avro[string](reg, `"long"`)), "the schema says long, the Go type is string")

	type wrongType struct {
		A struct {
			B int32 `avro:"b"`
		} `avro:"a"`
	}
	check(serde.Check(serde.Avro[wrongType](reg, rec(`{"name":"a","type":{"type":"record","name":"A","fields":[{"name":"b","type":"string"}]}}`))),
		"field a.b: the schema says string, the Go type is int32")
	type tagMissing struct{ Amount string }
	check(serde.Check(serde.Avro[tagMissing](reg, rec(`{"name":"amount","type":"string"}`))), `has the field "Amount", but the schema R doesn't`)
	type notNullable struct {
		A int64 `avro:"a"`
	}
	check(serde.Check(serde.Avro[notNullable](reg, rec(`{"name":"a","type":["null","long"]}`))), "field a: the schema says union, the Go type is int64")
	type list struct {
		A []int64 `avro:"a"`
	}
	check(serde.Check(serde.Avro[list](reg, rec(`{"name":"a","type":{"type":"array","items":"string"}}`))), "field a[]: the schema says string")
	type fixed struct {
		A uint64 `avro:"a"`
	}
	check(serde.Check(serde.Avro[fixed](reg, rec(`{"name":"a","type":{"type":"fixed","name":"F","size":8}}`))), "take int64, or [8]byte")

	// The methods of a serde made wrong say so too, should nobody check it.
	bad := serde.Bind(serde.Avro[string](reg, `"long"`), "orders", false)
	_, err := bad.Append(nil, "x")
	check(err, "doesn't fit the Go type string")
	_, err = bad.Decode([]byte("\x00\x00\x00\x00\x01\x00"))
	check(err, "doesn't fit the Go type string")
	check(serde.Prepare(t.Context(), bad), "doesn't fit the Go type string")
}

func TestAvroSubsetsCanBeReadOnly(t *testing.T) {
	type onlyID struct {
		EventID string `avro:"event_id"`
	}
	full, reg := prepared[orderEvent](t, orderSchema)
	data, err := full.Append(nil, orderEvent{EventID: "e-7", Status: "placed", Amount: serde.DecimalOf(1)})
	if err != nil {
		t.Fatal(err)
	}
	part := serde.Bind(serde.Avro[onlyID](reg, orderSchema), "orders", false)
	if err := serde.Check(part); err != nil {
		t.Fatal(err)
	}
	if v, err := part.Decode(data); err != nil || v.EventID != "e-7" {
		t.Errorf("got %+v, %v", v, err)
	}
	if _, err := part.Append(nil, onlyID{}); err == nil || !strings.Contains(err.Error(), "field order_id is missing") {
		t.Errorf("half an order was written: %v", err)
	}
}

func TestAvroRecursiveTypes(t *testing.T) {
	type tree struct {
		Name string `avro:"name"`
		Next *tree  `avro:"next"`
	}
	s, _ := prepared[tree](t, `{"type":"record","name":"Tree","fields":[{"name":"name","type":"string"},{"name":"next","type":["null","Tree"]}]}`)
	want := tree{"a", &tree{"b", &tree{"c", nil}}}
	data, err := s.Append(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAvroEncodeErrors(t *testing.T) {
	s, _ := prepared[orderEvent](t, orderSchema)
	for range 3 {
		out, err := s.Append([]byte("kept"), orderEvent{Status: "lost"})
		if err == nil || string(out) != "kept" || !strings.Contains(err.Error(), "lost") {
			t.Fatalf("an unknown status gave %q, %v", out, err)
		}
		if out, err = s.Append([]byte("kept"), orderEvent{Status: "placed", Amount: serde.DecimalOf(0)}); err != nil {
			t.Fatalf("after an error: %q, %v", out, err)
		}
	}
}

func TestAvroSubjects(t *testing.T) {
	ctx := context.Background()
	reg := serde.NewMemoryRegistry()
	defer reg.Close()
	unbound := serde.Avro[string](reg, `"string"`)
	if _, err := unbound.Append(nil, "x"); err == nil || !strings.Contains(err.Error(), "isn't bound to a topic") {
		t.Errorf("unbound: %v", err)
	}
	key := serde.Bind(unbound, "orders", true)
	if _, err := key.Append(nil, "x"); err == nil || serde.Retriable(err) || !strings.Contains(err.Error(), "orders-key") ||
		!strings.Contains(err.Error(), "AvroAutoRegister") {
		t.Errorf("not registered: %v", err)
	}
	if id, err := reg.Register(ctx, "orders-value", `"long"`); err != nil || id != 1 {
		t.Fatal(id, err)
	}
	if err := serde.Prepare(ctx, serde.Bind(unbound, "others", true)); err != nil {
		t.Fatal(err)
	}
	if _, err := reg.Lookup(ctx, "orders-key", `"string"`); err == nil {
		t.Error("a schema is looked up under its subject")
	}
	if err := serde.Prepare(ctx, key); err != nil {
		t.Fatal(err)
	}
	wire(t, key, "x", "00000000020278")

	named := serde.Avro[string](reg, `"string"`, serde.AvroSubject("ods.Name"), serde.AvroRegistered())
	if err := serde.Prepare(ctx, serde.Bind(named, "orders", false)); err == nil {
		t.Error("AvroRegistered registered")
	}
	if _, err := reg.Register(ctx, "ods.Name", `"string"`); err != nil {
		t.Fatal(err)
	}
	if err := serde.Prepare(ctx, serde.Bind(named, "orders", false)); err != nil {
		t.Error(err)
	}
}

func TestAvroAutoRegister(t *testing.T) {
	reg := serde.NewMemoryRegistry()
	defer reg.Close()
	s := serde.Bind(serde.Avro[string](reg, `"string"`, serde.AvroAutoRegister()), "app-store-changelog", false)
	wire(t, s, "x", "00000000010278")
	if id, err := reg.Lookup(t.Context(), "app-store-changelog-value", `"string"`); id != 1 || err != nil {
		t.Errorf("registered as %d, %v", id, err)
	}
}

func TestAvroWithoutPrepareLooksUpOnce(t *testing.T) {
	now := time.Unix(0, 0)
	srv, reg := fakeRegistry(t, serde.RegistryClock(func() time.Time { return now }))
	s := serde.Bind(serde.Avro[string](reg, `"string"`), "orders", false)
	for range 5 {
		if _, err := s.Append(nil, "x"); err == nil {
			t.Fatal("written with a schema that isn't registered")
		}
	}
	if n := srv.requests.Load(); n != 1 {
		t.Errorf("%d requests for five records, want one", n)
	}
	if _, _, err := srv.fake.RegisterSchema("orders-value", avroSchemaText(`"string"`)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	for range 5 {
		if _, err := s.Append(nil, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if n := srv.requests.Load(); n != 2 {
		t.Errorf("%d requests, want two", n)
	}
}

func TestAvroAllocations(t *testing.T) {
	s, _ := prepared[orderEvent](t, orderSchema)
	v := orderEvent{EventID: "e-1", OrderID: "o-1", CustomerID: "c-1", Status: "placed", Amount: serde.DecimalOf(1999), EventTime: time.UnixMilli(1780272000000).UTC()}
	buf := make([]byte, 0, 256)
	data, err := s.Append(buf, v)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(200, func() {
		if _, err := s.Append(buf, v); err != nil {
			t.Fatal(err)
		}
	}); n != 0 && !raceEnabled {
		t.Errorf("%v allocations an Append", n)
	}
	// Strings of a record share blocks of a kilobyte: fewer than one allocation a record.
	if n := testing.AllocsPerRun(200, func() {
		if _, err := s.Decode(data); err != nil {
			t.Fatal(err)
		}
	}); n > 1 && !raceEnabled {
		t.Errorf("%v allocations a Decode", n)
	}
}

func TestAvroConcurrently(t *testing.T) {
	s, _ := prepared[orderEvent](t, orderSchema)
	done := make(chan error)
	for g := range 4 {
		go func() {
			want := orderEvent{EventID: fmt.Sprint(g), Status: "placed", Amount: serde.DecimalOf(int64(g)), EventTime: time.UnixMilli(int64(g)).UTC()}
			for range 500 {
				data, err := s.Append(nil, want)
				if err != nil {
					done <- err
					return
				}
				got, err := s.Decode(data)
				if err != nil || !cmp.Equal(want, got) {
					done <- fmt.Errorf("%+v came back as %+v, %w", want, got, err)
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func FuzzAvroOrder(f *testing.F) {
	s, _ := prepared[orderEvent](f, orderSchema)
	c := "x"
	seed, err := s.Append(nil, orderEvent{EventID: "e-1", Status: "returned", Amount: serde.DecimalOf(-5), Coupon: &c})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:7])
	f.Add([]byte("\x00\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := s.Decode(data)
		if err != nil {
			if serde.Retriable(err) {
				t.Fatalf("%x: %v is retriable", data, err)
			}
			return
		}
		again, err := s.Append(nil, v)
		if err != nil {
			t.Fatalf("%x gave %+v, which can't be written: %v", data, v, err)
		}
		w, err := s.Decode(again)
		if err != nil || !cmp.Equal(v, w) {
			t.Fatalf("%+v came back as %+v, %v", v, w, err)
		}
	})
}

func TestAvroBytesChecksWithoutDecoding(t *testing.T) {
	full, reg := prepared[orderEvent](t, orderSchema)
	raw := serde.AvroBytes(reg, orderSchema)
	if err := serde.Check(raw); err != nil {
		t.Fatal(err)
	}
	c := "summer"
	data, err := full.Append(nil, orderEvent{EventID: "e-1", Status: "placed", Amount: serde.DecimalOf(7), Coupon: &c})
	if err != nil {
		t.Fatal(err)
	}
	got, err := raw.Decode(data)
	if err != nil || &got[0] != &data[0] || len(got) != len(data) {
		t.Errorf("got % x, %v, want the record's own bytes", got, err)
	}
	if n := testing.AllocsPerRun(100, func() { raw.Decode(data) }); n != 0 && !raceEnabled {
		t.Errorf("%v allocations a record", n)
	}
	if out, err := raw.Append([]byte(">"), data); string(out) != ">"+string(data) || err != nil {
		t.Errorf("appended % x, %v", out, err)
	}
	for n := range len(data) {
		if _, err := raw.Decode(data[:n:n]); err == nil {
			t.Errorf("the first %d of %d bytes passed", n, len(data))
		}
	}
	if _, err := raw.Decode(append(data, 0)); err == nil {
		t.Error("a byte more passed")
	}
	if _, err := raw.Append(nil, []byte("no frame")); err == nil {
		t.Error("bytes without a frame were written")
	}
	if serde.Check(serde.AvroBytes(reg, `{"type":`)) == nil {
		t.Error("a schema that doesn't parse passed")
	}
	if !serde.Aliases(raw) {
		t.Error("the bytes are the record's own")
	}
}

func BenchmarkAvro(b *testing.B) {
	s, reg := prepared[orderEvent](b, orderSchema)
	raw := serde.AvroBytes(reg, orderSchema)
	v := orderEvent{EventID: "e-000001", OrderID: "o-000001", CustomerID: "c-000001", Status: "placed", Amount: serde.DecimalOf(1999), EventTime: time.UnixMilli(1780272000000).UTC()}
	data, err := s.Append(nil, v)
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 256)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Append(buf, v)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Decode(data)
		}
	})
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			raw.Decode(data)
		}
	})
}

// FuzzAvroWriter reads any bytes with any writer's schema: a registry may hold what it likes.
func FuzzAvroWriter(f *testing.F) {
	f.Add(orderSchema, []byte{2, 2, 2, 0, 2, 1, 2, 0})
	f.Add(`{"type":"record","name":"OrderEvent","fields":[]}`, []byte{})
	f.Add(`{"type":"record","name":"OrderEvent","fields":[{"name":"event_id","type":["null","string","OrderEvent"]}]}`, []byte{4, 0})
	f.Add(`["null","string"]`, []byte{2, 0})
	type small struct {
		EventID *string          `avro:"event_id"`
		Tags    map[string]int64 `avro:"tags"`
	}
	const declared = `{"type":"record","name":"OrderEvent","fields":[
		{"name":"event_id","type":["null","string"],"default":null},{"name":"tags","type":{"type":"map","values":"long"},"default":{}}]}`
	f.Fuzz(func(t *testing.T, writer string, body []byte) {
		reg := serde.NewMemoryRegistry()
		defer reg.Close()
		if _, err := reg.Register(t.Context(), "s", writer); err != nil {
			t.Fatal(err)
		}
		s := serde.Avro[small](reg, declared)
		if _, err := s.Decode(append(serde.AppendFrame(nil, 1), body...)); serde.Retriable(err) {
			t.Fatalf("%q: %v is retriable", writer, err)
		}
		serde.AvroBytes(reg, declared).Decode(append(serde.AppendFrame(nil, 1), body...))
	})
}
