package delta

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Partition values are strings in the log; null is a null there (PROTOCOL.md, "Partition Value Serialization"). The
// Partition… functions make them from values. A pointer is returned because add actions hold pointers, nil for null.

// ErrEmptyPartition refuses an empty text as a partition value: the specification reads it as null, and engines disagree.
var ErrEmptyPartition = errors.New("an empty text can't be a partition value: readers take it for null; use null or another value")

// PartitionInt serializes an integer of any width.
func PartitionInt(v int64) *string { return ptr(strconv.FormatInt(v, 10)) }

// PartitionBool serializes a boolean.
func PartitionBool(v bool) *string { return ptr(strconv.FormatBool(v)) }

// PartitionFloat serializes a float (bits 32) or double (bits 64) the way Java's toString does, which is what readers were made
// for: 1.0, 1.0E10, 1.0E-5, NaN, Infinity.
func PartitionFloat(v float64, bits int) *string { return ptr(javaFloat(v, bits)) }

// PartitionDate serializes days since 1970-01-01.
func PartitionDate(days int32) *string { return ptr(string(appendDate(nil, int64(days)))) }

// PartitionTimestamp serializes microseconds since 1970-01-01, for a timestamp (utc: ISO 8601 with Z, so that it doesn't depend
// on anyone's time zone) or a timestamp_ntz.
func PartitionTimestamp(micros int64, utc bool) *string {
	seconds := floorDiv(micros, 1e6)
	out := appendDate(nil, floorDiv(seconds, 24*60*60))
	layout := " 15:04:05.000000"
	if utc {
		layout = "T15:04:05.000000Z"
	}
	return ptr(string(time.Unix(seconds, (micros-seconds*1e6)*1000).UTC().AppendFormat(out, layout)))
}

// PartitionDecimal serializes unscaled / 10^scale with all digits of its scale.
func PartitionDecimal(unscaled *big.Int, scale int) *string { return ptr(decimalText(unscaled, scale)) }

// PartitionString serializes a text; see ErrEmptyPartition.
func PartitionString(s string) (*string, error) {
	if s == "" {
		return nil, ErrEmptyPartition
	}
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("a partition value must be valid UTF-8: %q", s)
	}
	return &s, nil
}

func ptr(s string) *string { return &s }

// javaFloat formats like Java's Double.toString and Float.toString (as of JDK 19: shortest digits).
func javaFloat(v float64, bits int) string {
	switch s := strconv.FormatFloat(v, 'g', -1, bits); s {
	case "NaN":
		return s
	case "+Inf":
		return "Infinity"
	case "-Inf":
		return "-Infinity"
	}
	abs := v
	if abs < 0 {
		abs = -abs
	}
	if abs == 0 || abs >= 1e-3 && abs < 1e7 {
		s := strconv.FormatFloat(v, 'f', -1, bits)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mantissa, exp, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, bits), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exp) // made by FormatFloat
	return mantissa + "E" + strconv.Itoa(n)
}

// ParsePartition reads a partition value back: int64 for integers, float64, bool, string, *big.Int (unscaled) for decimals, int64
// days for dates, int64 microseconds for timestamps. nil and "" are null. A timestamp without zone is read as UTC: the
// specification leaves it to the writer's zone, which nobody knows.
func ParsePartition(t Type, value *string) (any, error) {
	if value == nil || *value == "" {
		return nil, nil
	}
	s := *value
	p, ok := t.(Primitive)
	if !ok {
		return nil, fmt.Errorf("a column of type %s can't partition a table", t)
	}
	switch p {
	case String, Binary:
		return s, nil
	case Boolean:
		return strconv.ParseBool(s)
	case Byte, Short, Integer, Long:
		return strconv.ParseInt(s, 10, integerBits(p))
	case Float:
		return strconv.ParseFloat(s, 32)
	case Double:
		return strconv.ParseFloat(s, 64)
	case Date:
		day, err := time.Parse("2006-01-02", s)
		return day.Unix() / (24 * 60 * 60), err
	case Timestamp, TimestampNTZ:
		return parseTimestamp(s)
	}
	if precision, scale, ok := p.DecimalParts(); ok {
		return parseDecimal(s, precision, scale)
	}
	return nil, fmt.Errorf("a column of type %s can't partition a table", t)
}

func integerBits(p Primitive) int {
	switch p {
	case Byte:
		return 8
	case Short:
		return 16
	case Integer:
		return 32
	}
	return 64
}

func parseTimestamp(s string) (int64, error) {
	for _, layout := range []string{"2006-01-02T15:04:05.999999Z07:00", "2006-01-02 15:04:05.999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UnixMicro(), nil
		}
	}
	return 0, fmt.Errorf("not a timestamp: %q", s)
}

func parseDecimal(s string, precision, scale int) (*big.Int, error) {
	whole, frac, _ := strings.Cut(s, ".")
	for len(frac) > scale && strings.HasSuffix(frac, "0") {
		frac = frac[:len(frac)-1]
	}
	if len(frac) > scale || len(s) > 100 || strings.ContainsAny(frac, "+-_") {
		return nil, fmt.Errorf("not a decimal(%d,%d): %q", precision, scale, s)
	}
	n, ok := new(big.Int).SetString(whole+frac+strings.Repeat("0", scale-len(frac)), 10)
	if !ok || len(new(big.Int).Abs(n).String()) > precision {
		return nil, fmt.Errorf("not a decimal(%d,%d): %q", precision, scale, s)
	}
	return n, nil
}
