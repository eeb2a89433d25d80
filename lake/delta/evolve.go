package delta

import (
	"fmt"
	"slices"
	"strings"
)

// SchemaChangeError names a change of schema that can't be made in place.
type SchemaChangeError struct {
	Path   string // dotted; "element", "key" and "value" for the insides of arrays and maps
	Reason string // names both types
}

func (e *SchemaChangeError) Error() string {
	return fmt.Sprintf("column %s: %s; land the stream in a new table, or keep the declared column as it was", e.Path, e.Reason)
}

// Evolve returns the table's schema old extended by what the writer's schema wanted has beyond it, at any depth: columns that
// old lacks are appended in wanted's order, as nullable ones; keys of field metadata (the comment among them) take wanted's
// values. What only old has stays: columns, which the writer then leaves null, and foreign keys of field metadata, byte for
// byte. A key that wanted dropped stays too, since it can't be told from a foreign one.
//
// A column that the table has widened since (PROTOCOL.md, "Type Widening") keeps its type: wanted may still have a narrower one.
//
// Anything else is a *SchemaChangeError: another type, a column that is NOT NULL in old but not in wanted (or lacking there),
// a new column that would have to be NOT NULL, names that differ only in case. A column that is nullable in old stays so.
//
// The result is old itself if nothing changes.
func Evolve(old, wanted *StructType) (*StructType, error) {
	out, err := evolveStruct("", old, wanted)
	if err != nil {
		return nil, err
	}
	if out.Equal(old) {
		return old, nil
	}
	return out, nil
}

func evolveStruct(path string, old, wanted *StructType) (*StructType, error) {
	out := &StructType{Fields: slices.Clone(old.Fields), extra: old.extra}
	for _, w := range wanted.Fields {
		at := join(path, w.Name)
		i := slices.IndexFunc(out.Fields, func(f Field) bool { return strings.EqualFold(f.Name, w.Name) })
		if i < 0 {
			if !w.Nullable && len(old.Fields) > 0 {
				return nil, &SchemaChangeError{at, "a new column of type " + w.Type.String() + " must be nullable, since the rows already there don't have it"}
			}
			out.Fields = append(out.Fields, w)
			continue
		}
		if out.Fields[i].Name != w.Name {
			return nil, &SchemaChangeError{at, fmt.Sprintf("it differs only in case from %s, and readers don't tell them apart", join(path, out.Fields[i].Name))}
		}
		f, err := evolveField(at, out.Fields[i], w)
		if err != nil {
			return nil, err
		}
		out.Fields[i] = f
	}
	for _, f := range old.Fields {
		if _, ok := wanted.Field(f.Name); !ok && !f.Nullable {
			return nil, &SchemaChangeError{join(path, f.Name), "the table says " + f.Type.String() + " NOT NULL, but the stream doesn't have the column"}
		}
	}
	return out, nil
}

func evolveField(path string, old, wanted Field) (Field, error) {
	if !old.Nullable && wanted.Nullable {
		return old, &SchemaChangeError{path, fmt.Sprintf("the table says %s NOT NULL, the stream says nullable %s", old.Type, wanted.Type)}
	}
	t, err := evolveType(path, old.Type, wanted.Type)
	if _, widened := old.Metadata.Get(keyTypeChanges); widened && widens(wanted.Type, old.Type) {
		t, err = old.Type, nil // the table has gone ahead: rows of the narrower type still fit
	}
	if err != nil {
		return old, err
	}
	out := old
	out.Type = t
	out.Metadata = old.Metadata.merged(wanted.Metadata)
	return out, nil
}

func evolveType(path string, old, wanted Type) (Type, error) {
	switch o := old.(type) {
	case *StructType:
		if w, ok := wanted.(*StructType); ok {
			return evolveStruct(path, o, w)
		}
	case *ArrayType:
		if w, ok := wanted.(*ArrayType); ok {
			if !o.ContainsNull && w.ContainsNull {
				return nil, &SchemaChangeError{join(path, "element"), "the table allows no null elements, the stream has them"}
			}
			element, err := evolveType(join(path, "element"), o.Element, w.Element)
			return &ArrayType{Element: element, ContainsNull: o.ContainsNull, extra: o.extra}, err
		}
	case *MapType:
		if w, ok := wanted.(*MapType); ok {
			return evolveMap(path, o, w)
		}
	default:
		if old == wanted {
			return old, nil
		}
	}
	return nil, &SchemaChangeError{path, fmt.Sprintf("the table says %s, the stream says %s", old, wanted)}
}

func evolveMap(path string, old, wanted *MapType) (Type, error) {
	if !old.ValueContainsNull && wanted.ValueContainsNull {
		return nil, &SchemaChangeError{join(path, "value"), "the table allows no null values, the stream has them"}
	}
	key, err := evolveType(join(path, "key"), old.Key, wanted.Key)
	if err != nil {
		return nil, err
	}
	value, err := evolveType(join(path, "value"), old.Value, wanted.Value)
	return &MapType{Key: key, Value: value, ValueContainsNull: old.ValueContainsNull, extra: old.extra}, err
}

// merged returns m with o's keys set over it.
func (m FieldMetadata) merged(o FieldMetadata) FieldMetadata {
	out := slices.Clone(m.entries)
	for _, e := range o.entries {
		if i := slices.IndexFunc(out, func(x rawEntry) bool { return x.key == e.key }); i >= 0 {
			out[i] = e
		} else {
			out = append(out, e)
		}
	}
	return FieldMetadata{out}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
