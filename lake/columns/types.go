package columns

import (
	"fmt"
	"strings"
)

// Kind is the kind of a column's values.
type Kind uint8

// The kinds, by the names that Delta gives them. Timestamp is an instant in microseconds, TimestampNTZ a wall clock reading in
// microseconds without a zone, Date a number of days since 1970-01-01. Map keys are always strings.
const (
	Boolean Kind = iota + 1
	Byte
	Short
	Integer
	Long
	Float
	Double
	String
	Binary
	Date
	Timestamp
	TimestampNTZ
	Decimal
	List
	Map
	Struct
)

var kindNames = [...]string{Boolean: "boolean", Byte: "byte", Short: "short", Integer: "integer", Long: "long", Float: "float",
	Double: "double", String: "string", Binary: "binary", Date: "date", Timestamp: "timestamp", TimestampNTZ: "timestamp_ntz",
	Decimal: "decimal", List: "array", Map: "map", Struct: "struct"}

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MaxDecimalPrecision is the largest precision that Delta and Arrow's decimal128 hold.
const MaxDecimalPrecision = 38

// Type is the type of a column.
type Type struct {
	Kind             Kind
	Precision, Scale int     // Decimal only
	Elem             *Field  // List: the element; Map: the value
	Fields           []Field // Struct only
}

// String writes the type as Spark's SQL does, such as "struct<a:integer,b:array<string>>".
func (t *Type) String() string {
	switch t.Kind {
	case Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case List:
		return "array<" + t.Elem.Type.String() + ">"
	case Map:
		return "map<string," + t.Elem.Type.String() + ">"
	case Struct:
		var sb strings.Builder
		sb.WriteString("struct<")
		for i := range t.Fields {
			if i > 0 {
				sb.WriteByte(',')
			}
			sb.WriteString(t.Fields[i].Name + ":" + t.Fields[i].Type.String())
		}
		return sb.String() + ">"
	}
	return t.Kind.String()
}

// Width is the number of columns that a value of the type takes in the pre-order numbering: one for a leaf.
func (t *Type) Width() int {
	switch t.Kind {
	case List:
		return 1 + t.Elem.Type.Width()
	case Map:
		return 2 + t.Elem.Type.Width()
	case Struct:
		n := 1
		for i := range t.Fields {
			n += t.Fields[i].Type.Width()
		}
		return n
	}
	return 1
}

// Field is a named column, at the top or within a struct. Elements of lists and values of maps are fields, too; their names
// are fixed by Parquet ("element" and "value").
type Field struct {
	Name    string
	Type    Type
	NotNull bool
	// Comment is what people read about the column in a catalogue.
	Comment string
	// Metadata holds further tags, such as "ods.pii". Values are what encoding/json makes of JSON.
	Metadata map[string]any
}

// Schema lists the columns of a table.
type Schema struct {
	Fields []Field
}

// Index returns the place of the top-level column with the name, or -1.
func (s *Schema) Index(name string) int {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return i
		}
	}
	return -1
}

// ColumnOf returns the pre-order number of the i-th top-level column.
func (s *Schema) ColumnOf(i int) int {
	n := 0
	for j := range i {
		n += s.Fields[j].Type.Width()
	}
	return n
}

// Width is the number of columns of the schema in the pre-order numbering.
func (s *Schema) Width() int { return s.ColumnOf(len(s.Fields)) }

// forbidden holds the characters that Delta doesn't allow in column names without column mapping: Parquet readers of the
// Hadoop family can't take them.
const forbidden = " ,;{}()\n\t="

// Check returns every problem of the schema: names that are empty, not allowed or differ only in case (readers of Delta ignore
// case), structs without fields, and decimals out of range. Each is named by its path.
func (s *Schema) Check() []error {
	if len(s.Fields) == 0 {
		return []error{fmt.Errorf("no columns: the type has no exported fields that can be stored")}
	}
	return checkFields("", s.Fields)
}

func checkFields(path string, fields []Field) (errs []error) {
	seen := make(map[string]string, len(fields))
	for i := range fields {
		f := &fields[i]
		at := Join(path, f.Name)
		switch {
		case f.Name == "":
			errs = append(errs, fmt.Errorf("field %d of %q has no name", i, path))
		case strings.ContainsAny(f.Name, forbidden):
			errs = append(errs, fmt.Errorf("field %s: a column name can't contain any of %q: rename it", at, forbidden))
		}
		low := strings.ToLower(f.Name)
		if other, ok := seen[low]; ok {
			errs = append(errs, fmt.Errorf("field %s: its name differs from %s only in case, or not at all: readers of the table ignore case; rename one", at, Join(path, other)))
		}
		seen[low] = f.Name
		errs = append(errs, checkType(at, &f.Type)...)
	}
	return errs
}

func checkType(at string, t *Type) []error {
	switch t.Kind {
	case Decimal:
		if t.Precision < 1 || t.Precision > MaxDecimalPrecision || t.Scale < 0 || t.Scale > t.Precision {
			return []error{fmt.Errorf("field %s: decimal(%d,%d): the precision must be 1 to %d and the scale 0 to the precision", at, t.Precision, t.Scale, MaxDecimalPrecision)}
		}
	case List:
		return checkType(Join(at, "element"), &t.Elem.Type)
	case Map:
		return checkType(Join(at, "value"), &t.Elem.Type)
	case Struct:
		if len(t.Fields) == 0 {
			return []error{fmt.Errorf("field %s: a struct without fields can't be stored in Parquet", at)}
		}
		return checkFields(at, t.Fields)
	}
	return nil
}

// Join appends a name to a field path.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
