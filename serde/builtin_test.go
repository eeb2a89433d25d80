package serde_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/serde"
)

// The expected bytes are those of Kafka's own serializers.
func TestWireFormats(t *testing.T) {
	id := uuid.MustParse("f47ac10b-58cc-4372-a567-0e02b2c3d479")
	wire(t, serde.String, "Zoë", "5a6fc3ab")
	wire(t, serde.String, "", "")
	wire(t, serde.Bytes, []byte{0, 255}, "00ff")
	wire(t, serde.Int16, -2, "fffe")
	wire(t, serde.Int32, 1, "00000001")
	wire(t, serde.Int32, math.MinInt32, "80000000")
	wire(t, serde.Int64, -1, "ffffffffffffffff")
	wire(t, serde.Int64, 1<<40, "0000010000000000")
	wire(t, serde.Int, 258, "0000000000000102")
	wire(t, serde.Float32, 1.5, "3fc00000")
	wire(t, serde.Float64, -1.5, "bff8000000000000")
	wire(t, serde.Bool, true, "01")
	wire(t, serde.Bool, false, "00")
	wire(t, serde.UUID, id, hex.EncodeToString([]byte(id.String())))
	wire(t, serde.Time, time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), "0000019e807aec00")
	wire(t, serde.Time, time.UnixMilli(-1).UTC(), "ffffffffffffffff")
}

func wire[T any](t *testing.T, s serde.Serde[T], v T, want string) {
	t.Helper()
	got, err := s.Append([]byte("before"), v)
	if err != nil {
		t.Fatalf("%T: Append(%v): %v", s, v, err)
	}
	if string(got[:6]) != "before" || hex.EncodeToString(got[6:]) != want {
		t.Errorf("%T: Append(%v) = %x, want %s behind what was there", s, v, got, want)
	}
	back, err := s.Decode(got[6:])
	if err != nil {
		t.Fatalf("%T: Decode(%s): %v", s, want, err)
	}
	if fmt.Sprint(back) != fmt.Sprint(v) {
		t.Errorf("%T: Decode(%s) = %v, want %v", s, want, back, v)
	}
}

func TestWrongLengths(t *testing.T) {
	wrongLengths(t, serde.Int16, 2)
	wrongLengths(t, serde.Int32, 4)
	wrongLengths(t, serde.Int64, 8)
	wrongLengths(t, serde.Int, 8)
	wrongLengths(t, serde.Float32, 4)
	wrongLengths(t, serde.Float64, 8)
	wrongLengths(t, serde.Bool, 1)
	wrongLengths(t, serde.UUID, 36)
	wrongLengths(t, serde.Time, 8)
}

func wrongLengths[T any](t *testing.T, s serde.Serde[T], want int) {
	t.Helper()
	for n := range 40 {
		_, err := s.Decode(make([]byte, n))
		var l *serde.LengthError
		if n != want && (!errors.As(err, &l) || l.Want != want || l.Got != n) {
			t.Errorf("%T: %d bytes: error %v, want a LengthError of %d", s, n, err, want)
		}
		if serde.Retriable(err) {
			t.Errorf("%T: a wrong length is the record's fault", s)
		}
	}
}

func TestBoolRefusesOtherBytes(t *testing.T) {
	for b := 2; b < 256; b++ {
		if v, err := serde.Bool.Decode([]byte{byte(b)}); err == nil {
			t.Errorf("byte %#x gave %v", b, v)
		}
	}
}

// Kafka's UUIDDeserializer takes any text that Java's UUID.fromString does; a key must have one spelling only.
func TestUUIDTakesTheCanonicalFormOnly(t *testing.T) {
	for _, s := range []string{
		"f47ac10b-58cc-4372-a567-0e02b2c3d47g", "f47ac10b_58cc_4372_a567_0e02b2c3d479",
		"f47ac10b58cc4372a5670e02b2c3d479", "{f47ac10b-58cc-4372-a567-0e02b2c3d4}",
	} {
		if u, err := serde.UUID.Decode([]byte(s)); err == nil {
			t.Errorf("%q gave %v", s, u)
		}
	}
}

