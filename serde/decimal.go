package serde

import (
	"math/big"
	"strings"
)

// Decimal is the value of an Avro decimal on bytes as it is on the wire: the number without its decimal point, in two's
// complement, big endian. Where the point stands is in the schema (its scale), not in the value. A nil Decimal is a null, where
// the schema allows one.
//
// Values are compared by Int64 or Big: the same number may be written with more bytes than it needs. It costs no big number
// per record, as *big.Rat does.
type Decimal []byte

// DecimalOf returns the shortest form of an unscaled number: 12.50 with scale 2 is DecimalOf(1250).
func DecimalOf(unscaled int64) Decimal { return AppendDecimal(nil, unscaled) }

// AppendDecimal appends the shortest form of an unscaled number.
func AppendDecimal(dst []byte, unscaled int64) []byte {
	n := 1
	for v := unscaled; v < -128 || v > 127; v >>= 8 {
		n++
	}
	for n--; n >= 0; n-- {
		dst = append(dst, byte(unscaled>>(8*n)))
	}
	return dst
}

// Int64 returns the unscaled number. ok is false if it doesn't fit, or if there is none.
func (d Decimal) Int64() (unscaled int64, ok bool) {
	if len(d) == 0 {
		return 0, false
	}
	sign := int64(int8(d[0])) >> 7 // 0 or -1
	unscaled = sign
	for i, b := range d {
		if rest := len(d) - i; rest > 8 {
			if b != byte(sign) {
				return 0, false
			}
			continue
		}
		unscaled = unscaled<<8 | int64(b)
	}
	return unscaled, unscaled>>63 == sign
}

// Big returns the unscaled number; that of no bytes is 0.
func (d Decimal) Big() *big.Int {
	n := new(big.Int).SetBytes(d)
	if len(d) > 0 && d[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(d))))
	}
	return n
}

// Text writes the number with its point, such as "-12.50".
func (d Decimal) Text(scale int) string {
	s := d.Big().String()
	if scale <= 0 {
		return s
	}
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	if len(s) <= scale {
		s = strings.Repeat("0", scale+1-len(s)) + s
	}
	return sign + s[:len(s)-scale] + "." + s[len(s)-scale:]
}
