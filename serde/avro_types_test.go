package serde_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	oracle "github.com/twmb/avro"

	"github.com/tributary-io/tributary/serde"
)

type status string

type everything struct {
	B       bool             `avro:"b"`
	I       int32            `avro:"i"`
	L       int64            `avro:"l"`
	N       int              `avro:"n"`
	F       float32          `avro:"f"`
	D       float64          `avro:"d"`
	S       string           `avro:"s"`
	Named   status           `avro:"named"`
	Y       []byte           `avro:"y"`
	Fixed   [4]byte          `avro:"fixed"`
	Enum    status           `avro:"enum"`
	Opt     *int64           `avro:"opt"`
	None    *string          `avro:"none"`
	List    []string         `avro:"list"`
	Map     map[string]int64 `avro:"map"`
	UUID    uuid.UUID        `avro:"uuid"`
	Day     time.Time        `avro:"day"`
	Millis  time.Time        `avro:"millis"`
	Micros  time.Time        `avro:"micros"`
	Dec     serde.Decimal    `avro:"dec"`
	Rat     *big.Rat         `avro:"rat"`
	OptDec  serde.Decimal    `avro:"optdec"`
	OptTime *time.Time       `avro:"opttime"`
	Inner   inner            `avro:"inner"`
	Inners  []*inner         `avro:"inners"`
	embedded
	Ignored string `avro:"-"`
}

type inner struct {
	X int64 `avro:"x"`
}

type embedded struct {
	E string `avro:"e"`
}

var everythingSchema = record(strings.Split(strings.ReplaceAll(strings.TrimSpace(`
{"name":"b","type":"boolean"}
{"name":"i","type":"int"}
{"name":"l","type":"long"}
{"name":"n","type":"long"}
{"name":"f","type":"float"}
{"name":"d","type":"double"}
{"name":"s","type":"string"}
{"name":"named","type":"string"}
{"name":"y","type":"bytes"}
{"name":"fixed","type":{"type":"fixed","name":"Four","size":4}}
{"name":"enum","type":{"type":"enum","name":"E","symbols":["p","q"]}}
{"name":"opt","type":["null","long"]}
{"name":"none","type":["null","string"]}
{"name":"list","type":{"type":"array","items":"string"}}
{"name":"map","type":{"type":"map","values":"long"}}
{"name":"uuid","type":{"type":"string","logicalType":"uuid"}}
{"name":"day","type":{"type":"int","logicalType":"date"}}
{"name":"millis","type":{"type":"long","logicalType":"timestamp-millis"}}
{"name":"micros","type":{"type":"long","logicalType":"timestamp-micros"}}
{"name":"dec","type":{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}}
{"name":"rat","type":{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}}
{"name":"optdec","type":["null",{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}]}
{"name":"opttime","type":["null",{"type":"long","logicalType":"timestamp-millis"}]}
{"name":"inner","type":{"type":"record","name":"Inner","fields":[{"name":"x","type":"long"}]}}
{"name":"inners","type":{"type":"array","items":"Inner"}}
{"name":"e","type":"string"}`), "\n", "\x00"), "\x00")...)

// Every Go type that the documentation names goes through both ways, and means the same to an independent library.
func TestAvroGoTypes(t *testing.T) {
	s, _ := prepared[everything](t, everythingSchema)
	at := time.Date(2026, 6, 1, 12, 30, 0, 123_000_000, time.UTC)
	want := everything{
		B: true, I: -7, L: 1 << 40, N: -1, F: 1.5, D: -2.25, S: "Zoë", Named: "x", Y: []byte{0, 1}, Fixed: [4]byte{1, 2, 3, 4},
		Enum: "q", Opt: new(int64(5)), List: []string{"a", "b"}, Map: map[string]int64{"k": 3},
		UUID: uuid.MustParse("f47ac10b-58cc-4372-a567-0e02b2c3d479"), Day: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		Millis: at, Micros: at.Add(7 * time.Microsecond), Dec: serde.DecimalOf(-1250), Rat: big.NewRat(1, 4), OptTime: &at,
		Inner: inner{4}, Inners: []*inner{{5}, {6}}, embedded: embedded{"deep"},
	}
	data, err := s.Append(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	rats := cmp.Comparer(func(a, b *big.Rat) bool { return a.Cmp(b) == 0 })
	if d := cmp.Diff(want, got, rats, cmp.AllowUnexported(everything{}, embedded{})); d != "" {
		t.Error(d)
	}
	var generic map[string]any
	if _, err := oracle.MustParse(everythingSchema).Decode(data[5:], &generic); err != nil {
		t.Fatal(err)
	}
	for field, v := range map[string]any{
		"dec": big.NewRat(-25, 2), "rat": big.NewRat(1, 4), "optdec": nil, "none": nil, "micros": want.Micros, "millis": want.Millis,
		"day": want.Day, "uuid": want.UUID.String(), "enum": "q", "e": "deep", "opt": int64(5),
	} {
		if d := cmp.Diff(v, generic[field], rats); d != "" {
			t.Errorf("the oracle reads %s otherwise: %s", field, d)
		}
	}
}

func TestAvroGenericValues(t *testing.T) {
	s, _ := prepared[map[string]any](t, record(`{"name":"a","type":"string"}`, `{"name":"n","type":["null","long"]}`))
	data, err := s.Append(nil, map[string]any{"a": "x", "n": map[string]any{"long": int64(7)}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if got["a"] != "x" || got["n"] != int64(7) {
		t.Errorf("got %v", got)
	}
}
