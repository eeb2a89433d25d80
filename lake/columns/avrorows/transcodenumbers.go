package avrorows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// integer gives the number that Avro has for an int or a long, and for the logical types on them: what a format says in words ("2024-01-02")
// is turned into the declared unit, and a bare number is taken to be in it.
func (t *transcoding[V]) integer(n *node, v V, kind ValueKind) (i int64, err error) {
	switch kind {
	case IntValue, FloatValue:
		var ok bool
		if i, ok = v.Int(); !ok {
			return 0, fmt.Errorf("the number has a fraction or is out of range of a %s", n.kind)
		}
	case TextValue:
		if t.text, err = v.AppendText(t.text[:0]); err != nil {
			return 0, err
		}
		if i, err = parseInteger(n, string(t.text)); err != nil {
			return 0, err
		}
	case InstantValue:
		seconds, nanos := v.Instant()
		if n.logical == "date" {
			i = floorDiv(seconds, 86400)
			break
		}
		unit, ok := units[n.logical]
		if !ok || strings.HasPrefix(n.logical, "time-") {
			return 0, misfit(n, kind)
		}
		if i, err = inUnit(seconds, int64(nanos), unit); err != nil {
			return 0, err
		}
	default:
		return 0, misfit(n, kind)
	}
	if n.kind == "int" && (i < math.MinInt32 || i > math.MaxInt32) {
		return 0, fmt.Errorf("%d is out of range of an int", i)
	}
	return i, nil
}

// parseInteger reads a text for an int or a long. Protobuf's JSON writes longs as texts.
func parseInteger(n *node, text string) (int64, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	unit := units[n.logical]
	parse := func(layouts ...string) (t time.Time, err error) {
		for _, layout := range layouts {
			if t, err = time.Parse(layout, text); err == nil {
				return t, nil
			}
		}
		return t, fmt.Errorf("%q is not a %s such as %s", text, n.describe(), layouts[0])
	}
	switch {
	case n.logical == "date":
		t, err := parse("2006-01-02")
		return floorDiv(t.Unix(), 86400), err
	case strings.HasPrefix(n.logical, "time-"):
		t, err := parse("15:04:05.999999999")
		seconds, nanos := int64(t.Hour()*3600+t.Minute()*60+t.Second()), int64(t.Nanosecond())
		if err != nil {
			return 0, err
		}
		return inUnit(seconds, nanos, unit)
	case strings.HasPrefix(n.logical, "timestamp-"):
		t, err := parse(time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00")
		if err != nil {
			return 0, err
		}
		return inUnit(t.Unix(), int64(t.Nanosecond()), unit)
	case strings.HasPrefix(n.logical, "local-timestamp-"):
		t, err := parse("2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999")
		if err != nil {
			return 0, err
		}
		return inUnit(t.Unix(), int64(t.Nanosecond()), unit)
	}
	return 0, fmt.Errorf("%q is not a %s", text, n.describe())
}

// inUnit gives a time in fractions of a second, rounded down.
func inUnit(seconds, nanos, unit int64) (int64, error) {
	whole := seconds * unit
	if seconds != 0 && whole/unit != seconds {
		return 0, errors.New("the time is out of range")
	}
	return whole + floorDiv(nanos, 1e9/unit), nil
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// decimal writes a decimal from its digits. Digits beyond the declared scale are an error, unless they are zero.
func (t *transcoding[V]) decimal(dst []byte, n *node, v V, kind ValueKind) (_ []byte, err error) {
	if kind != TextValue && kind != IntValue && kind != FloatValue {
		return nil, misfit(n, kind)
	}
	if t.text, err = v.AppendText(t.text[:0]); err != nil {
		return nil, err
	}
	unscaled, err := parseDecimal(string(t.text), n.scale)
	if err != nil {
		return nil, err
	}
	if digits := len(new(big.Int).Abs(unscaled).Text(10)); digits > n.precision {
		return nil, fmt.Errorf("%s has more digits than %s", t.text, n.describe())
	}
	data := twosComplement(unscaled)
	if n.kind == "bytes" {
		return append(binary.AppendVarint(dst, int64(len(data))), data...), nil
	}
	if len(data) > n.size {
		return nil, fmt.Errorf("%s doesn't fit %d bytes", t.text, n.size)
	}
	fill := byte(0)
	if unscaled.Sign() < 0 {
		fill = 0xff
	}
	for range n.size - len(data) {
		dst = append(dst, fill)
	}
	return append(dst, data...), nil
}

// maxDecimalText bounds what is worth parsing: an exponent could ask for a number of any length.
const maxDecimalText = 100

func parseDecimal(text string, scale int) (*big.Int, error) {
	bad := fmt.Errorf("%.40q is not a decimal number", text)
	mantissa, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		e, err := strconv.Atoi(text[i+1:])
		if err != nil || e < -maxDecimalText || e > maxDecimalText {
			return nil, bad
		}
		mantissa, exponent = text[:i], e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	shift := scale + exponent - len(fraction)
	digits := strings.TrimLeft(whole+fraction, "+")
	if len(digits) == 0 || len(digits) > maxDecimalText || strings.ContainsRune(digits, '_') {
		return nil, bad
	}
	unscaled, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return nil, bad
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	if shift >= 0 {
		return unscaled.Mul(unscaled, power), nil
	}
	rest := new(big.Int)
	if unscaled.QuoRem(unscaled, power, rest); rest.Sign() != 0 {
		return nil, fmt.Errorf("%.40s has more than %d digits behind the point", text, scale)
	}
	return unscaled, nil
}

// twosComplement is the shortest big-endian form.
func twosComplement(n *big.Int) []byte {
	if n.Sign() >= 0 {
		b := n.Bytes()
		if len(b) == 0 || b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	size := uint(len(n.Bytes())) * 8
	b := new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), size)).Bytes()
	for uint(len(b))*8 < size {
		b = append([]byte{0}, b...)
	}
	if len(b) == 0 || b[0]&0x80 == 0 {
		b = append([]byte{0xff}, b...)
	}
	return b
}
