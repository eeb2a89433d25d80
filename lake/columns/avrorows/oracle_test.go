package avrorows

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/lake/columns"
)

// decode runs a plan over one value and returns the row.
func decode(d *Declared, p *Plan, data []byte) (map[string]any, error) {
	b := columns.NewBuilder(&columns.Schema{Fields: d.Fields})
	if err := p.Append(b, 0, data); err != nil {
		b.Rollback()
		if b.Complete() != nil || b.Rows() != 0 {
			return nil, errors.New("the rollback left something")
		}
		return nil, err
	}
	if err := b.EndRow(); err != nil {
		return nil, err
	}
	if err := b.Complete(); err != nil {
		return nil, fmt.Errorf("the plan is wrong: %w", err)
	}
	rec := b.Record()
	defer rec.Release()
	return columns.Row(rec, 0), nil
}

// normal turns what the other library decodes (with tagged unions) into what columns.Value gives for the declared node.
func normal(n *node, v any) any {
	if n.kind == "union" {
		return normalUnion(n, v)
	}
	switch x := v.(type) {
	case time.Time:
		if n.logical == "date" {
			return columns.DayOf(x)
		}
		return time.UnixMicro(x.UnixMicro()).UTC() // rounds down; nanoseconds would end in 2262
	case time.Duration:
		return x.Microseconds()
	case *big.Rat:
		return x.FloatString(n.scale)
	case avro.Duration:
		return map[string]any{"months": int64(x.Months), "days": int64(x.Days), "millis": int64(x.Milliseconds)}
	case [16]byte:
		return string(columns.AppendUUID(nil, &x))
	case []any:
		out := []any{}
		for _, e := range x {
			out = append(out, normal(n.items, e))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range x {
			if n.kind == "map" {
				out[k] = normal(n.items, e)
				continue
			}
			i := slices.IndexFunc(n.fields, func(f field) bool { return f.name == k })
			if !n.fields[i].node.isNull() {
				out[k] = normal(n.fields[i].node, e)
			}
		}
		return out
	}
	return v
}

func normalUnion(n *node, v any) any {
	if v == nil {
		return nil
	}
	var name string
	var inner any
	for name, inner = range v.(map[string]any) {
	}
	present := n.present()
	k := slices.IndexFunc(present, func(b *node) bool { return b.name == name || !isNamed(b) && b.kind == name })
	if k < 0 {
		panic(fmt.Sprintf("no branch %q in %s", name, n.describe()))
	}
	value := normal(present[k], inner)
	if len(present) == 1 {
		return value
	}
	out := map[string]any{}
	for i, m := range memberNames(present) {
		out[m] = nil
		if i == k {
			out[m] = value
		}
	}
	return out
}

// gen draws schemas: a writer's and one that it can be read as.
type gen struct {
	t     *rapid.T
	names int
}

func (g *gen) name() string { g.names++; return fmt.Sprintf("N%d", g.names) }

type m = map[string]any

// pair draws a writer's type and a declared type that it resolves to, and a JSON default for the declared one.
func (g *gen) pair(depth int) (w, d, def any) {
	kinds := []string{"boolean", "int", "long", "float", "double", "string", "bytes", "int>long", "int>double", "long>float", "float>double",
		"string>bytes", "bytes>string", "date", "ts-millis", "ts-micros", "ts-nanos", "local", "time-millis", "time-micros", "decimal", "fdecimal",
		"uuid", "fuuid", "duration", "enum", "fixed", "nullable", "union"}
	if depth > 0 {
		kinds = append(kinds, "array", "map", "record", "record")
	}
	same := func(s any, def any) (any, any, any) { return s, s, def }
	lt := func(t, l string) m { return m{"type": t, "logicalType": l} }
	switch k := rapid.SampledFrom(kinds).Draw(g.t, "kind"); k {
	case "boolean":
		return same(k, true)
	case "int", "long":
		return same(k, 7)
	case "float", "double":
		return same(k, 1.5)
	case "string", "bytes":
		return same(k, "d")
	case "date":
		return same(lt("int", k), -1)
	case "ts-millis", "ts-micros", "ts-nanos":
		return same(lt("long", "timestamp"+k[2:]), -1)
	case "local":
		return same(lt("long", "local-timestamp-micros"), 5)
	case "time-millis":
		return same(lt("int", k), 5)
	case "time-micros":
		return same(lt("long", k), 5)
	case "uuid":
		return same(lt("string", k), "123e4567-e89b-12d3-a456-426614174000")
	case "fuuid":
		return same(m{"type": "fixed", "name": g.name(), "size": 16, "logicalType": "uuid"}, "0123456789abcdef")
	case "duration":
		return same(m{"type": "fixed", "name": g.name(), "size": 12, "logicalType": k}, "0123456789ab")
	case "decimal":
		return same(m{"type": "bytes", "logicalType": k, "precision": 20, "scale": 3}, "\u0001")
	case "fdecimal":
		return same(m{"type": "fixed", "name": g.name(), "size": 5, "logicalType": "decimal", "precision": 11, "scale": 2}, "\u0000\u0000\u0000\u0000\u0001")
	case "fixed":
		return same(m{"type": k, "name": g.name(), "size": 3}, "abc")
	case "enum":
		n := g.name()
		return m{"type": k, "name": n, "symbols": []string{"A", "B", "C"}}, m{"type": k, "name": n, "symbols": []string{"C", "A"}, "default": "A"}, "C"
	case "nullable":
		return g.nullable(depth)
	case "union":
		n := g.name()
		rec := m{"type": "record", "name": n, "fields": []m{{"name": "x", "type": "int"}}}
		if rapid.Bool().Draw(g.t, "nullBranch") {
			return []any{"null", "string", rec, "long"}, []any{rec, "null", "long", "string"}, m{"x": 1}
		}
		return []any{"string", rec, "int"}, []any{"long", rec, "string"}, 5
	case "array", "map":
		return g.container(k, depth)
	case "record":
		return g.record(depth)
	default:
		from, to, _ := strings.Cut(k, ">")
		def := any("d")
		if to == "long" || to == "float" || to == "double" {
			def = 3
		}
		return from, to, def
	}
}

func (g *gen) nullable(depth int) (w, d, def any) {
	w, d, def = g.pair(depth - 1)
	if _, ok := w.([]any); ok {
		return w, d, def
	}
	if _, ok := d.([]any); ok {
		return w, d, def
	}
	switch rapid.IntRange(0, 3).Draw(g.t, "null") {
	case 0:
		return w, []any{"null", d}, nil
	case 1:
		return []any{w, "null"}, []any{"null", d}, nil
	case 2:
		return []any{"null", w}, []any{d, "null"}, def
	}
	return []any{"null", w}, []any{"null", d}, nil
}

func (g *gen) container(kind string, depth int) (w, d, def any) {
	w, d, _ = g.pair(depth - 1)
	if kind == "array" {
		return m{"type": kind, "items": w}, m{"type": kind, "items": d}, []any{}
	}
	return m{"type": kind, "values": w}, m{"type": kind, "values": d}, m{}
}

func (g *gen) record(depth int) (w, d, def any) {
	n := g.name()
	var wf, df []m
	defs := m{}
	for i := range rapid.IntRange(1, 4).Draw(g.t, "fields") {
		name := fmt.Sprintf("f%d", i)
		ft, dt, fd := g.pair(depth - 1)
		switch rapid.IntRange(0, 5).Draw(g.t, "evolve") {
		case 0: // the declared schema lacks it
			wf = append(wf, m{"name": name, "type": ft})
			continue
		case 1: // the writer lacks it
			df = append(df, m{"name": name, "type": dt, "default": fd})
			defs[name] = fd
			continue
		case 2: // renamed
			wf = append(wf, m{"name": "old_" + name, "type": ft})
			df = append([]m{{"name": name, "type": dt, "aliases": []string{"old_" + name}}}, df...)
		default:
			wf = append(wf, m{"name": name, "type": ft})
			df = append([]m{{"name": name, "type": dt}}, df...)
		}
		defs[name] = fd
	}
	wf = append(wf, m{"name": "last", "type": "int"}, m{"name": "nothing", "type": "null"})
	df = append(df, m{"name": "last", "type": "int"})
	defs["last"] = 1
	return m{"type": "record", "name": n, "fields": wf}, m{"type": "record", "name": n, "fields": df}, defs
}

// value draws a value of a node in a form that the other library encodes.
func (g *gen) value(n *node) any {
	switch n.kind {
	case "null":
		return nil
	case "boolean":
		return rapid.Bool().Draw(g.t, "b")
	case "int":
		return rapid.Int32().Draw(g.t, "i")
	case "long":
		switch n.logical {
		case "":
			return rapid.Int64().Draw(g.t, "l")
		case "time-micros":
			return rapid.Int64Range(0, 86_400_000_000-1).Draw(g.t, "l")
		case "timestamp-millis":
			return rapid.Int64Range(-8e12, 8e12).Draw(g.t, "l")
		}
		return rapid.Int64Range(-8e15, 8e15).Draw(g.t, "l")
	case "float":
		return rapid.Float32().Draw(g.t, "f")
	case "double":
		return rapid.Float64().Draw(g.t, "d")
	case "string":
		if n.logical == "uuid" {
			return "123e4567-e89b-12d3-a456-426614174000"
		}
		return rapid.StringN(0, 8, -1).Draw(g.t, "s")
	case "bytes":
		if n.logical == "decimal" {
			return big.NewRat(rapid.Int64().Draw(g.t, "dec"), 1000)
		}
		return []byte(rapid.StringN(0, 8, -1).Draw(g.t, "s"))
	case "fixed":
		switch n.logical {
		case "decimal":
			return big.NewRat(rapid.Int64Range(-1e10, 1e10).Draw(g.t, "dec"), 100)
		case "duration":
			return avro.Duration{Months: rapid.Uint32().Draw(g.t, "u"), Days: 2, Milliseconds: 3}
		}
		return rapid.SliceOfN(rapid.Byte(), n.size, n.size).Draw(g.t, "x")
	case "enum":
		return rapid.SampledFrom(n.symbols).Draw(g.t, "e")
	}
	return g.nestedValue(n)
}

func (g *gen) nestedValue(n *node) any {
	switch n.kind {
	case "array":
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(g.t, "n") {
			out = append(out, g.value(n.items))
		}
		return out
	case "map":
		out := m{}
		for i := range rapid.IntRange(0, 3).Draw(g.t, "n") {
			out[fmt.Sprint("k", i)] = g.value(n.items)
		}
		return out
	case "union":
		b := rapid.SampledFrom(n.branches).Draw(g.t, "branch")
		if b.kind == "null" {
			return nil
		}
		name := b.kind
		if isNamed(b) {
			name = b.name
		}
		return m{name: g.value(b)}
	}
	out := m{}
	for _, f := range n.fields {
		out[f.name] = g.value(f.node)
	}
	return out
}

func jsonText(t *rapid.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAgainstOracle draws pairs of schemas and values of the writer's, and expects the plan to read what the other library reads.
func TestAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &gen{t: t}
		w, d, _ := g.record(3)
		wText, dText := jsonText(t, w), jsonText(t, d)
		declared, errs := Declare(Text{Schema: dText}, Options{})
		if errs != nil {
			t.Fatalf("%s: %v", dText, errors.Join(errs...))
		}
		plan, err := declared.Plan(Text{Schema: wText})
		if err != nil {
			t.Fatalf("writer %s\ndeclared %s\n%v", wText, dText, err)
		}
		ws, ds := avro.MustParse(wText), avro.MustParse(dText)
		both, err := avro.Resolve(ws, ds)
		if err != nil {
			t.Fatalf("writer %s\ndeclared %s\n%v", wText, dText, err)
		}
		wn, err := parse(Text{Schema: wText})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			data, err := ws.Encode(g.value(wn))
			if err != nil {
				t.Fatalf("writer %s: %v", wText, err)
			}
			var v any
			if _, err := both.Decode(data, &v, avro.TaggedUnions()); err != nil {
				t.Fatalf("the oracle: %v", err)
			}
			got, err := decode(declared, plan, data)
			if err != nil {
				t.Fatalf("writer %s\ndeclared %s\n%x: %v", wText, dText, data, err)
			}
			if d := cmp.Diff(normal(declared.root, v), any(got), cmpopts.EquateNaNs()); d != "" {
				t.Fatalf("writer %s\ndeclared %s\n%x: %s", wText, dText, data, d)
			}
		}
	})
}

