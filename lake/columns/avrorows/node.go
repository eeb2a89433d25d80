package avrorows

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/avro"
)

// Text is a schema as a registry holds it: its JSON and the schemas that it refers to, those that others need first.
type Text struct {
	Schema     string
	References []string
}

// node is a parsed schema with its references followed: a graph, cyclic where a type is recursive.
type node struct {
	kind             string // null, boolean, …, record, enum, fixed, array, map, union
	logical          string
	precision, scale int
	name             string // full name of a named type
	aliases          []string
	doc              string
	props            map[string]any
	fields           []field
	items            *node // of an array or a map
	branches         []*node
	symbols          []string
	enumDefault      string
	hasEnumDefault   bool
	size             int
}

type field struct {
	name       string
	aliases    []string
	doc        string
	props      map[string]any
	node       *node
	def        any
	hasDefault bool
}

// parse reads a schema and its references.
func parse(t Text) (*node, error) {
	var cache avro.SchemaCache
	named := map[string]*node{}
	for i, ref := range t.References {
		s, err := cache.Parse(ref)
		if err != nil {
			return nil, fmt.Errorf("referenced Avro schema %d: %w", i+1, err)
		}
		convert(s.Root(), "", named)
	}
	s, err := cache.Parse(t.Schema)
	if err != nil {
		return nil, fmt.Errorf("the Avro schema: %w", err)
	}
	n := convert(s.Root(), "", named)
	if missing := unresolved(n, map[*node]bool{}); missing != "" {
		return nil, fmt.Errorf("the Avro schema refers to type %q, which it doesn't define", missing)
	}
	return n, nil
}

// convert copies the parser's tree; named holds the types seen so far by full name.
func convert(s *avro.SchemaNode, space string, named map[string]*node) *node {
	n := &node{kind: s.Type, logical: s.LogicalType, precision: s.Precision, scale: s.Scale, aliases: s.Aliases, doc: s.Doc,
		props: s.Props, symbols: s.Symbols, enumDefault: s.EnumDefault, hasEnumDefault: s.HasEnumDefault, size: s.Size}
	switch s.Type {
	case "null", "boolean", "int", "long", "float", "double", "bytes", "string":
		return n
	case "array":
		n.items = convert(s.Items, space, named)
		return n
	case "map":
		n.items = convert(s.Values, space, named)
		return n
	case "union":
		for i := range s.Branches {
			n.branches = append(n.branches, convert(&s.Branches[i], space, named))
		}
		return n
	case "record", "error", "enum", "fixed":
		return convertNamed(s, n, named)
	}
	return reference(s.Type, space, named)
}

func convertNamed(s *avro.SchemaNode, n *node, named map[string]*node) *node {
	if n.kind == "error" {
		n.kind = "record"
	}
	n.name = s.Name
	if s.Namespace != "" && !strings.Contains(s.Name, ".") {
		n.name = s.Namespace + "." + s.Name
	}
	space := n.name[:max(strings.LastIndexByte(n.name, '.'), 0)]
	for i, a := range n.aliases {
		if !strings.Contains(a, ".") && space != "" {
			n.aliases = slices.Clone(n.aliases)
			n.aliases[i] = space + "." + a
		}
	}
	if had := named[n.name]; had != nil && had.kind == "" {
		*had = *n // a reference came first: fill what it points to
		n = had
	} else {
		named[n.name] = n
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		n.fields = append(n.fields, field{name: f.Name, aliases: f.Aliases, doc: f.Doc, props: f.Props,
			node: convert(&f.Type, space, named), def: f.Default, hasDefault: f.HasDefault})
	}
	return n
}

// reference finds a named type; one that is defined later gets its content then.
func reference(name, space string, named map[string]*node) *node {
	if n := named[name]; n != nil {
		return n
	}
	if space != "" && !strings.Contains(name, ".") {
		if n := named[space+"."+name]; n != nil {
			return n
		}
	}
	n := &node{name: name}
	named[name] = n
	return n
}

// unresolved returns the name of a type that is referred to but not defined, or "".
func unresolved(n *node, seen map[*node]bool) string {
	if seen[n] {
		return ""
	}
	seen[n] = true
	if n.kind == "" {
		return n.name
	}
	next := slices.Clone(n.branches)
	if n.items != nil {
		next = append(next, n.items)
	}
	for i := range n.fields {
		next = append(next, n.fields[i].node)
	}
	for _, c := range next {
		if m := unresolved(c, seen); m != "" {
			return m
		}
	}
	return ""
}

func isNamed(n *node) bool { return n.kind == "record" || n.kind == "enum" || n.kind == "fixed" }

func short(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// describe names a node for error messages.
func (n *node) describe() string {
	switch {
	case n.logical == "decimal":
		return fmt.Sprintf("decimal(%d,%d)", n.precision, n.scale)
	case n.logical != "":
		return n.logical
	case isNamed(n):
		return n.kind + " " + n.name
	case n.kind == "union":
		names := make([]string, len(n.branches))
		for i, b := range n.branches {
			names[i] = b.describe()
		}
		return "[" + strings.Join(names, ", ") + "]"
	}
	return n.kind
}

// isNull reports whether values of the node carry nothing: null, or a union of nothing else.
func (n *node) isNull() bool {
	if n.kind != "union" {
		return n.kind == "null"
	}
	for _, b := range n.branches {
		if b.kind != "null" {
			return false
		}
	}
	return true
}

// present lists the branches of a union that are not null; of another node, the node itself.
func (n *node) present() []*node {
	if n.kind != "union" {
		return []*node{n}
	}
	var out []*node
	for _, b := range n.branches {
		if b.kind != "null" {
			out = append(out, b)
		}
	}
	return out
}
