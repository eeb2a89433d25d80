package columns

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// timestampUTC and timestampNTZ are shared, since Arrow compares types often.
var (
	timestampUTC = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	timestampNTZ = &arrow.TimestampType{Unit: arrow.Microsecond}
)

// Arrow returns the Arrow type, with the names inside lists and maps that Parquet prescribes.
func (t *Type) Arrow() arrow.DataType {
	switch t.Kind {
	case Boolean:
		return arrow.FixedWidthTypes.Boolean
	case Byte:
		return arrow.PrimitiveTypes.Int8
	case Short:
		return arrow.PrimitiveTypes.Int16
	case Integer:
		return arrow.PrimitiveTypes.Int32
	case Long:
		return arrow.PrimitiveTypes.Int64
	case Float:
		return arrow.PrimitiveTypes.Float32
	case Double:
		return arrow.PrimitiveTypes.Float64
	case String:
		return arrow.BinaryTypes.String
	case Binary:
		return arrow.BinaryTypes.Binary
	case Date:
		return arrow.FixedWidthTypes.Date32
	case Timestamp:
		return timestampUTC
	case TimestampNTZ:
		return timestampNTZ
	case Decimal:
		return &arrow.Decimal128Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}
	case List:
		return arrow.ListOfField(arrow.Field{Name: "element", Type: t.Elem.Type.Arrow(), Nullable: !t.Elem.NotNull})
	case Map:
		m := arrow.MapOf(arrow.BinaryTypes.String, t.Elem.Type.Arrow())
		m.SetItemNullable(!t.Elem.NotNull)
		return m
	}
	return arrow.StructOf(arrowFields(t.Fields)...)
}

func arrowFields(fields []Field) []arrow.Field {
	out := make([]arrow.Field, len(fields))
	for i := range fields {
		out[i] = arrow.Field{Name: fields[i].Name, Type: fields[i].Type.Arrow(), Nullable: !fields[i].NotNull}
	}
	return out
}

// Arrow returns the schema as Arrow's. Comments and tags are not in it: they belong to the table.
func (s *Schema) Arrow() *arrow.Schema { return arrow.NewSchema(arrowFields(s.Fields), nil) }

// Record returns the rows as an Arrow record over the builder's own memory. It is valid until the builder is appended to or
// reset; releasing it is allowed but frees nothing.
func (b *Builder) Record() arrow.RecordBatch {
	arrays := make([]arrow.Array, 0, len(b.schema.Fields))
	schema := b.schema.Arrow()
	at := 0
	for i := range b.schema.Fields {
		data := b.arrayData(at, schema.Field(i).Type)
		arrays = append(arrays, array.MakeFromData(data))
		at = b.ends[at]
	}
	return array.NewRecordBatch(schema, arrays, int64(b.rows))
}

// arrayData wraps a column and its descendants.
func (b *Builder) arrayData(at int, dt arrow.DataType) arrow.ArrayData {
	c := &b.cols[at]
	n := c.Len()
	valid := c.validity()
	bufs := []*memory.Buffer{valid}
	var children []arrow.ArrayData
	switch c.kind {
	case String, Binary:
		bufs = append(bufs, wrap(c.off), memory.NewBufferBytes(c.data))
	case List:
		bufs = append(bufs, wrap(c.off))
		children = []arrow.ArrayData{b.arrayData(at+1, dt.(*arrow.ListType).Elem())}
	case Map:
		bufs = append(bufs, wrap(c.off))
		entries := dt.(*arrow.MapType).Elem().(*arrow.StructType)
		kv := []arrow.ArrayData{b.arrayData(at+1, entries.Field(0).Type), b.arrayData(at+2, entries.Field(1).Type)}
		children = []arrow.ArrayData{array.NewData(entries, kv[0].Len(), []*memory.Buffer{nil}, kv, 0, 0)}
	case Struct:
		st := dt.(*arrow.StructType)
		i := 0
		for child := at + 1; child < b.ends[at]; child = b.ends[child] {
			children = append(children, b.arrayData(child, st.Field(i).Type))
			i++
		}
	default:
		bufs = append(bufs, c.values())
	}
	return array.NewData(dt, n, bufs, children, len(c.nulls), 0)
}

// values wraps the values of a column of fixed width.
func (c *Column) values() *memory.Buffer {
	switch c.kind {
	case Boolean:
		return memory.NewBufferBytes(packBools(c.bools))
	case Byte:
		return wrap(c.i8)
	case Short:
		return wrap(c.i16)
	case Integer, Date:
		return wrap(c.i32)
	case Float:
		return wrap(c.f32)
	case Double:
		return wrap(c.f64)
	case Decimal:
		return wrap(c.dec)
	}
	return wrap(c.i64)
}

// validity returns the bitmap of a column with nulls, nil for one without.
func (c *Column) validity() *memory.Buffer {
	if len(c.nulls) == 0 {
		return nil
	}
	bits := make([]byte, bitutil.BytesForBits(int64(c.Len())))
	for i := range bits {
		bits[i] = 0xff
	}
	for _, i := range c.nulls {
		bitutil.ClearBit(bits, int(i))
	}
	return memory.NewBufferBytes(bits)
}

func packBools(v []bool) []byte {
	bits := make([]byte, bitutil.BytesForBits(int64(len(v))))
	for i, b := range v {
		if b {
			bits[i>>3] |= 1 << (i & 7)
		}
	}
	return bits
}

// wrap views a slice as an Arrow buffer. Arrow's layout on a little-endian machine is that of Go's slices.
func wrap[T any](v []T) *memory.Buffer {
	if len(v) == 0 {
		return memory.NewBufferBytes([]byte{})
	}
	var zero T
	return memory.NewBufferBytes(unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(zero))))
}
