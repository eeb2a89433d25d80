package delta

// Data files have no void columns, so that nothing would be left in a file of some of them (PROTOCOL.md, "Primitive Types").

// voidShapes names the columns that keep a table from taking data files: lists and maps of void, and structs of nothing else.
func voidShapes(s *StructType) (out []string) {
	inner := func(path string, t Type, walk func(string, Type)) {
		if t == Void {
			out = append(out, "type void in column "+path)
			return
		}
		walk(path, t)
	}
	var walk func(path string, t Type)
	walk = func(path string, t Type) {
		switch t := t.(type) {
		case *ArrayType:
			inner(join(path, "element"), t.Element, walk)
		case *MapType:
			inner(join(path, "key"), t.Key, walk)
			inner(join(path, "value"), t.Value, walk)
		case *StructType:
			if t.allVoid() {
				out = append(out, "nothing but type void in column "+path)
			}
			for _, f := range t.Fields {
				walk(join(path, f.Name), f.Type)
			}
		}
	}
	for _, f := range s.Fields {
		walk(f.Name, f.Type)
	}
	return out
}

// allVoid reports whether a struct has only void members.
func (s *StructType) allVoid() bool {
	for _, f := range s.Fields {
		if f.Type != Void {
			return false
		}
	}
	return len(s.Fields) > 0
}
