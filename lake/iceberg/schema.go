package iceberg

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	icebergo "github.com/apache/iceberg-go"

	"github.com/tributary-io/tributary/lake/columns"
)

var leafTypes = map[columns.Kind]icebergo.Type{
	columns.Boolean: icebergo.PrimitiveTypes.Bool, columns.Byte: icebergo.PrimitiveTypes.Int32, columns.Short: icebergo.PrimitiveTypes.Int32,
	columns.Integer: icebergo.PrimitiveTypes.Int32, columns.Long: icebergo.PrimitiveTypes.Int64, columns.Float: icebergo.PrimitiveTypes.Float32,
	columns.Double: icebergo.PrimitiveTypes.Float64, columns.String: icebergo.PrimitiveTypes.String, columns.Binary: icebergo.PrimitiveTypes.Binary,
	columns.Date: icebergo.PrimitiveTypes.Date, columns.Timestamp: icebergo.PrimitiveTypes.TimestampTz, columns.TimestampNTZ: icebergo.PrimitiveTypes.Timestamp,
}

// leafType is the Iceberg type of a column that is not a struct, list or map. Iceberg has no integers of 8 and 16 bits.
func leafType(t *columns.Type) icebergo.Type {
	if t.Kind == columns.Decimal {
		return icebergo.DecimalTypeOf(t.Precision, t.Scale)
	}
	return leafTypes[t.Kind]
}

// numbering hands out field ids.
type numbering struct{ last int }

func (n *numbering) next() int {
	n.last++
	return n.last
}

// newSchema writes the columns as an Iceberg schema with ids of its own, comments included.
func newSchema(fields []columns.Field) *icebergo.Schema {
	var ids numbering
	return icebergo.NewSchema(0, ids.fields(fields)...)
}

func (n *numbering) fields(fields []columns.Field) []icebergo.NestedField {
	out := make([]icebergo.NestedField, len(fields))
	for i := range fields {
		f := &fields[i]
		out[i] = icebergo.NestedField{ID: n.next(), Name: f.Name, Required: f.NotNull, Doc: f.Comment}
	}
	for i := range fields {
		out[i].Type = n.typ(&fields[i].Type)
	}
	return out
}

func (n *numbering) typ(t *columns.Type) icebergo.Type {
	switch t.Kind {
	case columns.Struct:
		return &icebergo.StructType{FieldList: n.fields(t.Fields)}
	case columns.List:
		l := &icebergo.ListType{ElementID: n.next(), ElementRequired: t.Elem.NotNull}
		l.Element = n.typ(&t.Elem.Type)
		return l
	case columns.Map:
		m := &icebergo.MapType{KeyID: n.next(), KeyType: icebergo.PrimitiveTypes.String, ValueID: n.next(), ValueRequired: t.Elem.NotNull}
		m.ValueType = n.typ(&t.Elem.Type)
		return m
	}
	return leafType(t)
}

// change says why the table's columns can't take the sink's.
type change struct{ path, reason string }

func (c *change) Error() string { return "column " + c.path + ": " + c.reason }

// compare checks that the sink's columns can be stored under the table's schema, once the columns that the table lacks are added.
// missing tells whether it lacks any, or the width of any; docs whether a comment differs.
func compare(tbl, sink []icebergo.NestedField) (missing, docs bool, err error) {
	return compareFields("", tbl, sink)
}

func compareFields(path string, tbl, sink []icebergo.NestedField) (missing, docs bool, err error) {
	have := make(map[string]*icebergo.NestedField, len(tbl))
	for i := range tbl {
		have[strings.ToLower(tbl[i].Name)] = &tbl[i]
	}
	for i := range sink {
		s := &sink[i]
		at := columns.Join(path, s.Name)
		t := have[strings.ToLower(s.Name)]
		delete(have, strings.ToLower(s.Name))
		switch {
		case t == nil && s.Required:
			return false, false, &change{at, fmt.Sprintf("a new column of type %s must be nullable, since the rows already there don't have it", s.Type)}
		case t == nil:
			missing = true
			continue
		case t.Name != s.Name:
			return false, false, &change{at, fmt.Sprintf("it differs only in case from %s, and readers don't tell them apart", columns.Join(path, t.Name))}
		case t.Required && !s.Required:
			return false, false, &change{at, fmt.Sprintf("the table says %s NOT NULL, the stream says nullable %s", t.Type, s.Type)}
		}
		docs = docs || s.Doc != "" && s.Doc != t.Doc
		m, d, err := compareTypes(at, t.Type, s.Type)
		if err != nil {
			return false, false, err
		}
		missing, docs = missing || m, docs || d
	}
	for _, t := range have {
		if t.Required && t.WriteDefault == nil {
			return false, false, &change{columns.Join(path, t.Name), fmt.Sprintf("the table says %s NOT NULL, but the stream doesn't have the column", t.Type)}
		}
	}
	return missing, docs, nil
}

