package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSON is a JSON value as its canonical text: compact, object keys sorted, no HTML escaping, numbers as the oracle prints them.
type JSON string

// number is a JSON number in a tree, in canonical text.
type number string

// parseJSON reads exactly one JSON text.
func parseJSON(data []byte) (JSON, error) {
	tree, err := parseTree(data)
	if err != nil {
		return "", err
	}
	return JSON(appendTree(nil, tree)), nil
}

// parseTree reads exactly one JSON text into maps, slices, strings, booleans, numbers and nil.
func parseTree(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("malformed JSON: not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("malformed JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("malformed JSON: something follows the value")
	}
	return canonTree(v), nil
}

func canonTree(v any) any {
	switch v := v.(type) {
	case json.Number:
		return canonNumber(string(v))
	case []any:
		for i := range v {
			v[i] = canonTree(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = canonTree(v[k])
		}
	}
	return v
}

// canonNumber prints integers of any length in decimal, and all else as a double in Java's form.
func canonNumber(s string) number {
	if !strings.ContainsAny(s, ".eE") {
		if i, ok := new(big.Int).SetString(s, 10); ok {
			return number(i.String())
		}
	}
	f, _ := strconv.ParseFloat(s, 64)
	return number(javaDouble(f))
}

// javaDouble prints a double as Java's Double.toString does: decimal within 1e-3..1e7, else "1.0E10".
func javaDouble(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	if a := math.Abs(f); a == 0 || a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mantissa, exp, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exp)
	return mantissa + "E" + strconv.Itoa(n)
}

// appendTree appends the canonical text of a tree.
func appendTree(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return appendQuoted(dst, v)
	case number:
		return append(dst, v...)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case JSON:
		return append(dst, v...)
	case []any:
		dst = append(dst, '[')
		for i, x := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendTree(dst, x)
		}
		return append(dst, ']')
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		dst = append(dst, '{')
		for i, k := range keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendQuoted(dst, k), ':')
			dst = appendTree(dst, v[k])
		}
		return append(dst, '}')
	}
	panic(fmt.Sprintf("golden: %T has no place in a JSON tree", v))
}

const hexDigits = "0123456789ABCDEF"

// appendQuoted quotes as Jackson does: only quotes, backslashes and control characters are escaped.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			if c < ' ' {
				dst = append(dst, `\u00`...)
				dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
			} else {
				dst = append(dst, c)
			}
		}
	}
	return append(dst, '"')
}

// tree gives the value as a tree.
func (j JSON) tree() any {
	t, err := parseTree([]byte(j))
	if err != nil {
		panic("golden: a JSON value is canonical by construction: " + err.Error())
	}
	return t
}

// field is the raw value of an object's field; ok is false for a null, an absent field, and where j is no object.
func (j JSON) field(name string) (value any, ok bool) {
	m, _ := j.tree().(map[string]any)
	value = m[name]
	return value, value != nil
}
