package delta

import (
	"fmt"
	"strings"
)

// walkFields calls fn for every field of a schema with its dotted path, outer fields first; also for those inside arrays
// ("element") and maps ("key", "value").
func walkFields(path string, t Type, fn func(path string, f Field)) {
	switch t := t.(type) {
	case *StructType:
		for _, f := range t.Fields {
			p := join(path, f.Name)
			fn(p, f)
			walkFields(p, f.Type, fn)
		}
	case *ArrayType:
		walkFields(join(path, "element"), t.Element, fn)
	case *MapType:
		walkFields(join(path, "key"), t.Key, fn)
		walkFields(join(path, "value"), t.Value, fn)
	}
}

// walkPrimitives calls fn for every primitive type in a schema, also inside arrays and maps, with its dotted path.
func walkPrimitives(path string, t Type, fn func(path string, p Primitive)) {
	switch t := t.(type) {
	case Primitive:
		fn(path, t)
	case *StructType:
		for _, f := range t.Fields {
			walkPrimitives(join(path, f.Name), f.Type, fn)
		}
	case *ArrayType:
		walkPrimitives(join(path, "element"), t.Element, fn)
	case *MapType:
		walkPrimitives(join(path, "key"), t.Key, fn)
		walkPrimitives(join(path, "value"), t.Value, fn)
	}
}

// hasType says whether a primitive type is used anywhere in the schema.
func hasType(t Type, want Primitive) (found bool) {
	walkPrimitives("", t, func(_ string, p Primitive) { found = found || p == want })
	return found
}

// checkNames refuses column names that readers can't tell apart, or that Parquet writers refuse in tables that aren't mapped.
func checkNames(path string, t Type, mapped bool) error {
	switch t := t.(type) {
	case *StructType:
		seen := make(map[string]string, len(t.Fields))
		for _, f := range t.Fields {
			p := join(path, f.Name)
			if f.Name == "" || !mapped && strings.ContainsAny(f.Name, " ,;{}()\n\t=") {
				return fmt.Errorf("column %q: a name must not be empty or hold any of \" ,;{}()=\", tabs or newlines", p)
			}
			if other, ok := seen[strings.ToLower(f.Name)]; ok {
				return fmt.Errorf("columns %s and %s differ only in case: readers don't tell them apart", join(path, other), p)
			}
			seen[strings.ToLower(f.Name)] = f.Name
			if err := checkNames(p, f.Type, mapped); err != nil {
				return err
			}
		}
	case *ArrayType:
		return checkNames(join(path, "element"), t.Element, mapped)
	case *MapType:
		if err := checkNames(join(path, "key"), t.Key, mapped); err != nil {
			return err
		}
		return checkNames(join(path, "value"), t.Value, mapped)
	}
	return nil
}