func TestTimeOutOfRange(t *testing.T) {
	for _, at := range []time.Time{time.Unix(1<<62, 0), time.Unix(-1<<62, 0)} {
		if b, err := serde.Time.Append(nil, at); err == nil {
			t.Errorf("year %d gave %x", at.Year(), b)
		}
	}
	got, err := serde.Time.Append(nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if back, _ := serde.Time.Decode(got); !back.IsZero() {
		t.Errorf("the zero time came back as %v", back)
	}
}

func TestRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roundTrip(t, serde.Int16, rapid.Int16().Draw(t, "int16"))
		roundTrip(t, serde.Int32, rapid.Int32().Draw(t, "int32"))
		roundTrip(t, serde.Int64, rapid.Int64().Draw(t, "int64"))
		roundTrip(t, serde.Int, rapid.Int().Draw(t, "int"))
		roundTrip(t, serde.Float32, rapid.Float32().Draw(t, "float32"))
		roundTrip(t, serde.Float64, rapid.Float64().Draw(t, "float64"))
		roundTrip(t, serde.String, rapid.String().Draw(t, "string"))
		roundTrip(t, serde.UUID, uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid")))
		roundTrip(t, serde.Time, time.UnixMilli(rapid.Int64().Draw(t, "time")).UTC())
	})
}

func roundTrip[T comparable](t *rapid.T, s serde.Serde[T], v T) {
	b, err := s.Append(nil, v)
	if err != nil {
		if _, ok := any(v).(time.Time); ok {
			return // at the edge of the range
		}
		t.Fatalf("%T: %v", s, err)
	}
	back, err := s.Decode(b)
	if err != nil || back != v {
		t.Fatalf("%T: %v came back as %v, %v", s, v, back, err)
	}
}

func TestBytesDecodedCannotGrowIntoTheirNeighbour(t *testing.T) {
	batch := []byte("onetwo")
	v, err := serde.Bytes.Decode(batch[:3])
	if err != nil {
		t.Fatal(err)
	}
	_ = append(v, "!!!"...)
	if string(batch) != "onetwo" {
		t.Errorf("an append to a decoded value changed the batch to %q", batch)
	}
}

func TestAliases(t *testing.T) {
	if !serde.Aliases(serde.String) || !serde.Aliases(serde.Bytes) {
		t.Error("String and Bytes alias their input")
	}
	if serde.Aliases(serde.Int64) || serde.Aliases(serde.Time) || serde.Aliases(serde.JSON[string]()) {
		t.Error("Int64, Time and JSON don't alias their input")
	}
}

func TestNoAllocations(t *testing.T) {
	noAllocs(t, serde.Int16, 7)
	noAllocs(t, serde.Int32, 7)
	noAllocs(t, serde.Int64, 7)
	noAllocs(t, serde.Int, 7)
	noAllocs(t, serde.Float32, 7)
	noAllocs(t, serde.Float64, 7)
	noAllocs(t, serde.Bool, true)
	noAllocs(t, serde.UUID, uuid.MustParse("f47ac10b-58cc-4372-a567-0e02b2c3d479"))
	noAllocs(t, serde.Time, time.UnixMilli(1780272000000))
	noAllocs(t, serde.String, "an order")
	noAllocs(t, serde.Bytes, []byte("an order"))
}

func noAllocs[T any](t *testing.T, s serde.Serde[T], v T) {
	t.Helper()
	buf := make([]byte, 0, 64)
	n := testing.AllocsPerRun(100, func() {
		b, err := s.Append(buf, v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Decode(b); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%T allocates %v times a round trip", s, n)
	}
}

func FuzzFixedSize(f *testing.F) {
	for _, n := range []int{0, 1, 2, 4, 8, 36} {
		f.Add(make([]byte, n))
	}
	f.Add([]byte("F47AC10B-58cc-4372-a567-0e02b2c3d479"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fixedSize(t, serde.Int16, data)
		fixedSize(t, serde.Int32, data)
		fixedSize(t, serde.Int64, data)
		fixedSize(t, serde.Int, data)
		fixedSize(t, serde.Float32, data)
		fixedSize(t, serde.Float64, data)
		fixedSize(t, serde.Bool, data)
		fixedSize(t, serde.UUID, data)
		fixedSize(t, serde.Time, data)
	})
}

// fixedSize checks that whatever decodes is encoded to the same bytes again (a UUID's in lower case).
func fixedSize[T any](t *testing.T, s serde.Serde[T], data []byte) {
	v, err := s.Decode(data)
	if err != nil {
		return
	}
	b, err := s.Append(nil, v)
	if err != nil {
		if _, ok := any(v).(time.Time); ok {
			return // beyond the range that is written
		}
		t.Fatalf("%T: %x decoded to %v, which can't be encoded: %v", s, data, v, err)
	}
	if !bytes.EqualFold(b, data) {
		t.Fatalf("%T: %x decoded to %v, which encodes to %x", s, data, v, b)
	}
}
