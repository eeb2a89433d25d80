package serde_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tributary-io/tributary/internal/realregistry"
	"github.com/tributary-io/tributary/schemas"
	"github.com/tributary-io/tributary/serde"
)

// What the other tests see of a fake registry must be so with a real one.
func TestRealRegistry(t *testing.T) {
	srv := realregistry.Start(t)
	ctx := t.Context()
	connect := func() *serde.Registry {
		reg, err := serde.NewRegistry(srv.URL(), serde.RegistryTimeout(2*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(reg.Close)
		return reg
	}
	reg := connect()
	if err := reg.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	admin, err := sr.NewClient(sr.URLs(srv.URL()), sr.HTTPClient(&http.Client{Timeout: 2 * time.Minute}))
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range admin.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatBackward}) {
		if res.Err != nil {
			t.Fatal(res.Err)
		}
	}

	// Writing and reading by two clients, as two processes would.
	stream := schemas.MustStream("ods.demo.order_events")
	s := serde.Bind(serde.Avro[orderEvent](reg, stream.Schema), stream.Topic, false)
	if _, err := s.Append(nil, orderEvent{Status: "placed"}); err == nil || serde.Retriable(err) {
		t.Errorf("written before the registration: %v", err)
	}
	if err := serde.Prepare(ctx, s); err != nil {
		t.Fatal(err)
	}
	c := "FRÜHLING"
	want := orderEvent{EventID: "e", OrderID: "o", CustomerID: "c", Status: "returned", Amount: serde.DecimalOf(-1250),
		EventTime: time.UnixMilli(1780272000123).UTC(), Coupon: &c}
	data, err := s.Append(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	other := connect()
	got, err := serde.Avro[orderEvent](other, stream.Schema).Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	id, body, err := serde.ParseFrame(data)
	if err != nil {
		t.Fatal(err)
	}

	// Docs and attributes come back with the schema: the lake makes comments and tags of them.
	text, err := connect().WriterSchema(ctx, int(id))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"ods.sensitivity", "ods.pii", "The order's value in euros"} {
		if !strings.Contains(text, part) {
			t.Errorf("the schema came back without %q", part)
		}
	}

	// The same again is the same id; an id that nobody registered is the record's fault.
	if again, err := connect().Register(ctx, stream.Topic+"-value", stream.Schema); again != int(id) || err != nil {
		t.Errorf("registered again as %d, %v, was %d", again, err, id)
	}
	if found, err := connect().Lookup(ctx, stream.Topic+"-value", stream.Schema); found != int(id) || err != nil {
		t.Errorf("found as %d, %v, was %d", found, err, id)
	}
	if _, err := s.Decode(append(serde.AppendFrame(nil, 999_999), body...)); err == nil || serde.Retriable(err) {
		t.Errorf("unknown id: %v (retriable %v)", err, serde.Retriable(err))
	}

	// A compatible change is taken and read, an incompatible one refused.
	const field = `{"name":"channel","type":"string","doc":"d"`
	grown := strings.Replace(stream.Schema, `"fields": [`, `"fields": [`+field+`,"default":"web"},`, 1)
	broken := strings.Replace(stream.Schema, `"fields": [`, `"fields": [`+field+`},`, 1)
	if err := reg.CheckCompatible(ctx, stream.Topic+"-value", grown); err != nil {
		t.Errorf("a field with a default: %v", err)
	}
	if err := reg.CheckCompatible(ctx, stream.Topic+"-value", broken); err == nil || serde.Retriable(err) {
		t.Errorf("a field without a default: %v", err)
	}
	if _, err := reg.Register(ctx, stream.Topic+"-value", broken); err == nil || serde.Retriable(err) {
		t.Errorf("registered a field without a default: %v", err)
	}
	if err := reg.CheckCompatible(ctx, "new-value", broken); err != nil {
		t.Errorf("a subject without versions: %v", err)
	}
	type withChannel struct {
		orderEvent
		Channel string `avro:"channel"`
	}
	now := serde.Bind(serde.Avro[withChannel](reg, grown), stream.Topic, false)
	if err := serde.Prepare(ctx, now); err != nil {
		t.Fatal(err)
	}
	if v, err := now.Decode(data); err != nil || v.Channel != "web" || v.OrderID != "o" {
		t.Errorf("an old record with the new schema: %+v, %v", v, err)
	}
	newer, err := now.Append(nil, withChannel{want, "app"})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Decode(newer); err != nil || cmp.Diff(want, v) != "" {
		t.Errorf("a new record with the old schema: %+v, %v", v, err)
	}

	// A registry that doesn't answer says nothing about the record.
	if err := srv.Pause(); err != nil {
		t.Fatal(err)
	}
	hasty, err := serde.NewRegistry(srv.URL(), serde.RegistryTimeout(300*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close()
	waiting := serde.Avro[orderEvent](hasty, stream.Schema)
	if _, err := waiting.Decode(data); !serde.Retriable(err) {
		t.Errorf("paused: %v", err)
	}
	if err := srv.Resume(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for _, err = waiting.Decode(data); err != nil && time.Now().Before(deadline); _, err = waiting.Decode(data) {
		if !serde.Retriable(err) {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Errorf("resumed: %v", err)
	}
}
