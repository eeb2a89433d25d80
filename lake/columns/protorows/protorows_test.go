package protorows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/columns/avrorows"
	"github.com/tributary-io/tributary/lake/columns/wire"
	"github.com/tributary-io/tributary/lake/sink"
)

const orderProto = `syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto"; import "google/protobuf/duration.proto";
import "google/type/date.proto"; import "confluent/type/decimal.proto"; import "shop/customer.proto"; import "confluent/meta.proto";
message Other { string x = 1; message Inner { int32 deep = 1; } }
enum State { OPEN = 0; DONE = 1; }
message Order {
  int64 id = 1 [(confluent.field_meta).doc = "its number"]; optional string note = 2; State state = 3; Customer customer = 4; repeated uint32 items = 5;
  map<int32, double> by = 6; bytes raw = 7; google.protobuf.Timestamp seen = 8; google.protobuf.StringValue maybe = 9; google.type.Date day = 10;
  confluent.type.Decimal price = 11; google.protobuf.Duration took = 12; oneof choice { string text = 13; int64 number = 14; } uint64 big = 15; bool ok = 16;
  float ratio = 17; int32 unknown_field = 99; repeated Customer all = 18;
}`

const customerProto = `syntax = "proto3"; package shop; message Customer { string zipCode = 1; bool vip = 2; }`

const orderAvro = `{"type":"record","name":"Order","fields":[
 {"name":"id","type":"long"},{"name":"note","type":["null","string"]},{"name":"state","type":"string"},
 {"name":"customer","type":["null",{"type":"record","name":"C","fields":[{"name":"zip","type":"string","aliases":["zipCode"]}]}]},
 {"name":"items","type":{"type":"array","items":"long"}},{"name":"by","type":{"type":"map","values":"double"}},{"name":"raw","type":"bytes"},
 {"name":"seen","type":["null",{"type":"long","logicalType":"timestamp-micros"}]},{"name":"maybe","type":["null","string"]},
 {"name":"day","type":["null",{"type":"int","logicalType":"date"}]},{"name":"price","type":["null",{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}]},
 {"name":"took","type":["null","long"]},{"name":"text","type":["null","string"]},{"name":"number","type":["null","long"]},{"name":"big","type":"long"},
 {"name":"ok","type":"boolean"},{"name":"ratio","type":"float"},{"name":"added","type":"string","default":"later"},{"name":"all","type":{"type":"array","items":"C"}}]}`

// source is a registry of one schema, whose id is 7 and whose GUID ends with 7.
func source(k wire.Key) (Text, error) {
	if k.ID != 7 && k.GUID[15] != 7 {
		return Text{}, fmt.Errorf("%w: %s", wire.ErrUnknownSchema, k)
	}
	return Text{Schema: orderProto, Imports: map[string]string{"shop/customer.proto": customerProto}}, nil
}

