package land

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-io/tributary/lake"
)

// appendJSON writes a generated value as JSON, where there are several ways in one of them by chance.
func (g *generator) appendJSON(dst []byte, s shape, v any) ([]byte, error) {
	if v == nil {
		return append(dst, "null"...), nil
	}
	switch s.kind {
	case "union":
		for i, name := range s.names {
			if inner := v.(map[string]any)[name]; inner != nil {
				dst = append(appendText(append(dst, '{'), name), ':')
				dst, err := g.appendJSON(dst, s.branches[i], inner)
				return append(dst, '}'), err
			}
		}
		return dst, fmt.Errorf("no branch of a union is set")
	case "record":
		return g.appendRecord(dst, s, v.(map[string]any))
	case "array", "map":
		return g.appendItems(dst, s, v)
	}
	return g.appendScalar(dst, s, v)
}

func (g *generator) appendRecord(dst []byte, s shape, v map[string]any) ([]byte, error) {
	members, err := g.members(s)
	if err != nil {
		return dst, err
	}
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = g.appendJSON(append(appendText(dst, m.name), ':'), m.shape, v[m.name]); err != nil {
			return dst, fmt.Errorf("field %s: %w", m.name, err)
		}
	}
	return append(dst, '}'), nil
}

func (g *generator) appendItems(dst []byte, s shape, v any) ([]byte, error) {
	inner, err := g.inner(s)
	if err != nil {
		return dst, err
	}
	if list, ok := v.([]any); ok {
		dst = append(dst, '[')
		for i, item := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = g.appendJSON(dst, inner, item); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	}
	entries := v.(map[string]any)
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(entries)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = g.appendJSON(append(appendText(dst, key), ':'), inner, entries[key]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (g *generator) appendScalar(dst []byte, s shape, v any) ([]byte, error) {
	either := g.rand.IntN(2) == 0
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int32:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int64:
		if s.logical == "time-millis" {
			v /= 1000 // from the column's microseconds
		}
		if either && s.logical == "" {
			return appendText(dst, strconv.FormatInt(v, 10)), nil
		}
		return strconv.AppendInt(dst, v, 10), nil
	case float32:
		return strconv.AppendFloat(dst, float64(v), 'g', -1, 64), nil
	case float64:
		return strconv.AppendFloat(dst, v, 'g', -1, 64), nil
	case string:
		if s.logical == "decimal" && either {
			return append(dst, v...), nil
		}
		return appendText(dst, v), nil
	case []byte:
		return appendText(dst, base64.StdEncoding.EncodeToString(v)), nil
	case lake.Date:
		return appendText(dst, time.Unix(int64(v)*86400, 0).UTC().Format(time.DateOnly)), nil
	case time.Time:
		if either {
			return strconv.AppendInt(dst, inUnit(v, s.logical), 10), nil
		}
		if strings.HasPrefix(s.logical, "local-") {
			return appendText(dst, v.Format("2006-01-02T15:04:05.999999")), nil
		}
		return appendText(dst, v.Format(time.RFC3339Nano)), nil
	case map[string]any: // a duration
		return fmt.Appendf(dst, `{"months":%d,"days":%d,"millis":%d}`, v["months"], v["days"], v["millis"]), nil
	}
	return dst, fmt.Errorf("a %T is no value of a column", v)
}

// inUnit is an instant in the unit of a logical type.
func inUnit(t time.Time, logical string) int64 {
	switch {
	case strings.HasSuffix(logical, "millis"):
		return t.UnixMilli()
	case strings.HasSuffix(logical, "micros"):
		return t.UnixMicro()
	}
	return t.UnixNano()
}

func appendText(dst []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text is always JSON
	}
	return append(dst, quoted...)
}
