package lake

import (
	"maps"
	"slices"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/delta"
)

var deltaTypes = map[columns.Kind]delta.Primitive{
	columns.Boolean: delta.Boolean, columns.Byte: delta.Byte, columns.Short: delta.Short, columns.Integer: delta.Integer, columns.Long: delta.Long,
	columns.Float: delta.Float, columns.Double: delta.Double, columns.String: delta.String, columns.Binary: delta.Binary, columns.Date: delta.Date,
	columns.Timestamp: delta.Timestamp, columns.TimestampNTZ: delta.TimestampNTZ,
}

// deltaSchema writes the columns as a Delta schema: types, comments and tags.
func deltaSchema(fields []columns.Field) *delta.StructType {
	out := &delta.StructType{}
	for i := range fields {
		f := &fields[i]
		out.Fields = append(out.Fields, delta.Field{Name: f.Name, Type: deltaType(&f.Type), Nullable: !f.NotNull, Metadata: fieldMetadata(f)})
	}
	return out
}

func deltaType(t *columns.Type) delta.Type {
	switch t.Kind {
	case columns.Decimal:
		return delta.Decimal(t.Precision, t.Scale)
	case columns.List:
		return &delta.ArrayType{Element: deltaType(&t.Elem.Type), ContainsNull: !t.Elem.NotNull}
	case columns.Map:
		return &delta.MapType{Key: delta.String, Value: deltaType(&t.Elem.Type), ValueContainsNull: !t.Elem.NotNull}
	case columns.Struct:
		return deltaSchema(t.Fields)
	}
	return deltaTypes[t.Kind]
}

// fieldMetadata holds the comment and then the tags, sorted, so that the same schema is always the same bytes.
func fieldMetadata(f *columns.Field) (m delta.FieldMetadata) {
	if f.Comment != "" {
		m = m.With(delta.CommentKey, f.Comment)
	}
	for _, k := range slices.Sorted(maps.Keys(f.Metadata)) {
		if k != delta.CommentKey || f.Comment == "" {
			m = m.With(k, f.Metadata[k])
		}
	}
	return m
}
