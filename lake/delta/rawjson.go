package delta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// rawEntry is one key of a JSON object with the exact bytes of its value.
type rawEntry struct {
	key   string
	value json.RawMessage
}

// extraKeys are keys of an object that this package has no field for, kept so that they are written back as they came.
type extraKeys []rawEntry

// readObject splits a JSON object into its entries, in order. A key that appears twice is an error: readers disagree about
// which one counts.
func readObject(data []byte) ([]rawEntry, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if tok != json.Delim('{') {
		return nil, fmt.Errorf("expected a JSON object, found %v", tok)
	}
	var entries []rawEntry
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key := tok.(string) // inside an object the decoder allows nothing else
		for _, e := range entries {
			if e.key == key {
				return nil, fmt.Errorf("key %q appears twice", key)
			}
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		entries = append(entries, rawEntry{key, raw})
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("text after the JSON object")
	}
	return entries, nil
}

// objectWriter builds a JSON object key by key.
type objectWriter struct {
	buf []byte
	err error
}

func (w *objectWriter) raw(key string, value []byte) {
	if len(w.buf) == 0 {
		w.buf = append(w.buf, '{')
	} else {
		w.buf = append(w.buf, ',')
	}
	w.buf = appendJSONString(w.buf, key)
	w.buf = append(w.buf, ':')
	w.buf = append(w.buf, value...)
}

func (w *objectWriter) value(key string, v any) {
	raw, err := marshalPlain(v)
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("%s: %w", key, err)
		return
	}
	w.raw(key, raw)
}

func (w *objectWriter) extra(entries extraKeys) {
	for _, e := range entries {
		w.raw(e.key, e.value)
	}
}

func (w *objectWriter) done() ([]byte, error) {
	if len(w.buf) == 0 {
		w.buf = append(w.buf, '{')
	}
	return append(w.buf, '}'), w.err
}

// marshalPlain marshals without HTML escapes, which other writers don't make either.
func marshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func appendJSONString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			raw, _ := marshalPlain(s) // a string always marshals
			return append(dst, raw...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// atoiSmall parses a short decimal number without sign.
func atoiSmall(s string) (int, bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
