package golden

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tributary-io/tributary/serde"
)

// Type is a data type of the scenario format: a base type, for keys possibly within a window.
//
// Values of the types in Go: string, int64, int32, float64, []byte, JSON and, of windowed types, Windowed; nil is a null.
type Type struct {
	base   string
	window windowKind
	size   int64 // ms, of time windows
	// inner and innerSize are those of the key within the window, if it is in a window itself.
	inner     windowKind
	innerSize int64
}

type windowKind int

const (
	noWindow windowKind = iota
	timeWindow
	sessionWindow
)

// Windowed is a key within a window. End is as the window's kind counts it.
type Windowed struct {
	Key        any
	Start, End int64
}

// The base types.
var (
	typeString = Type{base: "string"}
	typeInt64  = Type{base: "int64"}
	typeInt32  = Type{base: "int32"}
	typeFloat  = Type{base: "float64"}
	typeBytes  = Type{base: "bytes"}
	typeJSON   = Type{base: "json"}
	typeStrict = Type{base: "strictString"}
)

func parseType(raw json.RawMessage) (Type, error) {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		t := Type{base: name}
		switch t {
		case typeString, typeInt64, typeInt32, typeFloat, typeBytes, typeJSON, typeStrict:
			return t, nil
		}
		return t, unsupported("type %q", name)
	}
	var w struct {
		Time    string `json:"timeWindowed"`
		Session string `json:"sessionWindowed"`
		Size    int64  `json:"size"`
	}
	if err := json.Unmarshal(raw, &w); err != nil || (w.Time == "") == (w.Session == "") {
		return Type{}, unsupported("type %s", raw)
	}
	inner, err := parseType(json.RawMessage(strconv.Quote(w.Time + w.Session)))
	if w.Time != "" {
		return inner.timeWindowed(w.Size), err
	}
	return inner.sessionWindowed(), err
}

func (t Type) timeWindowed(size int64) Type {
	return Type{base: t.base, window: timeWindow, size: size, inner: t.window, innerSize: t.size}
}
func (t Type) sessionWindowed() Type {
	return Type{base: t.base, window: sessionWindow, inner: t.window, innerSize: t.size}
}

// plain is the type without its window, for keys in windows of windows that of the inner ones.
func (t Type) plain() Type      { return Type{base: t.base, window: t.inner, size: t.innerSize} }
func (t Type) isWindowed() bool { return t.window != noWindow }

// Serde is the type's serde of any.
func (t Type) Serde() serde.Serde[any] {
	if t.isWindowed() {
		return windowedTypeSerde{typeSerde{t}}
	}
	return typeSerde{t}
}

type typeSerde struct{ t Type }

func (s typeSerde) NonAliasing() {}

// windowedTypeSerde is a processors.WindowedKeySerde.
type windowedTypeSerde struct{ typeSerde }

func (s windowedTypeSerde) AppendKey(dst []byte, v any) ([]byte, error) {
	w, ok := v.(Windowed)
	if !ok {
		return dst, fmt.Errorf("%T is no windowed key", v)
	}
	return s.t.plain().Serde().Append(dst, w.Key)
}

func (s typeSerde) Append(dst []byte, v any) ([]byte, error) {
	w, isWindowed := v.(Windowed)
	switch {
	case s.t.window == noWindow:
		return s.t.appendBase(dst, v)
	case !isWindowed:
		return dst, fmt.Errorf("%T is no windowed key", v)
	}
	dst, err := s.t.plain().Serde().Append(dst, w.Key)
	if err != nil {
		return dst, err
	}
	if s.t.window == sessionWindow {
		dst = binary.BigEndian.AppendUint64(dst, uint64(w.End))
	}
	return binary.BigEndian.AppendUint64(dst, uint64(w.Start)), nil
}

func (t Type) appendBase(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		if t.base == "string" {
			return append(dst, v...), nil
		}
		if t.base == "strictString" {
			if strings.Contains(v, "!bad") {
				return dst, &refusedError{v}
			}
			return append(dst, v...), nil
		}
	case int64:
		if t.base == "int64" {
			return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
		}
	case int32:
		if t.base == "int32" {
			return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
		}
	case float64:
		if t.base == "float64" {
			return binary.BigEndian.AppendUint64(dst, math.Float64bits(v)), nil
		}
	case []byte:
		if t.base == "bytes" {
			return append(dst, v...), nil
		}
	case JSON:
		if t.base == "json" {
			return append(dst, v...), nil
		}
	}
	return dst, fmt.Errorf("%T is no %s", v, t.base)
}

