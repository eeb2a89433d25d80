package rowgen

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// typ is a type: its schema, its values, and how one that a reader gives compares.
type typ interface {
	schema() any
	value(t *Table) value
	diff(want, got any) string
}

// scalar is a type without parts.
type scalar struct {
	kind             string // int, long, float, double, boolean, string, bytes, decimal, date, timestamp, local
	precision, scale int
	partition        bool // no empty texts
}

type (
	record struct {
		name    string
		members []*column
	}
	list    struct{ element *column }
	mapping struct{ values *column }
)

var kinds = []string{"int", "long", "float", "double", "boolean", "string", "string", "bytes", "decimal", "decimal", "date", "timestamp", "local"}

func (t *Table) typ(depth int) typ {
	if depth > 0 && t.r.IntN(4) == 0 {
		switch t.r.IntN(3) {
		case 0:
			t.names++
			s := &record{name: fmt.Sprint("R", t.names)}
			for range 1 + t.r.IntN(3) {
				s.members = append(s.members, t.column(depth-1, t.r.IntN(3) > 0))
			}
			return s
		case 1:
			return list{t.column(depth-1, t.r.IntN(2) > 0)}
		default:
			return mapping{t.column(depth-1, t.r.IntN(2) > 0)}
		}
	}
	s := scalar{kind: kinds[t.r.IntN(len(kinds))]}
	if s.kind == "local" && t.grown && !t.local {
		s.kind = "timestamp"
	}
	t.local = t.local || s.kind == "local"
	if s.kind == "decimal" {
		s.precision = []int{1, 4, 9, 10, 18, 19, 38}[t.r.IntN(7)]
		s.scale = t.r.IntN(s.precision + 1)
	}
	return s
}

func (s scalar) schema() any {
	switch s.kind {
	case "decimal":
		return map[string]any{"type": "bytes", "logicalType": "decimal", "precision": s.precision, "scale": s.scale}
	case "date":
		return map[string]any{"type": "int", "logicalType": "date"}
	case "timestamp":
		return map[string]any{"type": "long", "logicalType": "timestamp-micros"}
	case "local":
		return map[string]any{"type": "long", "logicalType": "local-timestamp-micros"}
	}
	return s.kind
}

// partitions reports whether rows can be partitioned by the type.
func (s scalar) partitions() bool {
	return s.kind != "bytes" && s.kind != "float" && s.kind != "double"
}

// sqlType is the type's name in SQL, as far as it matters.
func (s scalar) sqlType() string {
	if s.kind == "decimal" {
		return fmt.Sprintf("decimal(%d,%d)", s.precision, s.scale)
	}
	return s.kind
}

// Times are between the years 1 and 9999, beyond which not all readers go.
var (
	firstTime = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC).UnixMicro()
	lastTime  = time.Date(9999, 12, 30, 23, 59, 59, 999_999_000, time.UTC).UnixMicro()
)

const day = 24 * 3600 * 1_000_000

var texts = []string{"", " ", "a", "A", "null", "\x00", "it's", `"quoted"`, `back\slash`, "a/b=c%41 d+e&f?g#h", "ä", "日本語", "\U0001F600", "\U0010FFFF", "tab\tand\nline", "{x}[y]^z|",
	"__HIVE_DEFAULT_PARTITION__", strings.Repeat("x", 31), strings.Repeat("x", 32), strings.Repeat("x", 33), strings.Repeat("é", 40), strings.Repeat("\U0001F600", 20),
	strings.Repeat("\U0010FFFF", 33), strings.Repeat("\U0010FFFF", 70), strings.Repeat("z", 31) + "\U0010FFFF\U0010FFFF", strings.Repeat("\x7f", 40), strings.Repeat("long text ", 50)}

var doubles = []float64{0, math.Copysign(0, -1), 1, -1, 0.1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 1e300, 123456789.125}