// encode makes a message Order of its JSON.
func encode(t testing.TB, json string) []byte {
	t.Helper()
	text, err := source(wire.Key{ID: 7})
	if err != nil {
		t.Fatal(err)
	}
	f, err := compile(text)
	if err != nil {
		t.Fatal(err)
	}
	m := dynamicpb.NewMessage(f.desc.Messages().ByName("Order"))
	if err := protojson.Unmarshal([]byte(json), m); err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func newDecoder(t testing.TB) (*avrorows.Declared, *Decoder) {
	t.Helper()
	d, errs := avrorows.Declare(avrorows.Text{Schema: orderAvro}, avrorows.Options{})
	if errs != nil {
		t.Fatal(errors.Join(errs...))
	}
	dec, err := NewDecoder(d, source)
	if err != nil {
		t.Fatal(err)
	}
	return d, dec
}

func row(d *avrorows.Declared, dec *Decoder, data []byte, headers ...sink.Header) (map[string]any, error) {
	b := columns.NewBuilder(&columns.Schema{Fields: d.Fields})
	if err := dec.Append(b, 0, data, headers); err != nil {
		return nil, err
	}
	if err := b.EndRow(); err != nil {
		return nil, err
	}
	rec, out := b.Record(), map[string]any{}
	for i := range d.Fields {
		out[d.Fields[i].Name] = columns.Value(rec.Column(i), 0)
	}
	return out, nil
}

// frame is the id and the indexes of message Order, the second one of the file.
var frame = binary.AppendVarint(binary.AppendVarint([]byte{0, 0, 0, 0, 7}, 1), 1)

func TestMessage(t *testing.T) {
	d, dec := newDecoder(t)
	body := encode(t, `{"id":"5","note":"","state":"DONE","customer":{"zipCode":"1010","vip":true},"items":[1,4294967295],"by":{"3":1.5},"raw":"aGk=",
	 "seen":"1969-12-31T23:59:59.999999999Z","maybe":"m","day":{"year":2024,"month":1,"day":2},"price":{"value":"/4A=","precision":12,"scale":2},"took":"1.5s",
	 "number":"0","big":"9","ok":true,"ratio":0.1,"unknownField":3,"all":[{"zipCode":"a"},{}]}`)
	want := map[string]any{"id": int64(5), "note": "", "state": "DONE", "customer": map[string]any{"zip": "1010"}, "items": []any{int64(1), int64(4294967295)}, "by": map[string]any{"3": 1.5},
		"raw": []byte("hi"), "seen": time.UnixMicro(-1).UTC(), "maybe": "m", "day": columns.Day(19724), "price": "-1.28", "took": int64(1500000), "text": nil, "number": int64(0),
		"big": int64(9), "ok": true, "ratio": float32(0.1), "added": "later", "all": []any{map[string]any{"zip": "a"}, map[string]any{"zip": ""}}}
	guid := append(append([]byte{1}, make([]byte, 15)...), 7)
	for name, c := range map[string]struct {
		data    []byte
		headers []sink.Header
	}{
		"in front":         {append(append([]byte{}, frame...), body...), nil},
		"id in a header":   {body, []sink.Header{{Key: wire.Header, Value: frame}}},
		"GUID in a header": {body, []sink.Header{{Key: wire.Header, Value: append(guid, 2, 2)}}},
	} {
		got, err := row(d, dec, c.data, c.headers...)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	// An empty message: zeros where Protobuf has no presence, nulls where it has.
	got, err := row(d, dec, frame)
	if err != nil || got["id"] != int64(0) || got["note"] != nil || got["state"] != "OPEN" || got["customer"] != nil || got["seen"] != nil || len(got["items"].([]any)) != 0 {
		t.Errorf("an empty message: %v, %v", got, err)
	}
}

func TestBadMessages(t *testing.T) {
	d, dec := newDecoder(t)
	first := []byte{0, 0, 0, 0, 7, 0} // of the first message, which has none of the fields
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "empty"}, {[]byte{0, 0, 0, 0, 7}, "indexes"}, {[]byte{0, 0, 0, 0, 7, 4, 0}, "indexes"}, {[]byte{0, 0, 0, 0, 7, 2, 99}, "no message with the indexes"},
		{[]byte{0, 0, 0, 0, 8, 0}, "no such schema"}, {append(append([]byte{}, frame...), 0xff), "not a message shop.Order"}, {first, "field id: missing"},
		{[]byte{0, 0, 0, 0, 7, 4, 0, 0}, "field id: missing"}, {[]byte("{}"), "0x7b"},
		{append(append([]byte{}, frame...), encode(t, `{"big":"18446744073709551615"}`)...), "field big: the number"},
		{append(append([]byte{}, frame...), encode(t, `{"price":{"value":"//8=","scale":3}}`)...), "field price"},
	} {
		var bad *sink.RowError
		if _, err := row(d, dec, c.data); !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%x: %v, want an error of the row with %q", c.data, err, c.want)
		}
	}
	down, err := NewDecoder(d, func(wire.Key) (Text, error) { return Text{}, errors.New("connection refused") })
	if err != nil {
		t.Fatal(err)
	}
	var bad *sink.RowError
	if _, err := row(d, down, frame); err == nil || errors.As(err, &bad) {
		t.Errorf("a registry that is away: %v", err)
	}
	broken, err := NewDecoder(d, func(wire.Key) (Text, error) { return Text{Schema: "message {"}, nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := row(d, broken, frame); !errors.As(err, &bad) || !strings.Contains(err.Error(), "doesn't compile") {
		t.Errorf("a damaged schema: %v", err)
	}
}

func FuzzMessages(f *testing.F) {
	d, dec := newDecoder(f)
	f.Add(append(append([]byte{}, frame...), encode(f, `{"id":"5","price":{"value":"/4A=","scale":2},"by":{"3":1.5}}`)...))
	f.Add([]byte{0, 0, 0, 0, 7, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		var bad *sink.RowError
		if _, err := row(d, dec, data); err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
	})
}
