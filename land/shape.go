package land

import "fmt"

// shape is a type of a generator's schema, with the names that it refers to looked up.
type shape struct {
	kind, logical string // kind "union" if there are several branches beside null
	s             map[string]any
	space         string  // around what is in it
	nullable      bool    // it is in a union with null
	branches      []shape // of a union, without null
	names         []string
}

// shapeOf reads a type, which is JSON. Its named types must have been seen by the generator.
func (g *generator) shapeOf(schema any, space string) (shape, error) {
	switch s := schema.(type) {
	case string:
		if def, ok := g.named[fullName(s, space)]; ok {
			return g.shapeOf(def, space)
		}
		return shape{kind: s, s: map[string]any{"type": s}, space: space}, nil
	case []any:
		return g.unionShape(s, space)
	case map[string]any:
		kind, ok := s["type"].(string)
		if !ok {
			return g.shapeOf(s["type"], space)
		}
		if def, ok := g.named[fullName(kind, space)]; ok {
			return g.shapeOf(def, space)
		}
		logical, _ := s["logicalType"].(string)
		return shape{kind: kind, logical: logical, s: s, space: spaceIn(s, space)}, nil
	}
	return shape{}, fmt.Errorf("schema: %v is no type", schema)
}

func (g *generator) unionShape(branches []any, space string) (shape, error) {
	out := shape{kind: "union", space: space}
	var present []any
	for _, b := range branches {
		if b == "null" {
			out.nullable = true
			continue
		}
		inner, err := g.shapeOf(b, space)
		if err != nil {
			return out, err
		}
		out.branches, present = append(out.branches, inner), append(present, b)
	}
	switch len(present) {
	case 0:
		return shape{kind: "null"}, nil
	case 1:
		one := out.branches[0]
		one.nullable = out.nullable
		return one, nil
	}
	out.names = g.memberNames(present, space)
	return out, nil
}

// member is a field of a record.
type member struct {
	name string
	shape
}

// members are the fields of a record that make columns.
func (g *generator) members(record shape) ([]member, error) {
	fields, _ := record.s["fields"].([]any)
	var out []member
	for _, f := range fields {
		m, ok := f.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("record %v: %v is no field", record.s["name"], f)
		}
		inner, err := g.shapeOf(m["type"], record.space)
		if err != nil {
			return nil, fmt.Errorf("field %v: %w", m["name"], err)
		}
		if inner.kind != "null" {
			out = append(out, member{fmt.Sprint(m["name"]), inner})
		}
	}
	return out, nil
}

// inner is what an array or a map holds.
func (g *generator) inner(s shape) (shape, error) {
	if s.kind == "array" {
		return g.shapeOf(s.s["items"], s.space)
	}
	return g.shapeOf(s.s["values"], s.space)
}
