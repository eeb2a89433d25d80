package land

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/lake"
)

// generator makes values of an Avro schema, each as its bytes and as what a table must say of it. It has its own reading of the
// schema and its own encoder, so that a proof compares two independent readings of Avro's specification.
type generator struct {
	root  any
	named map[string]map[string]any // by full name
	rand  *rand.Rand
}

func newGenerator(schema string, seed uint64) (*generator, error) {
	g := &generator{named: map[string]map[string]any{}, rand: rand.New(rand.NewPCG(seed, 0))}
	if err := json.Unmarshal([]byte(schema), &g.root); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if m, ok := g.root.(map[string]any); !ok || m["type"] != "record" {
		return nil, fmt.Errorf("only records can be proved")
	}
	_, _, err := g.value(nil, g.root, "")
	return g, err
}

// row appends one value's bytes to dst, and returns its columns.
func (g *generator) row(dst []byte) ([]byte, map[string]any, error) {
	dst, v, err := g.value(dst, g.root, "")
	row, _ := v.(map[string]any)
	return dst, row, err
}

// empty is the value of the type null, which makes no column.
type empty struct{}

func appendLong(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

func appendBytes(dst, v []byte) []byte { return append(appendLong(dst, int64(len(v))), v...) }

// value appends a value of the schema, which is JSON, and returns what the table must have.
func (g *generator) value(dst []byte, schema any, space string) ([]byte, any, error) {
	switch s := schema.(type) {
	case string:
		if def, ok := g.named[fullName(s, space)]; ok {
			return g.value(dst, def, space)
		}
		return g.primitive(dst, map[string]any{"type": s})
	case []any:
		return g.union(dst, s, space)
	case map[string]any:
		kind, ok := s["type"].(string)
		if !ok {
			return g.value(dst, s["type"], space)
		}
		return g.complex(dst, kind, s, space)
	}
	return dst, nil, fmt.Errorf("schema: %v is no type", schema)
}

// fullName is a name with its namespace, the one around it unless it has its own.
func fullName(name, space string) string {
	if strings.Contains(name, ".") || space == "" {
		return name
	}
	return space + "." + name
}

// spaceIn is the namespace within a type.
func spaceIn(s map[string]any, space string) string {
	name, ok := s["name"].(string)
	if !ok {
		return space
	}
	if own, ok := s["namespace"].(string); ok {
		space = own
	}
	full := fullName(name, space)
	if i := strings.LastIndex(full, "."); i >= 0 {
		return full[:i]
	}
	return space
}

func (g *generator) complex(dst []byte, kind string, s map[string]any, space string) ([]byte, any, error) {
	if name, ok := s["name"].(string); ok && (kind == "record" || kind == "enum" || kind == "fixed") {
		if own, ok := s["namespace"].(string); ok {
			space = own
		}
		g.named[fullName(name, space)] = s
		space = spaceIn(s, space)
	}
	switch kind {
	case "record":
		return g.record(dst, s, space)
	case "enum":
		symbols, _ := s["symbols"].([]any)
		if len(symbols) == 0 {
			return dst, nil, fmt.Errorf("enum %v has no symbols", s["name"])
		}
		i := g.rand.IntN(len(symbols))
		return appendLong(dst, int64(i)), fmt.Sprint(symbols[i]), nil
	case "fixed":
		return g.fixed(dst, s)
	case "array":
		return g.array(dst, s, space)
	case "map":
		return g.mapping(dst, s, space)
	}
	if def, ok := g.named[fullName(kind, space)]; ok {
		return g.value(dst, def, space)
	}
	return g.primitive(dst, s)
}

func (g *generator) record(dst []byte, s map[string]any, space string) ([]byte, any, error) {
	fields, _ := s["fields"].([]any)
	out := map[string]any{}
	for _, f := range fields {
		m, ok := f.(map[string]any)
		if !ok {
			return dst, nil, fmt.Errorf("record %v: %v is no field", s["name"], f)
		}
		var v any
		var err error
		if dst, v, err = g.value(dst, m["type"], space); err != nil {
			return dst, nil, fmt.Errorf("field %v: %w", m["name"], err)
		}
		if v != (any)(empty{}) {
			out[fmt.Sprint(m["name"])] = v
		}
	}
	return dst, out, nil
}

func (g *generator) array(dst []byte, s map[string]any, space string) ([]byte, any, error) {
	out := []any{}
	if n := g.rand.IntN(4); n > 0 {
		dst = appendLong(dst, int64(n))
		for range n {
			var v any
			var err error
			if dst, v, err = g.value(dst, s["items"], space); err != nil {
				return dst, nil, err
			}
			out = append(out, v)
		}
	}
	return append(dst, 0), out, nil
}

func (g *generator) mapping(dst []byte, s map[string]any, space string) ([]byte, any, error) {
	out := map[string]any{}
	if n := g.rand.IntN(3); n > 0 {
		dst = appendLong(dst, int64(n))
		for i := range n {
			key := fmt.Sprintf("%d-%s", i, g.text())
			dst = appendBytes(dst, []byte(key))
			var v any
			var err error
			if dst, v, err = g.value(dst, s["values"], space); err != nil {
				return dst, nil, err
			}
			out[key] = v
		}
	}
	return append(dst, 0), out, nil
}

// union chooses a branch. With one branch beside null the table has the branch's own column, else a struct of all of them.
func (g *generator) union(dst []byte, branches []any, space string) ([]byte, any, error) {
	var present []any
	for _, b := range branches {
		if b != "null" {
			present = append(present, b)
		}
	}
	if len(present) == 0 {
		return appendLong(dst, 0), empty{}, nil
	}
	i := g.rand.IntN(len(branches))
	dst = appendLong(dst, int64(i))
	if branches[i] == "null" {
		return dst, nil, nil
	}
	dst, v, err := g.value(dst, branches[i], space)
	if err != nil || len(present) == 1 {
		return dst, v, err
	}
	out := map[string]any{}
	names := g.memberNames(present, space)
	for j, b := range present {
		out[names[j]] = nil
		if sameBranch(b, branches[i]) {
			out[names[j]] = v
		}
	}
	return dst, out, nil
}

// sameBranch compares branches by their JSON: a union has each only once.
func sameBranch(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && slices.Equal(x, y)
}

// memberNames are the struct's members: by type, or a named type's short name, or its full name where short ones would collide.
func (g *generator) memberNames(branches []any, space string) []string {
	names, full, count := make([]string, len(branches)), make([]string, len(branches)), map[string]int{}
	for i, b := range branches {
		switch b := b.(type) {
		case string:
			names[i] = b
			if _, ok := g.named[fullName(b, space)]; ok {
				full[i] = fullName(b, space)
			}
		case map[string]any:
			names[i] = fmt.Sprint(b["type"])
			if name, ok := b["name"].(string); ok {
				full[i] = fullName(name, space)
				if own, ok := b["namespace"].(string); ok {
					full[i] = fullName(name, own)
				}
			}
		}
		if full[i] != "" {
			names[i] = full[i][strings.LastIndex(full[i], ".")+1:]
		}
		count[strings.ToLower(names[i])]++
	}
	for i := range names {
		if full[i] != "" && count[strings.ToLower(names[i])] > 1 {
			names[i] = strings.ReplaceAll(full[i], ".", "_")
		}
	}
	return names
}

func (g *generator) text() string {
	words := []string{"", "a", "Zürich", "日本", "line\nbreak", "😀", "0", "null", "NaN", "'\"\\", strings.Repeat("long ", 20)}
	return words[g.rand.IntN(len(words))] + fmt.Sprint(g.rand.IntN(1000))
}

func (g *generator) bytes(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(g.rand.UintN(256))
	}
	return out
}

