package jsonrows

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/columns/avrorows"
	"github.com/tributary-io/tributary/lake/sink"
)

// Decoder reads the values of a topic of JSON documents. It is safe for concurrent use.
type Decoder struct{ t *avrorows.Transcoder[value] }

// NewDecoder makes a decoder for a declared schema.
func NewDecoder(d *avrorows.Declared) (*Decoder, error) {
	t, err := avrorows.NewTranscoder[value](d)
	if err != nil {
		return nil, err
	}
	return &Decoder{t}, nil
}

// prefixLen is the length of Confluent's prefix.
const prefixLen = 5

// Append reads one document into the columns from number first on. A *sink.RowError says that it isn't JSON or doesn't fit; the caller rolls
// back.
func (d *Decoder) Append(b *columns.Builder, first int, data []byte, _ []sink.Header) error {
	if len(data) >= prefixLen && data[0] == 0 {
		data = data[prefixLen:]
	}
	// Members given twice and texts that aren't UTF-8 make a document invalid, too.
	if !jsontext.Value(data).IsValid() {
		return &sink.RowError{Err: errors.New("the value is not a JSON document")}
	}
	return d.t.Append(b, first, trim(data))
}

// value is the text of a valid JSON value, without space around it. It implements avrorows.Value.
type value []byte

func trim(data []byte) value {
	for len(data) > 0 && isSpace(data[0]) {
		data = data[1:]
	}
	for len(data) > 0 && isSpace(data[len(data)-1]) {
		data = data[:len(data)-1]
	}
	return data
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func (v value) Kind() avrorows.ValueKind {
	switch v[0] {
	case '{':
		return avrorows.ObjectValue
	case '[':
		return avrorows.ListValue
	case '"':
		return avrorows.TextValue
	case 't', 'f':
		return avrorows.BoolValue
	case 'n':
		return avrorows.NullValue
	}
	for _, c := range v {
		if c == '.' || c == 'e' || c == 'E' {
			return avrorows.FloatValue
		}
	}
	return avrorows.IntValue
}

func (v value) Bool() bool { return v[0] == 't' }

func (v value) Int() (int64, bool) {
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	f, ok := v.Float() // 5.0, 1e3
	if !ok || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

func (v value) Float() (float64, bool) {
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil
}

func (v value) AppendText(dst []byte) ([]byte, error) {
	if v[0] != '"' {
		return append(dst, v...), nil
	}
	return jsontext.AppendUnquote(dst, v)
}

// Bytes is never asked for: JSON has no bytes.
func (v value) Bytes() []byte { return nil }

// Instant is never asked for: JSON has no times.
func (v value) Instant() (int64, int32) { return 0, 0 }

func (v value) Items(yield func(value) error) error {
	for i := skipSpace(v, 1); v[i] != ']'; {
		end := skip(v, i)
		if err := yield(v[i:end]); err != nil {
			return err
		}
		if i = skipSpace(v, end); v[i] == ',' {
			i = skipSpace(v, i+1)
		}
	}
	return nil
}

func (v value) Entries(yield func(key []byte, v value) (bool, error)) error {
	var unquoted [64]byte
	for i := skipSpace(v, 1); v[i] != '}'; {
		end := skip(v, i)
		key, err := jsontext.AppendUnquote(unquoted[:0], v[i:end])
		if err != nil {
			return fmt.Errorf("name of a member: %w", err)
		}
		i = skipSpace(v, end)
		i = skipSpace(v, i+1) // the colon
		end = skip(v, i)
		if _, err := yield(key, v[i:end]); err != nil {
			return err
		}
		if i = skipSpace(v, end); v[i] == ',' {
			i = skipSpace(v, i+1)
		}
	}
	return nil
}

func skipSpace(v []byte, i int) int {
	for isSpace(v[i]) {
		i++
	}
	return i
}

// skip returns where the value that starts at i ends. The text is known to be valid.
func skip(v []byte, i int) int {
	switch v[i] {
	case '"':
		return skipText(v, i)
	case '{', '[':
		depth := 0
		for ; ; i++ {
			switch v[i] {
			case '"':
				i = skipText(v, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(v) && v[i] != ',' && v[i] != '}' && v[i] != ']' && !isSpace(v[i]) {
		i++
	}
	return i
}

func skipText(v []byte, i int) int {
	for i++; v[i] != '"'; i++ {
		if v[i] == '\\' {
			i++
		}
	}
	return i + 1
}
