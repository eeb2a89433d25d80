package delta

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxSchemaDepth bounds nesting, so that a hostile schema can't exhaust the stack.
const maxSchemaDepth = 200

// ParseSchema reads a schema as a metaData action's schemaString holds it (PROTOCOL.md, "Schema Serialization Format"). It
// keeps keys and types that it doesn't know.
func ParseSchema(text string) (*StructType, error) {
	t, err := parseType([]byte(text), 0)
	if err != nil {
		return nil, err
	}
	s, ok := t.(*StructType)
	if !ok {
		return nil, fmt.Errorf("a table's schema is a struct, not %s", t)
	}
	return s, nil
}

func parseType(data []byte, depth int) (Type, error) {
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("types are nested deeper than %d", maxSchemaDepth)
	}
	if len(data) > 0 && data[0] == '"' {
		var name string
		if err := json.Unmarshal(data, &name); err != nil {
			return nil, err
		}
		return parsePrimitive(name)
	}
	entries, err := readObject(data)
	if err != nil {
		return nil, err
	}
	var kind string
	for _, e := range entries {
		if e.key == "type" {
			if err := json.Unmarshal(e.value, &kind); err != nil {
				return nil, fmt.Errorf("type: %w", err)
			}
		}
	}
	switch kind {
	case "struct":
		return parseStruct(entries, depth)
	case "array":
		return parseArray(entries, depth)
	case "map":
		return parseMap(entries, depth)
	}
	return nil, fmt.Errorf("unknown type %q", kind)
}

func parsePrimitive(name string) (Type, error) {
	if name == "" {
		return nil, fmt.Errorf("a type without a name")
	}
	p := Primitive(name)
	if name == "decimal" { // what Spark reads without parameters
		return Decimal(10, 0), nil
	}
	if strings.HasPrefix(name, "decimal") {
		if _, _, ok := p.DecimalParts(); !ok {
			return nil, fmt.Errorf("invalid decimal type %q", name)
		}
	}
	return p, nil
}

func parseStruct(entries []rawEntry, depth int) (*StructType, error) {
	s := &StructType{}
	for _, e := range entries {
		switch e.key {
		case "type":
		case "fields":
			var raw []json.RawMessage
			if err := json.Unmarshal(e.value, &raw); err != nil {
				return nil, fmt.Errorf("fields: %w", err)
			}
			for i, r := range raw {
				f, err := parseField(r, depth)
				if err != nil {
					return nil, fmt.Errorf("field %d: %w", i, err)
				}
				s.Fields = append(s.Fields, f)
			}
		default:
			s.extra = append(s.extra, e)
		}
	}
	return s, nil
}

func parseField(data []byte, depth int) (Field, error) {
	entries, err := readObject(data)
	if err != nil {
		return Field{}, err
	}
	f := Field{Nullable: true}
	for _, e := range entries {
		switch e.key {
		case "name":
			err = json.Unmarshal(e.value, &f.Name)
		case "type":
			f.Type, err = parseType(e.value, depth+1)
		case "nullable":
			err = json.Unmarshal(e.value, &f.Nullable)
		case "metadata":
			if !isNull(e.value) {
				f.Metadata.entries, err = readObject(e.value)
			}
		default:
			f.extra = append(f.extra, e)
		}
		if err != nil {
			return Field{}, fmt.Errorf("%s %s: %w", f.Name, e.key, err)
		}
	}
	if f.Name == "" || f.Type == nil {
		return Field{}, fmt.Errorf("a field needs a name and a type: %s", data)
	}
	return f, nil
}

func parseArray(entries []rawEntry, depth int) (_ *ArrayType, err error) {
	a := &ArrayType{ContainsNull: true}
	for _, e := range entries {
		switch e.key {
		case "type":
		case "elementType":
			a.Element, err = parseType(e.value, depth+1)
		case "containsNull":
			err = json.Unmarshal(e.value, &a.ContainsNull)
		default:
			a.extra = append(a.extra, e)
		}
		if err != nil {
			return nil, fmt.Errorf("array %s: %w", e.key, err)
		}
	}
	if a.Element == nil {
		return nil, fmt.Errorf("an array without elementType")
	}
	return a, nil
}