func compareTypes(path string, tbl, sink icebergo.Type) (missing, docs bool, err error) {
	switch s := sink.(type) {
	case *icebergo.StructType:
		if t, ok := tbl.(*icebergo.StructType); ok {
			return compareFields(path, t.FieldList, s.FieldList)
		}
	case *icebergo.ListType:
		if t, ok := tbl.(*icebergo.ListType); ok {
			if t.ElementRequired && !s.ElementRequired {
				return false, false, &change{columns.Join(path, "element"), "the table allows no null elements, the stream has them"}
			}
			return compareTypes(columns.Join(path, "element"), t.Element, s.Element)
		}
	case *icebergo.MapType:
		if t, ok := tbl.(*icebergo.MapType); ok && t.KeyType.Equals(s.KeyType) {
			if t.ValueRequired && !s.ValueRequired {
				return false, false, &change{columns.Join(path, "value"), "the table allows no null values, the stream has them"}
			}
			return compareTypes(columns.Join(path, "value"), t.ValueType, s.ValueType)
		}
	default:
		if tbl.Equals(sink) || promotes(sink, tbl) {
			return false, false, nil
		}
		if promotes(tbl, sink) {
			return true, false, nil // the table's column is widened
		}
	}
	return false, false, &change{path, fmt.Sprintf("the table says %s, the stream says %s", tbl, sink)}
}

// promotes reports whether Iceberg lets a column of one type become one of another, and readers then take files with either.
func promotes(from, to icebergo.Type) bool {
	switch f := from.(type) {
	case icebergo.Int32Type:
		return to.Equals(icebergo.PrimitiveTypes.Int64)
	case icebergo.Float32Type:
		return to.Equals(icebergo.PrimitiveTypes.Float64)
	case icebergo.DecimalType:
		t, ok := to.(icebergo.DecimalType)
		return ok && t.Scale() == f.Scale() && t.Precision() >= f.Precision()
	}
	return false
}

// literal is the value of row i, as a value of the table's type.
func literal(a arrow.Array, i int, typ icebergo.Type) icebergo.Literal {
	switch a := a.(type) {
	case *array.Boolean:
		return icebergo.NewLiteral(a.Value(i))
	case *array.Int32:
		return intLiteral(int64(a.Value(i)), typ)
	case *array.Int64:
		return icebergo.NewLiteral(a.Value(i))
	case *array.Date32:
		return icebergo.NewLiteral(icebergo.Date(a.Value(i)))
	case *array.Timestamp:
		return icebergo.NewLiteral(icebergo.Timestamp(a.Value(i)))
	case *array.Float32:
		return floatLiteral(float64(a.Value(i)), typ)
	case *array.Float64:
		return icebergo.NewLiteral(a.Value(i))
	case *array.String:
		return icebergo.NewLiteral(strings.Clone(a.Value(i)))
	case *array.Binary:
		return icebergo.NewLiteral(append([]byte{}, a.Value(i)...))
	case *array.Decimal128:
		return decimalLiteral(a.Value(i), typ)
	}
	return nil
}

func intLiteral(v int64, typ icebergo.Type) icebergo.Literal {
	if typ.Equals(icebergo.PrimitiveTypes.Int64) {
		return icebergo.NewLiteral(v)
	}
	return icebergo.NewLiteral(int32(v))
}

func floatLiteral(v float64, typ icebergo.Type) icebergo.Literal {
	if typ.Equals(icebergo.PrimitiveTypes.Float64) {
		return icebergo.NewLiteral(v)
	}
	return icebergo.NewLiteral(float32(v))
}

func decimalLiteral(v decimal128.Num, typ icebergo.Type) icebergo.Literal {
	scale := 0
	if d, ok := typ.(icebergo.DecimalType); ok {
		scale = d.Scale()
	}
	return icebergo.DecimalLiteral{Val: v, Scale: scale}
}

// decimalBytes is the unscaled value in the fewest bytes of two's complement, big-endian, as bounds have it.
func decimalBytes(v *big.Int) []byte {
	if v.Sign() >= 0 {
		b := v.Bytes()
		if len(b) == 0 || b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	n := uint(new(big.Int).Not(v).BitLen()/8+1) * 8
	return new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), n)).FillBytes(make([]byte, n/8))
}
