package columns

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Day is a calendar date without a time, counted in days since 1970-01-01: the Go form of a Date column.
type Day int32

// DayOf returns the date of t in t's own zone.
func DayOf(t time.Time) Day {
	y, m, d := t.Date()
	return Day(floorDiv(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix(), 86400))
}

// Time returns the midnight, in UTC, at which the day starts.
func (d Day) Time() time.Time { return time.Unix(int64(d)*86400, 0).UTC() }

// String writes the day as YYYY-MM-DD.
func (d Day) String() string { return d.Time().Format(time.DateOnly) }

// MarshalText writes the day as YYYY-MM-DD.
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads YYYY-MM-DD.
func (d *Day) UnmarshalText(b []byte) error {
	t, err := time.Parse(time.DateOnly, string(b))
	if err != nil {
		return err
	}
	*d = DayOf(t)
	return nil
}

// floorDiv divides rounding down, so that instants before 1970 keep their order.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// FloorDiv divides rounding down.
func FloorDiv(a, b int64) int64 { return floorDiv(a, b) }

const maxMicroSeconds = math.MaxInt64 / 1_000_000

// Micros returns t in microseconds since 1970 in UTC, rounded down. Times further than about 292,000 years away are an error.
func Micros(t time.Time) (int64, error) {
	if s := t.Unix(); s > maxMicroSeconds || s < -maxMicroSeconds {
		return 0, fmt.Errorf("time %v is out of the range of microseconds since 1970", t)
	}
	return t.UnixMicro(), nil
}

// MillisToMicros multiplies by 1000 and reports whether the product fits.
func MillisToMicros(ms int64) (int64, bool) {
	const limit = math.MaxInt64 / 1000
	return ms * 1000, ms <= limit && ms >= -limit
}

// ErrEmptyDecimal says that a decimal came as no bytes at all.
var ErrEmptyDecimal = errors.New("a decimal of zero bytes has no value")

// DecimalFromBytes reads an unscaled value as Avro and Parquet write it: two's complement, most significant byte first, of any
// length. The value must fit the precision.
func DecimalFromBytes(b []byte, precision int) (decimal128.Num, error) {
	if len(b) == 0 {
		return decimal128.Num{}, ErrEmptyDecimal
	}
	sign := byte(int8(b[0]) >> 7) // 0xff for a negative number
	for len(b) > 16 {
		if b[0] != sign || (b[1]^sign)&0x80 != 0 {
			return decimal128.Num{}, fmt.Errorf("decimal of %d bytes doesn't fit precision %d", len(b), precision)
		}
		b = b[1:]
	}
	hi, lo := uint64(int64(int8(sign))), uint64(int64(int8(sign)))
	for _, x := range b {
		hi = hi<<8 | lo>>56
		lo = lo<<8 | uint64(x)
	}
	v := decimal128.New(int64(hi), lo)
	if !v.FitsInPrecision(int32(precision)) {
		return v, fmt.Errorf("unscaled decimal %s doesn't fit precision %d", v.BigInt(), precision)
	}
	return v, nil
}

var (
	bigTen    = big.NewInt(10)
	powersTen = func() (p [MaxDecimalPrecision + 1]*big.Int) {
		for i := range p {
			p[i] = new(big.Int).Exp(bigTen, big.NewInt(int64(i)), nil)
		}
		return p
	}()
)

// DecimalFromRat returns the unscaled value of r, which must be exact at the scale and fit the precision.
func DecimalFromRat(r *big.Rat, precision, scale int) (decimal128.Num, error) {
	n := new(big.Int).Mul(r.Num(), powersTen[scale])
	q, rem := n.QuoRem(n, r.Denom(), new(big.Int))
	if rem.Sign() != 0 {
		return decimal128.Num{}, fmt.Errorf("%s has more than %d digits behind the point: round it before it is stored", r.RatString(), scale)
	}
	return DecimalFromInt(q, precision)
}

// DecimalFromInt returns an unscaled value as a decimal if it fits the precision.
func DecimalFromInt(n *big.Int, precision int) (decimal128.Num, error) {
	if n.CmpAbs(powersTen[precision]) >= 0 {
		return decimal128.Num{}, fmt.Errorf("unscaled decimal %s doesn't fit precision %d", n, precision)
	}
	return decimal128.FromBigInt(n), nil
}

const hexDigits = "0123456789abcdef"

// AppendUUID appends the canonical form of 36 characters.
func AppendUUID(dst []byte, u *[16]byte) []byte {
	for i, b := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
	}
	return dst
}
