package datafile

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/delta"
)

// fieldIDKey is the Arrow metadata key that holds a Parquet field id.
const fieldIDKey = "PARQUET:field_id"

// Layout is the columns that new data files of a table hold, and by which old ones are read. It is immutable.
type Layout struct {
	columns []column
	schema  *arrow.Schema
	byID    bool
	mapped  bool
	byName  bool // columns are found by their names in the table's schema: rows that aren't from a file
}

// column is a column or a member of a struct.
type column struct {
	name  string // in the table's schema
	field arrow.Field
	id    int32    // 0: none
	inner []column // members of a struct; or key and value of a map; or the element of a list
}

// NewLayout lays out the files of a table. Types that this package can't hold, such as variant, are an error that names the column.
func NewLayout(md *delta.Metadata) (*Layout, error) {
	mode := md.ColumnMapping()
	l := &Layout{byID: mode == delta.MappingID, mapped: mode != delta.MappingNone}
	fields := []arrow.Field{}
	for _, f := range md.Schema.Fields {
		if slices.Contains(md.PartitionColumns, f.Name) || f.Type == delta.Void {
			continue
		}
		c, err := l.column(md, "", f)
		if err != nil {
			return nil, err
		}
		l.columns = append(l.columns, c)
		fields = append(fields, c.field)
	}
	l.schema = arrow.NewSchema(fields, nil)
	return l, nil
}

// Arrow is the schema of the batches that are read, and of files that are to be written: physical names, and under column mapping field
// ids in the fields' metadata.
func (l *Layout) Arrow() *arrow.Schema { return l.schema }

// Mapped reports whether the table has column mapping, so that names in files may differ from those of the schema.
func (l *Layout) Mapped() bool { return l.mapped }

// Index returns the place of a top-level column by its name in the table's schema, -1 if files don't hold it.
func (l *Layout) Index(name string) int {
	return slices.IndexFunc(l.columns, func(c column) bool { return c.name == name })
}

func (l *Layout) column(md *delta.Metadata, path string, f delta.Field) (column, error) {
	at := columns.Join(path, f.Name)
	c := column{name: f.Name}
	c.field = arrow.Field{Name: md.PhysicalName(f), Nullable: f.Nullable}
	if l.mapped {
		id, ok := f.ColumnID()
		if !ok {
			return c, fmt.Errorf("column %s has no id, although the table has column mapping", at)
		}
		c.id = id
		c.field.Metadata = arrow.NewMetadata([]string{fieldIDKey}, []string{strconv.Itoa(int(id))})
	}
	return c, l.setType(md, at, f.Type, &c)
}

// setType fills in a column's Arrow type and what is in it.
func (l *Layout) setType(md *delta.Metadata, at string, t delta.Type, c *column) error {
	switch t := t.(type) {
	case *delta.StructType:
		fields := make([]arrow.Field, 0, len(t.Fields))
		for _, f := range t.Fields {
			if f.Type == delta.Void {
				continue
			}
			m, err := l.column(md, at, f)
			if err != nil {
				return err
			}
			c.inner = append(c.inner, m)
			fields = append(fields, m.field)
		}
		c.field.Type = arrow.StructOf(fields...)
		return nil
	case *delta.ArrayType:
		e := column{field: arrow.Field{Name: "element", Nullable: t.ContainsNull}}
		if err := l.setType(md, at+".element", t.Element, &e); err != nil {
			return err
		}
		c.inner, c.field.Type = []column{e}, arrow.ListOfField(e.field)
		return nil
	case *delta.MapType:
		k, v := column{field: arrow.Field{Name: "key"}}, column{field: arrow.Field{Name: "value", Nullable: t.ValueContainsNull}}
		if err := l.setType(md, at+".key", t.Key, &k); err != nil {
			return err
		}
		if err := l.setType(md, at+".value", t.Value, &v); err != nil {
			return err
		}
		c.inner, c.field.Type = []column{k, v}, arrow.MapOfFields(k.field, v.field)
		return nil
	}
	p, _ := t.(delta.Primitive)
	if c.field.Type = primitive(p); c.field.Type == nil {
		return fmt.Errorf("column %s: files with type %s can't be read here", at, t)
	}
	return nil
}

var (
	timestampUTC = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	timestampNTZ = &arrow.TimestampType{Unit: arrow.Microsecond}
)

// primitive returns the Arrow type of a primitive one, nil if there is none.
func primitive(p delta.Primitive) arrow.DataType {
	switch p {
	case delta.Boolean:
		return arrow.FixedWidthTypes.Boolean
	case delta.Byte:
		return arrow.PrimitiveTypes.Int8
	case delta.Short:
		return arrow.PrimitiveTypes.Int16
	case delta.Integer:
		return arrow.PrimitiveTypes.Int32
	case delta.Long:
		return arrow.PrimitiveTypes.Int64
	case delta.Float:
		return arrow.PrimitiveTypes.Float32
	case delta.Double:
		return arrow.PrimitiveTypes.Float64
	case delta.String:
		return arrow.BinaryTypes.String
	case delta.Binary:
		return arrow.BinaryTypes.Binary
	case delta.Date:
		return arrow.FixedWidthTypes.Date32
	case delta.Timestamp:
		return timestampUTC
	case delta.TimestampNTZ:
		return timestampNTZ
	}
	if precision, scale, ok := p.DecimalParts(); ok {
		return &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(scale)}
	}
	return nil
}
