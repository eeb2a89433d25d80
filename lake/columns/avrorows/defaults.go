package avrorows

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// encodeDefault appends a default value in Avro's binary form, so that the plan for the declared schema can read it like data.
// v is what the parser made of the JSON.
func encodeDefault(dst []byte, n *node, v any) ([]byte, error) {
	bad := fmt.Errorf("default %v (%T) doesn't fit %s", v, v, n.describe())
	switch n.kind {
	case "null":
		if v != nil {
			return nil, bad
		}
		return dst, nil
	case "boolean":
		b, ok := v.(bool)
		if !ok {
			return nil, bad
		}
		if b {
			return append(dst, 1), nil
		}
		return append(dst, 0), nil
	case "int", "long":
		i, ok := asInt(v)
		if !ok {
			return nil, bad
		}
		return binary.AppendVarint(dst, i), nil
	case "float", "double":
		f, ok := asFloat(v)
		if !ok {
			return nil, bad
		}
		if n.kind == "float" {
			return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(f))), nil
		}
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), nil
	case "string", "bytes", "fixed":
		return encodeText(dst, n, v, bad)
	case "enum":
		s, ok := v.(string)
		i := slices.Index(n.symbols, s)
		if !ok || i < 0 {
			return nil, bad
		}
		return binary.AppendVarint(dst, int64(i)), nil
	}
	return encodeNested(dst, n, v, bad)
}

func encodeText(dst []byte, n *node, v any, bad error) ([]byte, error) {
	var text []byte
	switch x := v.(type) {
	case string:
		text = []byte(x)
	case []byte:
		text = x
	default:
		return nil, bad
	}
	if n.kind == "fixed" {
		if len(text) != n.size {
			return nil, bad
		}
		return append(dst, text...), nil
	}
	return append(binary.AppendVarint(dst, int64(len(text))), text...), nil
}

func encodeNested(dst []byte, n *node, v any, bad error) (_ []byte, err error) {
	switch n.kind {
	case "union":
		for i, b := range n.branches {
			if out, err := encodeDefault(binary.AppendVarint(slices.Clone(dst), int64(i)), b, v); err == nil {
				return out, nil
			}
		}
		return nil, bad
	case "array":
		items, ok := v.([]any)
		if !ok {
			return nil, bad
		}
		if len(items) > 0 {
			dst = binary.AppendVarint(dst, int64(len(items)))
		}
		for _, item := range items {
			if dst, err = encodeDefault(dst, n.items, item); err != nil {
				return nil, err
			}
		}
		return append(dst, 0), nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, bad
	}
	if n.kind == "record" {
		return encodeRecord(dst, n, m)
	}
	return encodeMap(dst, n, m)
}

func encodeRecord(dst []byte, n *node, m map[string]any) (_ []byte, err error) {
	for i := range n.fields {
		f := &n.fields[i]
		v, ok := m[f.name]
		if !ok {
			if !f.hasDefault {
				return nil, fmt.Errorf("the default of record %s lacks field %s", n.name, f.name)
			}
			v = f.def
		}
		if dst, err = encodeDefault(dst, f.node, v); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func encodeMap(dst []byte, n *node, m map[string]any) (_ []byte, err error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if len(keys) > 0 {
		dst = binary.AppendVarint(dst, int64(len(keys)))
	}
	for _, k := range keys {
		dst = append(binary.AppendVarint(dst, int64(len(k))), k...)
		if dst, err = encodeDefault(dst, n.items, m[k]); err != nil {
			return nil, err
		}
	}
	return append(dst, 0), nil
}

func asInt(v any) (int64, bool) {
	switch x := v.(type) {
	case int32:
		return int64(x), true
	case int64:
		return x, true
	case int:
		return int64(x), true
	case float64:
		return int64(x), x == math.Trunc(x)
	}
	return 0, false
}

func asFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case float32:
		return float64(x), true
	}
	i, ok := asInt(v)
	return float64(i), ok
}