const fuzzWriter = `{"type":"record","name":"R","fields":[
 {"name":"a","type":"long"},{"name":"b","type":["null","string"]},{"name":"gone","type":{"type":"array","items":"R"}},
 {"name":"c","type":{"type":"map","values":["double",{"type":"fixed","name":"F","size":2},"null"]}},
 {"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
 {"name":"e","type":{"type":"enum","name":"E","symbols":["X","Y"]}},{"name":"t","type":{"type":"long","logicalType":"timestamp-micros"}},
 {"name":"l","type":{"type":"array","items":{"type":"record","name":"I","fields":[{"name":"u","type":"int"}]}}},
 {"name":"ns","type":{"type":"array","items":"null"}}]}`

const fuzzDeclared = `{"type":"record","name":"R","fields":[
 {"name":"t","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"a","type":"double"},{"name":"b","type":["string","null"]},
 {"name":"c","type":{"type":"map","values":["null",{"type":"fixed","name":"F","size":2},"double"]}},
 {"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
 {"name":"e","type":{"type":"enum","name":"E","symbols":["Y","Z"],"default":"Z"}},
 {"name":"l","type":{"type":"array","items":{"type":"record","name":"I","fields":[{"name":"u","type":"long"},{"name":"w","type":"string","default":"none"}]}}}]}`

