package keyed

import (
	"fmt"
	"strconv"
	"strings"
)

// LSN is a position in PostgreSQL's write-ahead log (its type pg_lsn): a number of 64 bits, written as two halves in hex without leading zeros,
// such as 16/B374D848. The text has no order: 9/0 is before 10/0. Compare the numbers.
type LSN uint64

// ParseLSN reads a position as PostgreSQL writes it: two halves of one to eight hex digits, in letters of either case.
func ParseLSN(s string) (LSN, error) {
	high, low, ok := strings.Cut(s, "/")
	h, okHigh := hexHalf(high)
	l, okLow := hexHalf(low)
	if !ok || !okHigh || !okLow {
		return 0, fmt.Errorf("%q is no LSN: it has two halves of one to eight hex digits, as in 16/B374D848", clip(s))
	}
	return LSN(h<<32 | l), nil
}

// hexHalf reads one half. strconv alone would take signs and underscores.
func hexHalf(s string) (uint64, bool) {
	if len(s) < 1 || len(s) > 8 {
		return 0, false
	}
	var v uint64
	for _, c := range []byte(s) {
		var d byte
		switch {
		case '0' <= c && c <= '9':
			d = c - '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			d = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		v = v<<4 | uint64(d)
	}
	return v, true
}

// clip keeps messages short.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// String writes the position as PostgreSQL does.
func (l LSN) String() string {
	return strings.ToUpper(strconv.FormatUint(uint64(l>>32), 16) + "/" + strconv.FormatUint(uint64(uint32(l)), 16))
}

// MarshalText is String: in JSON, and in a table's column of a Go struct's field, an LSN is its text.
func (l LSN) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText is ParseLSN.
func (l *LSN) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLSN(string(text))
	return err
}
