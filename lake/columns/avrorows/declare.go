package avrorows

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tributary-io/tributary/lake/columns"
)

// Options change what Declare makes of a schema.
type Options struct {
	// Name is the column of a schema that is not a record; "" means "value".
	Name string
	// LocalAsUTC stores local timestamps as timestamps, as if they were UTC, for tables that must not need timestamp_ntz.
	LocalAsUTC bool
}

// Declared is the schema of a table's owner. It is immutable and safe for concurrent use.
type Declared struct {
	// Fields are the columns: a record's fields, or one column for any other schema.
	Fields []columns.Field
	// Doc is the record's own documentation: the comment of the table.
	Doc string

	root *node
	opts Options
	name string // column of a root that is not a record
}

// Declare reads the declared schema. It returns every problem that it finds, with the path of the field.
func Declare(t Text, opts Options) (*Declared, []error) {
	root, err := parse(t)
	if err != nil {
		return nil, []error{err}
	}
	d := &Declared{root: root, opts: opts, name: opts.Name, Doc: root.doc}
	if d.name == "" {
		d.name = "value"
	}
	c := &declarer{opts: opts}
	if root.kind == "record" {
		d.Fields = c.recordFields("", root)
	} else if f, ok := c.column("", d.name, root); ok {
		d.Fields = []columns.Field{f}
	}
	if len(c.errs) == 0 {
		c.errs = (&columns.Schema{Fields: d.Fields}).Check()
	}
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return d, nil
}

type declarer struct {
	opts  Options
	errs  []error
	stack []*node
}

func (c *declarer) fail(path, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("field %s: %s", path, fmt.Sprintf(format, args...)))
}

func (c *declarer) recordFields(path string, n *node) []columns.Field {
	if slices.Contains(c.stack, n) {
		c.fail(path, "record %s contains itself: a table has no recursive types; declare a schema without this field", n.name)
		return nil
	}
	c.stack = append(c.stack, n)
	defer func() { c.stack = c.stack[:len(c.stack)-1] }()
	var out []columns.Field
	for i := range n.fields {
		f := &n.fields[i]
		col, ok := c.column(path, f.name, f.node)
		if !ok {
			continue
		}
		col.Comment = f.doc
		if col.Comment == "" {
			if p := f.node.present(); len(p) == 1 && isNamed(p[0]) {
				col.Comment = p[0].doc
			}
		}
		col.Metadata = c.metadata(columns.Join(path, f.name), f)
		out = append(out, col)
	}
	return out
}

// structural are the attributes that say how a type is written; they are not tags.
var structural = []string{"logicalType", "precision", "scale", "doc", "order", "default", "aliases", "type", "name"}