func (s scalar) value(t *Table) value {
	r := t.r
	number := func(n int64) value { return value{n, strconv.FormatInt(n, 10), strconv.FormatInt(n, 10)} }
	switch s.kind {
	case "int":
		n := []int32{0, -1, 7, math.MinInt32, math.MaxInt32, r.Int32()}[r.IntN(6)]
		return value{n, fmt.Sprint(n), fmt.Sprint(n)}
	case "long":
		return number([]int64{0, -1, 1 << 53, 1<<53 + 1, math.MinInt64, math.MaxInt64, r.Int64()}[r.IntN(7)])
	case "float":
		f := float32(doubles[r.IntN(len(doubles))])
		return value{f, float(float64(f)), ""}
	case "double":
		f := doubles[r.IntN(len(doubles))]
		v := value{f, float(f), ""}
		if !math.IsNaN(f) && !math.IsInf(f, 0) && f != 0 {
			v.sql = strconv.FormatFloat(f, 'e', -1, 64)
		}
		return v
	case "boolean":
		b := r.IntN(2) == 0
		return value{b, strconv.FormatBool(b), strconv.FormatBool(b)}
	case "string":
		text := texts[r.IntN(len(texts))]
		for s.partition && text == "" {
			text = texts[r.IntN(len(texts))]
		}
		v := value{text, text, text}
		if strings.ContainsRune(text, 0) {
			v.sql = ""
		}
		return v
	case "bytes":
		b := []byte(texts[r.IntN(len(texts))])
		return value{b, hex.EncodeToString(b), ""}
	case "decimal":
		return s.decimal(t)
	case "date":
		n := []int64{0, -1, 20605, firstTime / day, lastTime / day}[r.IntN(5)]
		text := time.UnixMicro(n * day).UTC().Format("2006-01-02")
		return value{int32(n), text, text}
	}
	us := []int64{0, -1, 1780000000298999, 1780000000298001, firstTime, lastTime, firstTime + r.Int64N(lastTime-firstTime)}[r.IntN(7)]
	text := time.UnixMicro(us).UTC().Format("2006-01-02T15:04:05.000000")
	if s.kind == "timestamp" {
		text += "Z"
	}
	return value{us, text, strings.TrimSuffix(strings.Replace(text, "T", " ", 1), "Z")}
}

func (s scalar) decimal(t *Table) value {
	most := new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(s.precision)), nil), big.NewInt(1))
	n := big.NewInt(0)
	switch t.r.IntN(4) {
	case 0:
		n.Set(most)
	case 1:
		n.Neg(most)
	case 2:
		n.Mod(new(big.Int).Mul(big.NewInt(t.r.Int64()), big.NewInt(t.r.Int64())), most)
	}
	v := new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(s.scale)), nil))
	text := v.FloatString(s.scale)
	return value{v, text, text}
}

// float is the form in which floats are compared.
func float(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func (s scalar) diff(want, got any) string {
	text := fmt.Sprint(got)
	switch n, ok := got.(json.Number); {
	case s.kind == "float" || s.kind == "double":
		if f, err := strconv.ParseFloat(text, 64); ok && err == nil {
			text = float(f)
		}
	case ok:
		text = n.String()
	}
	if text != want {
		return fmt.Sprintf("%q, want %q", text, want)
	}
	return ""
}

func (s *record) schema() any {
	return map[string]any{"type": "record", "name": s.name, "fields": fields(s.members)}
}

func (s *record) value(t *Table) value {
	in, want := map[string]any{}, map[string]any{}
	for _, m := range s.members {
		v := t.value(m)
		in[m.name], want[m.name] = v.avro, v.want
	}
	return value{avro: in, want: want}
}

func (s *record) diff(want, got any) string {
	have, ok := got.(map[string]any)
	if !ok || len(have) != len(s.members) {
		return fmt.Sprintf("%v is no struct of %d members", got, len(s.members))
	}
	for _, m := range s.members {
		if d := m.diff(want.(map[string]any)[m.name], have[m.name]); d != "" {
			return m.name + ": " + d
		}
	}
	return ""
}

func (l list) schema() any { return map[string]any{"type": "array", "items": part(l.element)} }

// part is the schema of a part without a name.
func part(c *column) any {
	if c.nullable {
		return []any{"null", c.typ.schema()}
	}
	return c.typ.schema()
}

func (l list) value(t *Table) value {
	in, want := []any{}, []any{}
	for range t.r.IntN(4) {
		v := t.value(l.element)
		in, want = append(in, v.avro), append(want, v.want)
	}
	return value{avro: in, want: want}
}

func (l list) diff(want, got any) string {
	have, ok := got.([]any)
	if !ok || len(have) != len(want.([]any)) {
		return fmt.Sprintf("%v, want %v", got, want)
	}
	for i, w := range want.([]any) {
		if d := l.element.diff(w, have[i]); d != "" {
			return fmt.Sprintf("[%d]: %s", i, d)
		}
	}
	return ""
}

func (m mapping) schema() any { return map[string]any{"type": "map", "values": part(m.values)} }

func (m mapping) value(t *Table) value {
	in, want := map[string]any{}, map[string]any{}
	for i := range t.r.IntN(4) {
		v := t.value(m.values)
		key := fmt.Sprint("k", i)
		in[key], want[key] = v.avro, v.want
	}
	return value{avro: in, want: want}
}

func (m mapping) diff(want, got any) string {
	have, ok := got.(map[string]any)
	if pairs, isList := got.([]any); isList { // as Arrow gives it
		have, ok = map[string]any{}, true
		for _, p := range pairs {
			have[fmt.Sprint(p.([]any)[0])] = p.([]any)[1]
		}
	}
	if !ok || len(have) != len(want.(map[string]any)) {
		return fmt.Sprintf("%v, want %v", got, want)
	}
	for key, w := range want.(map[string]any) {
		if d := m.values.diff(w, have[key]); d != "" {
			return key + ": " + d
		}
	}
	return ""
}
