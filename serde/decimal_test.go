package serde_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/serde"
)

func TestDecimalBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "00", 1: "01", -1: "ff", 127: "7f", 128: "0080", -128: "80", -129: "ff7f", 1250: "04e2",
		math.MaxInt64: "7fffffffffffffff", math.MinInt64: "8000000000000000",
	} {
		if got := fmt.Sprintf("%x", []byte(serde.DecimalOf(n))); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	for d, want := range map[string]int64{"\x00\x00\x00\x00\x00\x00\x00\x00\x05": 5, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe": -2} {
		if n, ok := serde.Decimal(d).Int64(); n != want || !ok {
			t.Errorf("%x is %d, %v, want %d", d, n, ok, want)
		}
	}
	for _, d := range []string{"", "\x01\x00\x00\x00\x00\x00\x00\x00\x00", "\x00\x80\x00\x00\x00\x00\x00\x00\x00", "\xff\x7f\x00\x00\x00\x00\x00\x00\x00"} {
		if n, ok := serde.Decimal(d).Int64(); ok {
			t.Errorf("%x is %d, though it is too large or nothing", d, n)
		}
	}
}

func TestDecimalAgreesWithBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		d := serde.DecimalOf(n)
		if back, ok := d.Int64(); back != n || !ok {
			t.Fatalf("%d came back as %d, %v", n, back, ok)
		}
		if d.Big().Cmp(big.NewInt(n)) != 0 {
			t.Fatalf("%d is %v", n, d.Big())
		}
		raw := serde.Decimal(rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "raw"))
		if v, ok := raw.Int64(); ok != raw.Big().IsInt64() || ok && v != raw.Big().Int64() {
			t.Fatalf("% x is %d, %v; as a big number %v", []byte(raw), v, ok, raw.Big())
		}
	})
}

func TestDecimalText(t *testing.T) {
	for _, c := range []struct {
		n     int64
		scale int
		want  string
	}{{1250, 2, "12.50"}, {-1250, 2, "-12.50"}, {5, 2, "0.05"}, {-5, 3, "-0.005"}, {0, 2, "0.00"}, {7, 0, "7"}} {
		if got := serde.DecimalOf(c.n).Text(c.scale); got != c.want {
			t.Errorf("%d with scale %d is %s, want %s", c.n, c.scale, got, c.want)
		}
	}
}
