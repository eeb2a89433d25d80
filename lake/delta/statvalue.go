package delta

import (
	"math"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendIntStat appends a bound of an integer column.
func AppendIntStat(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }

// AppendFloatStat appends a bound of a float or double column; upper says which of the two. NaN and infinities give nil (no
// bound): JSON has no numbers for them, and readers disagree about any other spelling. Zero becomes -0.0 as a lower and 0.0 as an
// upper bound, so that it holds in both orders of the two zeros. A float column's value is given, and written, exactly as a
// double.
func AppendFloatStat(dst []byte, v float64, upper bool) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	if v == 0 {
		if upper {
			return append(dst, "0.0"...)
		}
		return append(dst, "-0.0"...)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

// AppendDecimalStat appends a bound of a decimal column, exactly: unscaled / 10^scale.
func AppendDecimalStat(dst []byte, unscaled *big.Int, scale int) []byte {
	return append(dst, decimalText(unscaled, scale)...)
}

// decimalText writes a decimal with all the digits of its scale.
func decimalText(unscaled *big.Int, scale int) string {
	digits := new(big.Int).Abs(unscaled).String()
	if scale > 0 {
		for len(digits) <= scale {
			digits = "0" + digits
		}
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if unscaled.Sign() < 0 {
		return "-" + digits
	}
	return digits
}

// AppendDateStat appends a bound of a date column, given in days since 1970-01-01.
func AppendDateStat(dst []byte, days int32) []byte {
	dst = append(dst, '"')
	dst = appendDate(dst, int64(days))
	return append(dst, '"')
}

// AppendTimestampStat appends a bound of a timestamp column (utc) or timestamp_ntz column (not utc), given in microseconds
// since 1970-01-01. It is cut down to milliseconds; readers know and widen upper bounds by one (PROTOCOL.md, "Per-file
// Statistics").
func AppendTimestampStat(dst []byte, micros int64, utc bool) []byte {
	millis := floorDiv(micros, 1000)
	dst = append(dst, '"')
	dst = appendDate(dst, floorDiv(millis, millisPerDay))
	dst = append(dst, 'T')
	dst = time.UnixMilli(millis).UTC().AppendFormat(dst, "15:04:05.000")
	if utc {
		dst = append(dst, 'Z')
	}
	return append(dst, '"')
}

const millisPerDay = 24 * 60 * 60 * 1000

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// appendDate appends YYYY-MM-DD; years beyond 9999 or below 0 as Java's ISO format has them (+12345-01-01, -0001-01-01).
func appendDate(dst []byte, days int64) []byte {
	t := time.Unix(days*24*60*60, 0).UTC()
	year := t.Year()
	switch {
	case year > 9999:
		dst = append(dst, '+')
	case year < 0:
		dst = append(dst, '-')
		year = -year
	}
	for pad := 1000; pad > 1 && year < pad; pad /= 10 {
		dst = append(dst, '0')
	}
	dst = strconv.AppendInt(dst, int64(year), 10)
	return t.AppendFormat(dst, "-01-02")
}

// statPrefix is the number of characters that string bounds are cut to.
const statPrefix = 32

// AppendStringMinStat appends the lower bound of a string column: the smallest value, cut to 32 characters. The value must be
// valid UTF-8.
func AppendStringMinStat(dst []byte, s string) []byte {
	return appendJSONString(dst, s[:prefixLen(s, statPrefix)])
}

// AppendStringMaxStat appends the upper bound of a string column: the greatest value in the order of its UTF-8 bytes, cut to
// 32 characters and then raised above all that the cut may have dropped, as the reference writer does. It gives nil (no
// bound) where that isn't possible. The value must be valid UTF-8.
func AppendStringMaxStat(dst []byte, s string) []byte {
	for n := statPrefix; n <= 2*statPrefix; n++ {
		cut := prefixLen(s, n)
		if cut == len(s) {
			return appendJSONString(dst, s)
		}
		dropped, _ := utf8.DecodeRuneInString(s[cut:])
		switch {
		case dropped < 0x7f:
			return appendJSONString(dst, s[:cut]+"\x7f")
		case dropped < utf8.MaxRune:
			return appendJSONString(dst, s[:cut]+string(rune(utf8.MaxRune)))
		}
	}
	return nil
}

// prefixLen returns the length in bytes of the first n characters.
func prefixLen(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