func (s typeSerde) Decode(data []byte) (any, error) {
	t := s.t
	tail := map[windowKind]int{timeWindow: 8, sessionWindow: 16}[t.window]
	if len(data) < tail {
		return nil, fmt.Errorf("%d bytes are too short for a windowed key", len(data))
	}
	if t.window == noWindow {
		return t.decodeBase(data)
	}
	key, err := t.plain().Serde().Decode(data[:len(data)-tail])
	if err != nil {
		return nil, err
	}
	start := int64(binary.BigEndian.Uint64(data[len(data)-8:]))
	if t.window == sessionWindow {
		end := int64(binary.BigEndian.Uint64(data[len(data)-16:]))
		return Windowed{key, start, end}, nil
	}
	end := start + t.size
	if end < 0 {
		end = math.MaxInt64
	}
	return Windowed{key, start, end}, nil
}

func (t Type) decodeBase(data []byte) (any, error) {
	switch t.base {
	case "string":
		return string(data), nil
	case "strictString":
		if strings.Contains(string(data), "!raw") {
			return nil, fmt.Errorf("strictString refuses the bytes %q", data)
		}
		return string(data), nil
	case "int64":
		v, err := serde.Int64.Decode(data)
		return v, err
	case "int32":
		v, err := serde.Int32.Decode(data)
		return v, err
	case "float64":
		v, err := serde.Float64.Decode(data)
		return v, err
	case "bytes":
		return append([]byte{}, data...), nil
	case "json":
		v, err := parseJSON(data)
		return v, err
	}
	return nil, unsupported("type %q", t.base)
}

// value makes a value of the type from a scenario's JSON; nil for null.
func (t Type) value(raw json.RawMessage) (any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if t.window != noWindow {
		var w struct {
			Key        json.RawMessage
			Start, End int64
		}
		if err := json.Unmarshal(raw, &w); err != nil {
			return nil, err
		}
		key, err := t.plain().value(w.Key)
		return Windowed{key, w.Start, w.End}, err
	}
	var err error
	switch t.base {
	case "string", "strictString":
		var v string
		err = json.Unmarshal(raw, &v)
		return v, err
	case "int64":
		var v int64
		err = json.Unmarshal(raw, &v)
		return v, err
	case "int32":
		var v int32
		err = json.Unmarshal(raw, &v)
		return v, err
	case "float64":
		var v float64
		err = json.Unmarshal(raw, &v)
		return v, err
	case "bytes":
		var v []byte
		err = json.Unmarshal(raw, &v)
		return v, err
	case "json":
		v, err := parseJSON(raw)
		return v, err
	}
	return nil, unsupported("type %q", t.base)
}

// encode turns a scenario's JSON into the bytes of the type; nil for null.
func (t Type) encode(raw json.RawMessage) ([]byte, error) {
	v, err := t.value(raw)
	if err != nil || v == nil {
		return nil, err
	}
	return t.Serde().Append([]byte{}, v)
}

// show gives the tree by which a scenario shows a value.
func show(v any) any {
	switch v := v.(type) {
	case nil, string:
		return v
	case int64:
		return number(strconv.FormatInt(v, 10))
	case int32:
		return number(strconv.FormatInt(int64(v), 10))
	case float64:
		return number(javaDouble(v))
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case JSON:
		return v.tree()
	case Windowed:
		return map[string]any{"key": show(v.Key), "start": show(v.Start), "end": show(v.End)}
	}
	panic(fmt.Sprintf("golden: %T is no value of the format", v))
}

// text is the format's text(x).
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case int32:
		return strconv.FormatInt(int64(v), 10)
	case float64:
		return javaDouble(v)
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case JSON:
		return string(v)
	case Windowed:
		return fmt.Sprintf("%s@%d-%d", text(v.Key), v.Start, v.End)
	}
	panic(fmt.Sprintf("golden: %T is no value of the format", v))
}