// metadata collects the custom attributes of a field and of its type.
func (c *declarer) metadata(path string, f *field) map[string]any {
	out := map[string]any{}
	present := f.node.present()
	if len(present) == 1 {
		if !isNamed(present[0]) {
			maps.Copy(out, present[0].props)
		}
		if present[0].kind == "enum" {
			out["avro.symbols"] = strings.Join(present[0].symbols, ",")
		}
	}
	maps.Copy(out, f.props)
	for _, k := range structural {
		delete(out, k)
	}
	for k := range out {
		if strings.HasPrefix(k, "delta.") {
			c.fail(path, "the attribute %q is reserved for the table format: rename it", k)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// column declares one column; ok is false if there is nothing to store.
func (c *declarer) column(path, name string, n *node) (f columns.Field, ok bool) {
	f.Name = name
	if n.isNull() {
		return f, false
	}
	f.Type = c.typeOf(columns.Join(path, name), n)
	return f, true
}

// typeOf returns the column type of a node that is not null.
func (c *declarer) typeOf(path string, n *node) columns.Type {
	branches := n.present()
	if len(branches) == 1 {
		return c.single(path, branches[0])
	}
	t := columns.Type{Kind: columns.Struct}
	names := memberNames(branches)
	for i, b := range branches {
		t.Fields = append(t.Fields, columns.Field{Name: names[i], Type: c.single(columns.Join(path, names[i]), b)})
	}
	return t
}

// memberNames names the branches of a union: by type, or by a named type's short name, or by its full name where short names
// would collide.
func memberNames(branches []*node) []string {
	names := make([]string, len(branches))
	count := map[string]int{}
	for i, b := range branches {
		names[i] = b.kind
		if isNamed(b) {
			names[i] = short(b.name)
		}
		count[strings.ToLower(names[i])]++
	}
	for i, b := range branches {
		if isNamed(b) && count[strings.ToLower(names[i])] > 1 {
			names[i] = strings.ReplaceAll(b.name, ".", "_")
		}
	}
	return names
}

var primitives = map[string]columns.Kind{"boolean": columns.Boolean, "int": columns.Integer, "long": columns.Long,
	"float": columns.Float, "double": columns.Double, "string": columns.String, "bytes": columns.Binary, "fixed": columns.Binary,
	"enum": columns.String}

func (c *declarer) single(path string, n *node) columns.Type {
	if t, ok := c.logical(path, n); ok {
		return t
	}
	switch n.kind {
	case "record":
		return columns.Type{Kind: columns.Struct, Fields: c.recordFields(path, n)}
	case "array", "map":
		t := columns.Type{Kind: columns.List, Elem: &columns.Field{Name: "element"}}
		if n.kind == "map" {
			t.Kind, t.Elem.Name = columns.Map, "value"
		}
		at := columns.Join(path, t.Elem.Name)
		if n.items.isNull() {
			c.fail(at, "%ss of nulls can't be stored: declare a schema without this field", n.kind)
			return t
		}
		t.Elem.Type = c.typeOf(at, n.items)
		return t
	}
	return columns.Type{Kind: primitives[n.kind]}
}

// durationFields are the members of an Avro duration.
func durationFields() []columns.Field {
	long := columns.Type{Kind: columns.Long}
	return []columns.Field{{Name: "months", Type: long}, {Name: "days", Type: long}, {Name: "millis", Type: long}}
}

// logical returns the column type of a logical type that is valid for the node's kind; others are ignored, as Avro says.
func (c *declarer) logical(path string, n *node) (columns.Type, bool) {
	switch n.kind + " " + n.logical {
	case "bytes decimal", "fixed decimal":
		if n.precision > columns.MaxDecimalPrecision {
			c.fail(path, "a decimal of %d digits can't be stored: at most %d", n.precision, columns.MaxDecimalPrecision)
			return columns.Type{Kind: columns.Decimal, Precision: columns.MaxDecimalPrecision}, true
		}
		return columns.Type{Kind: columns.Decimal, Precision: n.precision, Scale: n.scale}, true
	case "bytes big-decimal":
		c.fail(path, "a big-decimal has no fixed scale and can't be stored: declare it as decimal(p,s)")
		return columns.Type{Kind: columns.Binary}, true
	case "fixed uuid":
		if n.size == 16 {
			return columns.Type{Kind: columns.String}, true
		}
	case "int date":
		return columns.Type{Kind: columns.Date}, true
	case "int time-millis", "long time-micros":
		return columns.Type{Kind: columns.Long}, true
	case "long timestamp-millis", "long timestamp-micros", "long timestamp-nanos":
		return columns.Type{Kind: columns.Timestamp}, true
	case "long local-timestamp-millis", "long local-timestamp-micros", "long local-timestamp-nanos":
		if c.opts.LocalAsUTC {
			return columns.Type{Kind: columns.Timestamp}, true
		}
		return columns.Type{Kind: columns.TimestampNTZ}, true
	case "fixed duration":
		if n.size == 12 {
			return columns.Type{Kind: columns.Struct, Fields: durationFields()}, true
		}
	}
	return columns.Type{}, false
}