// pick is one of the edges now and then, and else a number in between.
func (g *generator) pick(lo, hi int64) int64 {
	switch g.rand.IntN(8) {
	case 0:
		return lo
	case 1:
		return hi
	case 2:
		return max(lo, min(hi, 0))
	case 3:
		return max(lo, min(hi, -1))
	}
	return lo + int64(g.rand.Uint64N(uint64(hi-lo)))
}

// Instants are chosen where every reader of tables can follow.
var firstInstant, lastInstant = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

func (g *generator) primitive(dst []byte, s map[string]any) ([]byte, any, error) {
	kind, _ := s["type"].(string)
	logical, _ := s["logicalType"].(string)
	switch kind {
	case "null":
		return dst, empty{}, nil
	case "boolean":
		v := g.rand.IntN(2)
		return append(dst, byte(v)), v == 1, nil
	case "int":
		return g.integer(dst, logical)
	case "long":
		return g.long(dst, logical)
	case "float":
		v := float32(g.rand.NormFloat64()) * 1000
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(v)), v, nil
	case "double":
		v := g.rand.NormFloat64() * 1e12
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v)), v, nil
	case "string":
		v := g.text()
		if logical == "uuid" {
			v = uuidText(g.bytes(16))
		}
		return appendBytes(dst, []byte(v)), v, nil
	case "bytes":
		if logical == "decimal" {
			n, text := g.decimal(s, 0)
			return appendBytes(dst, twosComplement(n, 0)), text, nil
		}
		v := g.bytes(g.rand.IntN(20))
		return appendBytes(dst, v), v, nil
	}
	return dst, nil, fmt.Errorf("schema: the type %q is not known", kind)
}