func parseMap(entries []rawEntry, depth int) (_ *MapType, err error) {
	m := &MapType{ValueContainsNull: true}
	for _, e := range entries {
		switch e.key {
		case "type":
		case "keyType":
			m.Key, err = parseType(e.value, depth+1)
		case "valueType":
			m.Value, err = parseType(e.value, depth+1)
		case "valueContainsNull":
			err = json.Unmarshal(e.value, &m.ValueContainsNull)
		default:
			m.extra = append(m.extra, e)
		}
		if err != nil {
			return nil, fmt.Errorf("map %s: %w", e.key, err)
		}
	}
	if m.Key == nil || m.Value == nil {
		return nil, fmt.Errorf("a map without keyType or valueType")
	}
	return m, nil
}

// MarshalJSON writes the schema as a metaData action's schemaString holds it.
func (s *StructType) MarshalJSON() ([]byte, error) {
	var w objectWriter
	w.value("type", "struct")
	fields := []byte{'['}
	for i, f := range s.Fields {
		raw, err := f.marshal()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			fields = append(fields, ',')
		}
		fields = append(fields, raw...)
	}
	w.raw("fields", append(fields, ']'))
	w.extra(s.extra)
	return w.done()
}

func (f *Field) marshal() ([]byte, error) {
	var w objectWriter
	w.value("name", f.Name)
	raw, err := marshalType(f.Type)
	if err != nil {
		return nil, err
	}
	w.raw("type", raw)
	w.value("nullable", f.Nullable)
	var md objectWriter
	md.extra(f.Metadata.entries)
	raw, err = md.done()
	if err != nil {
		return nil, err
	}
	w.raw("metadata", raw)
	w.extra(f.extra)
	return w.done()
}

func marshalType(t Type) ([]byte, error) {
	var w objectWriter
	switch t := t.(type) {
	case Primitive:
		return marshalPlain(string(t))
	case *StructType:
		return t.MarshalJSON()
	case *ArrayType:
		element, err := marshalType(t.Element)
		if err != nil {
			return nil, err
		}
		w.value("type", "array")
		w.raw("elementType", element)
		w.value("containsNull", t.ContainsNull)
		w.extra(t.extra)
	case *MapType:
		key, err := marshalType(t.Key)
		if err != nil {
			return nil, err
		}
		value, err := marshalType(t.Value)
		if err != nil {
			return nil, err
		}
		w.value("type", "map")
		w.raw("keyType", key)
		w.raw("valueType", value)
		w.value("valueContainsNull", t.ValueContainsNull)
		w.extra(t.extra)
	default:
		return nil, fmt.Errorf("a column without a type")
	}
	return w.done()
}

// Equal says whether two schemas are the same to the last key of field metadata, whose order doesn't count.
func (s *StructType) Equal(o *StructType) bool {
	return slices.EqualFunc(s.Fields, o.Fields, func(a, b Field) bool {
		return a.Name == b.Name && a.Nullable == b.Nullable && equalTypes(a.Type, b.Type) && a.Metadata.Equal(b.Metadata)
	})
}

func equalTypes(a, b Type) bool {
	switch a := a.(type) {
	case *StructType:
		b, ok := b.(*StructType)
		return ok && a.Equal(b)
	case *ArrayType:
		b, ok := b.(*ArrayType)
		return ok && a.ContainsNull == b.ContainsNull && equalTypes(a.Element, b.Element)
	case *MapType:
		b, ok := b.(*MapType)
		return ok && a.ValueContainsNull == b.ValueContainsNull && equalTypes(a.Key, b.Key) && equalTypes(a.Value, b.Value)
	}
	return a == b
}

// Equal says whether both have the same keys with the same JSON text.
func (m FieldMetadata) Equal(o FieldMetadata) bool {
	if len(m.entries) != len(o.entries) {
		return false
	}
	for _, e := range m.entries {
		raw, ok := o.Get(e.key)
		if !ok || string(raw) != string(e.value) {
			return false
		}
	}
	return true
}