// FuzzDecode feeds any bytes to a plan: it must never panic, leave nothing behind on an error, and where it reads a value the
// other library must read the same. (The plan is stricter: it refuses bytes that are left over, booleans other than 0 and 1,
// text that is not UTF-8 and decimals beyond their precision.)
func FuzzDecode(f *testing.F) {
	declared, errs := Declare(Text{Schema: fuzzDeclared}, Options{})
	if errs != nil {
		f.Fatal(errors.Join(errs...))
	}
	plan, err := declared.Plan(Text{Schema: fuzzWriter})
	if err != nil {
		f.Fatal(err)
	}
	ws := avro.MustParse(fuzzWriter)
	both, err := avro.Resolve(ws, avro.MustParse(fuzzDeclared))
	if err != nil {
		f.Fatal(err)
	}
	none := m{"a": int64(1), "b": nil, "gone": []any{}, "c": m{}, "d": big.NewRat(5, 4), "e": "X", "t": int64(-1), "l": []any{}, "ns": []any{nil}}
	full := m{"a": int64(-5), "b": m{"string": "text"}, "gone": []any{none}, "c": m{"x": m{"double": 1.5}, "y": m{"F": []byte{1, 2}}, "z": nil},
		"d": big.NewRat(-5, 4), "e": "Y", "t": int64(1780000000000000), "l": []any{m{"u": int32(1)}, m{"u": int32(-1)}}, "ns": []any{}}
	for _, v := range []m{none, full} {
		data, err := ws.Encode(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decode(declared, plan, data)
		if err != nil {
			if strings.Contains(err.Error(), "the plan is wrong") || strings.Contains(err.Error(), "rollback") {
				t.Fatal(err)
			}
			return
		}
		var v any
		if _, err := both.Decode(data, &v, avro.TaggedUnions()); err != nil {
			switch {
			case strings.Contains(err.Error(), "zero-byte items"):
				return // it bounds them over all blocks of an array, the plan bounds them by block
			case strings.Contains(err.Error(), "exceeds remaining buffer length"):
				return // it asks how many items a block has that is passed over, the plan goes by the block's size; one that is read would end the bytes
			}
			t.Fatalf("%x is read, but the oracle says: %v", data, err)
		}
		if d := cmp.Diff(normal(declared.root, v), any(got), cmpopts.EquateNaNs()); d != "" {
			t.Fatal(d)
		}
	})
}