func (g *generator) integer(dst []byte, logical string) ([]byte, any, error) {
	switch logical {
	case "date":
		v := g.pick(firstInstant.Unix()/86400, lastInstant.Unix()/86400)
		return appendLong(dst, v), lake.Date(v), nil
	case "time-millis":
		v := g.pick(0, 86_399_999)
		return appendLong(dst, v), v * 1000, nil
	}
	v := g.pick(math.MinInt32, math.MaxInt32)
	return appendLong(dst, v), int32(v), nil
}

func (g *generator) long(dst []byte, logical string) ([]byte, any, error) {
	unit := strings.TrimPrefix(strings.TrimPrefix(logical, "local-"), "timestamp-")
	switch {
	case unit == "millis":
		v := g.pick(firstInstant.UnixMilli(), lastInstant.UnixMilli())
		return appendLong(dst, v), time.UnixMilli(v).UTC(), nil
	case unit == "micros":
		v := g.pick(firstInstant.UnixMicro(), lastInstant.UnixMicro())
		return appendLong(dst, v), time.UnixMicro(v).UTC(), nil
	case unit == "nanos":
		v := g.pick(firstInstant.UnixNano(), lastInstant.UnixNano())
		us := v / 1000
		if v%1000 < 0 {
			us-- // rounded down, also before 1970
		}
		return appendLong(dst, v), time.UnixMicro(us).UTC(), nil
	case logical == "time-micros":
		v := g.pick(0, 86_399_999_999)
		return appendLong(dst, v), v, nil
	}
	v := int64(g.rand.Uint64())
	if g.rand.IntN(4) == 0 {
		v = []int64{math.MinInt64, math.MaxInt64, 0, -1}[g.rand.IntN(4)]
	}
	return appendLong(dst, v), v, nil
}

func (g *generator) fixed(dst []byte, s map[string]any) ([]byte, any, error) {
	size, _ := s["size"].(float64)
	logical, _ := s["logicalType"].(string)
	switch {
	case logical == "decimal":
		n, text := g.decimal(s, int(size))
		return append(dst, twosComplement(n, int(size))...), text, nil
	case logical == "uuid" && size == 16:
		v := g.bytes(16)
		return append(dst, v...), uuidText(v), nil
	case logical == "duration" && size == 12:
		v := g.bytes(12)
		part := func(i int) int64 { return int64(binary.LittleEndian.Uint32(v[i:])) }
		return append(dst, v...), map[string]any{"months": part(0), "days": part(4), "millis": part(8)}, nil
	}
	v := g.bytes(int(size))
	return append(dst, v...), v, nil
}

// decimal chooses an unscaled value within the precision (and the size of a fixed), and writes it with its scale.
func (g *generator) decimal(s map[string]any, size int) (n *big.Int, text string) {
	precision, _ := s["precision"].(float64)
	scale, _ := s["scale"].(float64)
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	if size > 0 {
		if room := new(big.Int).Lsh(big.NewInt(1), uint(8*size-1)); room.Cmp(limit) < 0 {
			limit = room
		}
	}
	n = new(big.Int).Mod(new(big.Int).SetBytes(g.bytes(20)), limit)
	if g.rand.IntN(2) == 0 {
		n.Neg(n)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return n, new(big.Rat).SetFrac(n, unit).FloatString(int(scale))
}

// twosComplement writes n in size bytes, or in as few as it needs.
func twosComplement(n *big.Int, size int) []byte {
	if size == 0 {
		size = n.BitLen()/8 + 1
	}
	m := new(big.Int).Set(n)
	if n.Sign() < 0 {
		m.Add(m, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return m.FillBytes(make([]byte, size))
}

func uuidText(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
