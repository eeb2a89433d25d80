package delta

import (
	"slices"
	"strings"
)

// reservedKeys are the prefixes of keys in a field's metadata that belong to the protocol or to engines, and are nobody's tags.
var reservedKeys = []string{"delta.", "__", "parquet.", "iceberg.", "spark."}

// DropUndeclared returns a schema without the comments and tags (keys of field metadata) that the declared one doesn't have, in the columns that
// both have, at any depth. Keys of the protocol and of engines stay, and so do columns that the declared schema lacks, as they are. dropped
// names each as "column: key". The result is old itself if nothing is dropped.
func DropUndeclared(old, declared *StructType) (out *StructType, dropped []string) {
	out = dropStruct("", old, declared, &dropped)
	if len(dropped) == 0 {
		return old, nil
	}
	return out, dropped
}

func dropStruct(path string, old, declared *StructType, dropped *[]string) *StructType {
	out := &StructType{Fields: slices.Clone(old.Fields), extra: old.extra}
	for i, f := range out.Fields {
		want, ok := declared.Field(f.Name)
		if !ok {
			continue
		}
		at := join(path, f.Name)
		var kept []rawEntry
		for _, e := range f.Metadata.entries {
			_, declares := want.Metadata.Get(e.key)
			if declares || slices.ContainsFunc(reservedKeys, func(p string) bool { return strings.HasPrefix(e.key, p) }) {
				kept = append(kept, e)
				continue
			}
			*dropped = append(*dropped, at+": "+e.key)
		}
		out.Fields[i].Metadata = FieldMetadata{kept}
		out.Fields[i].Type = dropType(at, f.Type, want.Type, dropped)
	}
	return out
}

func dropType(path string, old, declared Type, dropped *[]string) Type {
	switch o := old.(type) {
	case *StructType:
		if d, ok := declared.(*StructType); ok {
			return dropStruct(path, o, d, dropped)
		}
	case *ArrayType:
		if d, ok := declared.(*ArrayType); ok {
			return &ArrayType{Element: dropType(join(path, "element"), o.Element, d.Element, dropped), ContainsNull: o.ContainsNull, extra: o.extra}
		}
	case *MapType:
		if d, ok := declared.(*MapType); ok {
			return &MapType{Key: dropType(join(path, "key"), o.Key, d.Key, dropped), Value: dropType(join(path, "value"), o.Value, d.Value, dropped),
				ValueContainsNull: o.ValueContainsNull, extra: o.extra}
		}
	}
	return old
}
