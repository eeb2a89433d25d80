package iceberg

import (
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/tributary-io/tributary/lake/columns"
)

// fit is how the sink's columns are stored under one schema and partition spec of the table. Files made under one fit may be added
// to every version of the table with an equal one, whatever else has changed.
type fit struct {
	specID int
	schema *icebergo.Schema
	spec   icebergo.PartitionSpec
	arrow  *arrow.Schema // of the files: the sink's columns with the table's field ids
	ids    string        // these ids, in the order of the columns
}

const fieldIDKey = table.ArrowParquetFieldIDKey

// newFit fits the columns to a version of the table that has them all.
func newFit(s *columns.Schema, md table.Metadata) (*fit, error) {
	f := &fit{schema: md.CurrentSchema(), spec: md.PartitionSpec()}
	f.specID = f.spec.ID()
	fields, err := fileFields(s.Fields, f.schema.Fields())
	if err != nil {
		return nil, err
	}
	f.arrow = arrow.NewSchema(fields, nil)
	f.ids = string(appendIDs(nil, fields))
	return f, nil
}

// same reports whether files made under f may be added under other.
func (f *fit) same(other *fit) bool {
	return other != nil && f.specID == other.specID && f.ids == other.ids
}

// appendIDs appends the field ids of columns and of what is in them.
func appendIDs(dst []byte, fields []arrow.Field) []byte {
	for _, f := range fields {
		id, _ := f.Metadata.GetValue(fieldIDKey)
		dst = append(append(dst, id...), ' ')
		switch t := f.Type.(type) {
		case *arrow.StructType:
			dst = appendIDs(dst, t.Fields())
		case *arrow.ListType:
			dst = appendIDs(dst, []arrow.Field{t.ElemField()})
		case *arrow.MapType:
			dst = appendIDs(dst, []arrow.Field{t.KeyField(), t.ItemField()})
		}
	}
	return dst
}

// fileFields are the columns of data files: the sink's types, the table's ids.
func fileFields(fields []columns.Field, tbl []icebergo.NestedField) ([]arrow.Field, error) {
	out := make([]arrow.Field, len(fields))
	for i := range fields {
		f := &fields[i]
		var in *icebergo.NestedField
		for j := range tbl {
			if tbl[j].Name == f.Name {
				in = &tbl[j]
			}
		}
		if in == nil {
			return nil, fmt.Errorf("the table lacks column %s", f.Name)
		}
		t, err := fileType(&f.Type, in.Type)
		if err != nil {
			return nil, err
		}
		out[i] = withID(f.Name, t, !f.NotNull, in.ID)
	}
	return out, nil
}

func fileType(t *columns.Type, in icebergo.Type) (arrow.DataType, error) {
	switch t.Kind {
	case columns.Byte, columns.Short:
		return arrow.PrimitiveTypes.Int32, nil
	case columns.Struct:
		s, ok := in.(*icebergo.StructType)
		if !ok {
			return nil, fmt.Errorf("the table has %s in place of %s", in, t)
		}
		fields, err := fileFields(t.Fields, s.FieldList)
		return arrow.StructOf(fields...), err
	case columns.List:
		l, ok := in.(*icebergo.ListType)
		if !ok {
			return nil, fmt.Errorf("the table has %s in place of %s", in, t)
		}
		elem, err := fileType(&t.Elem.Type, l.Element)
		if err != nil {
			return nil, err
		}
		return arrow.ListOfField(withID("element", elem, !t.Elem.NotNull, l.ElementID)), nil
	case columns.Map:
		m, ok := in.(*icebergo.MapType)
		if !ok {
			return nil, fmt.Errorf("the table has %s in place of %s", in, t)
		}
		value, err := fileType(&t.Elem.Type, m.ValueType)
		if err != nil {
			return nil, err
		}
		return arrow.MapOfFields(withID("key", arrow.BinaryTypes.String, false, m.KeyID), withID("value", value, !t.Elem.NotNull, m.ValueID)), nil
	}
	return t.Arrow(), nil
}

func withID(name string, t arrow.DataType, nullable bool, id int) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: nullable, Metadata: arrow.MetadataFrom(map[string]string{fieldIDKey: strconv.Itoa(id)})}
}

// record is a batch under the file's schema. It shares the batch's memory but for integers of 8 and 16 bits.
func (f *fit) record(rec arrow.RecordBatch) arrow.RecordBatch {
	arrays := make([]arrow.Array, rec.NumCols())
	for i := range arrays {
		arrays[i] = array.MakeFromData(retype(rec.Column(i).Data(), f.arrow.Field(i).Type))
	}
	return array.NewRecordBatch(f.arrow, arrays, rec.NumRows())
}

// retype gives data and what is in it another type of the same layout.
func retype(data arrow.ArrayData, t arrow.DataType) arrow.ArrayData {
	switch data.DataType().ID() {
	case arrow.INT8:
		return widen[int8](data, t)
	case arrow.INT16:
		return widen[int16](data, t)
	}
	children := make([]arrow.ArrayData, len(data.Children()))
	for i, c := range data.Children() {
		children[i] = retype(c, childType(t, i))
	}
	return array.NewData(t, data.Len(), data.Buffers(), children, data.NullN(), data.Offset())
}

func childType(t arrow.DataType, i int) arrow.DataType {
	switch t := t.(type) {
	case *arrow.StructType:
		return t.Field(i).Type
	case *arrow.MapType:
		return t.Elem() // the entries
	case *arrow.ListType:
		return t.Elem()
	}
	return nil
}

func widen[T int8 | int16](data arrow.ArrayData, t arrow.DataType) arrow.ArrayData {
	values := arrow.GetData[T](data.Buffers()[1].Bytes())
	wide := make([]int32, len(values))
	for i, v := range values {
		wide[i] = int32(v)
	}
	buffers := []*memory.Buffer{data.Buffers()[0], memory.NewBufferBytes(arrow.GetBytes(wide))}
	return array.NewData(t, data.Len(), buffers, nil, data.NullN(), data.Offset())
}
