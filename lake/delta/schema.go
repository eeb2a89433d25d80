package delta

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Type is a column type of the Delta schema: a Primitive, *StructType, *ArrayType or *MapType. Types are immutable.
type Type interface {
	// String returns the type as people write it, such as "struct<a: long, b: array<string>>".
	String() string
	isType()
}

// Primitive is a type without inner types, by its name in the log: "string", "long", "decimal(10,2)" and so on. Names that
// this package doesn't know are kept as they are.
type Primitive string

// The primitive types of the specification (PROTOCOL.md, "Primitive Types"). Decimals are made by Decimal.
const (
	String       Primitive = "string"
	Long         Primitive = "long"
	Integer      Primitive = "integer"
	Short        Primitive = "short"
	Byte         Primitive = "byte"
	Float        Primitive = "float"
	Double       Primitive = "double"
	Boolean      Primitive = "boolean"
	Binary       Primitive = "binary"
	Date         Primitive = "date"
	Timestamp    Primitive = "timestamp"
	TimestampNTZ Primitive = "timestamp_ntz" // needs the table feature timestampNtz
	Variant      Primitive = "variant"
	Void         Primitive = "void"
)

// Decimal returns the type decimal(precision,scale); precision is 1 to 38.
func Decimal(precision, scale int) Primitive {
	return Primitive(fmt.Sprintf("decimal(%d,%d)", precision, scale))
}

// DecimalParts returns precision and scale of a decimal type, ok=false for any other.
func (p Primitive) DecimalParts() (precision, scale int, ok bool) {
	s, found := strings.CutPrefix(string(p), "decimal(")
	if !found || !strings.HasSuffix(s, ")") {
		return 0, 0, false
	}
	a, b, found := strings.Cut(s[:len(s)-1], ",")
	if !found {
		return 0, 0, false
	}
	precision, ok1 := atoiSmall(strings.TrimSpace(a))
	scale, ok2 := atoiSmall(strings.TrimSpace(b))
	if !ok1 || !ok2 || precision < 1 || precision > 38 || scale > precision {
		return 0, 0, false
	}
	return precision, scale, true
}

func (p Primitive) String() string { return string(p) }
func (Primitive) isType()          {}

// StructType is a list of named fields: the schema of a table, or a nested record.
type StructType struct {
	Fields []Field
	extra  extraKeys
}

// Field is a column or a member of a nested record.
type Field struct {
	Name     string
	Type     Type
	Nullable bool
	Metadata FieldMetadata
	extra    extraKeys
}

// ArrayType is a list.
type ArrayType struct {
	Element      Type
	ContainsNull bool
	extra        extraKeys
}

// MapType is a map. Keys are never null.
type MapType struct {
	Key, Value        Type
	ValueContainsNull bool
	extra             extraKeys
}

func (*StructType) isType() {}
func (*ArrayType) isType()  {}
func (*MapType) isType()    {}

func (s *StructType) String() string {
	var b strings.Builder
	b.WriteString("struct<")
	for i, f := range s.Fields {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(f.Name + ": " + f.Type.String())
		if !f.Nullable {
			b.WriteString(" not null")
		}
	}
	b.WriteString(">")
	return b.String()
}

func (a *ArrayType) String() string { return "array<" + a.Element.String() + ">" }

func (m *MapType) String() string { return "map<" + m.Key.String() + ", " + m.Value.String() + ">" }

// Field returns the field of that name, exact in case.
func (s *StructType) Field(name string) (Field, bool) {
	for _, f := range s.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// FieldMetadata is what a field carries besides its type: its comment, keys of the protocol ("delta.…") and keys of other
// people's. It keeps the order and the exact bytes of every value. The zero value is empty; values are immutable.
type FieldMetadata struct{ entries []rawEntry }

// CommentKey is the key of a column's comment.
const CommentKey = "comment"

// Len returns the number of keys.
func (m FieldMetadata) Len() int { return len(m.entries) }

// Keys returns the keys in their order.
func (m FieldMetadata) Keys() []string {
	keys := make([]string, len(m.entries))
	for i, e := range m.entries {
		keys[i] = e.key
	}
	return keys
}

// Get returns the raw JSON value of a key.
func (m FieldMetadata) Get(key string) (json.RawMessage, bool) {
	for _, e := range m.entries {
		if e.key == key {
			return e.value, true
		}
	}
	return nil, false
}

// Text returns the value of a key whose value is a string, "" otherwise.
func (m FieldMetadata) Text(key string) string {
	raw, ok := m.Get(key)
	if !ok {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// Comment returns the field's comment, "" if it has none.
func (m FieldMetadata) Comment() string { return m.Text(CommentKey) }

// With returns a copy with a key set to a value (anything that marshals to JSON), at its old place or at the end.
// It panics if the value can't be marshalled.
func (m FieldMetadata) With(key string, value any) FieldMetadata {
	raw, err := marshalPlain(value)
	if err != nil {
		panic(fmt.Sprintf("delta: field metadata %q: %v", key, err))
	}
	out := make([]rawEntry, len(m.entries), len(m.entries)+1)
	copy(out, m.entries)
	for i := range out {
		if out[i].key == key {
			out[i].value = raw
			return FieldMetadata{out}
		}
	}
	return FieldMetadata{append(out, rawEntry{key, raw})}
}

// Without returns a copy that lacks the key.
func (m FieldMetadata) Without(key string) FieldMetadata {
	var out []rawEntry
	for _, e := range m.entries {
		if e.key != key {
			out = append(out, e)
		}
	}
	return FieldMetadata{out}
}
