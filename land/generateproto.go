package land

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tributary-io/tributary/lake"
)

// protoGenerator writes generated rows as Protobuf messages, of a schema that it makes of the declared one. Messages have no null in lists and
// maps, and none for these: a schema with nulls there can't be proved, and where only the list itself may be null it is empty instead.
type protoGenerator struct {
	g        *generator
	text     string // the .proto file
	messages []string
	root     protoreflect.MessageDescriptor
}

func newProtoGenerator(ctx context.Context, g *generator) (*protoGenerator, error) {
	p := &protoGenerator{g: g}
	root, err := g.shapeOf(g.root, "")
	if err != nil {
		return nil, err
	}
	if _, err := p.message(root); err != nil {
		return nil, fmt.Errorf("as Protobuf: %w", err)
	}
	p.text = "syntax = \"proto3\";\nimport \"google/protobuf/timestamp.proto\";\n" + strings.Join(p.messages, "")
	const name = "generated.proto"
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{name: p.text})})}
	files, err := c.Compile(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("as Protobuf: %w", err)
	}
	p.root = files[0].Messages().Get(0)
	return p, nil
}

// message declares the message of a record, a union or a duration, and returns its name. The first is the root.
func (p *protoGenerator) message(s shape) (string, error) {
	at := len(p.messages)
	p.messages = append(p.messages, "")
	members, err := p.membersOf(s)
	if err != nil {
		return "", err
	}
	name := fmt.Sprint("M", at)
	var b strings.Builder
	fmt.Fprintf(&b, "message %s {\n", name)
	for i, m := range members {
		of, err := p.field(m.shape, s.kind == "union")
		if err != nil {
			return "", fmt.Errorf("field %s: %w", m.name, err)
		}
		fmt.Fprintf(&b, "  %s %s = %d;\n", of, m.name, i+1)
	}
	b.WriteString("}\n")
	p.messages[at] = b.String()
	return name, nil
}

func (p *protoGenerator) membersOf(s shape) ([]member, error) {
	switch {
	case s.kind == "union":
		out := make([]member, len(s.names))
		for i, name := range s.names {
			out[i] = member{name, s.branches[i]}
		}
		return out, nil
	case s.kind == "fixed": // a duration
		long := shape{kind: "long"}
		return []member{{"months", long}, {"days", long}, {"millis", long}}, nil
	}
	return p.g.members(s)
}

// field is the type of a field, with its label. A branch of a union must have presence.
func (p *protoGenerator) field(s shape, branch bool) (string, error) {
	if s.kind != "array" && s.kind != "map" {
		of, err := p.single(s)
		if scalar := !s.isMessage(); err == nil && scalar && (s.nullable || branch) {
			of = "optional " + of
		}
		return of, err
	}
	if branch {
		return "", fmt.Errorf("unions with %ss have no like there", s.kind)
	}
	inner, err := p.g.inner(s)
	if err != nil {
		return "", err
	}
	if inner.nullable || inner.kind == "array" || inner.kind == "map" {
		return "", fmt.Errorf("%ss of nulls, arrays or maps have no like there", s.kind)
	}
	of, err := p.single(inner)
	if s.kind == "map" {
		return "map<string, " + of + ">", err
	}
	return "repeated " + of, err
}

func (s *shape) isInstant() bool { return strings.Contains(s.logical, "timestamp-") }

func (s *shape) isMessage() bool {
	return s.kind == "record" || s.kind == "union" || s.logical == "duration" || s.isInstant()
}

func (p *protoGenerator) single(s shape) (string, error) {
	switch {
	case s.isInstant():
		return "google.protobuf.Timestamp", nil
	case s.isMessage():
		return p.message(s)
	case s.kind == "boolean":
		return "bool", nil
	case s.kind == "int":
		return "sint32", nil
	case s.kind == "long":
		return "int64", nil
	case s.kind == "float", s.kind == "double":
		return s.kind, nil
	case s.kind == "string", s.kind == "enum", s.logical == "decimal", s.logical == "uuid":
		return "string", nil
	case s.kind == "bytes", s.kind == "fixed":
		return "bytes", nil
	}
	return "", fmt.Errorf("the type %q is not known", s.kind)
}

// row writes a generated row, and returns what the table must have of it.
func (p *protoGenerator) row(dst []byte, want map[string]any) ([]byte, map[string]any, error) {
	root, err := p.g.shapeOf(p.g.root, "")
	if err != nil {
		return dst, nil, err
	}
	m := dynamicpb.NewMessage(p.root)
	if want, err = p.fill(m, root, want); err != nil {
		return dst, nil, err
	}
	dst, err = proto.MarshalOptions{}.MarshalAppend(dst, m)
	return dst, want, err
}

// fill sets a message's fields, and returns the value that has come of it.
func (p *protoGenerator) fill(m protoreflect.Message, s shape, v map[string]any) (map[string]any, error) {
	members, err := p.membersOf(s)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for i, member := range members {
		of := m.Descriptor().Fields().ByNumber(protoreflect.FieldNumber(i + 1))
		if out[member.name], err = p.set(m, of, member.shape, v[member.name]); err != nil {
			return nil, fmt.Errorf("field %s: %w", member.name, err)
		}
	}
	return out, nil
}

func (p *protoGenerator) set(m protoreflect.Message, of protoreflect.FieldDescriptor, s shape, v any) (any, error) {
	switch {
	case s.kind == "array":
		return p.list(m.Mutable(of).List(), s, v)
	case s.kind == "map":
		return p.entries(m.Mutable(of).Map(), s, v)
	case v == nil:
		return nil, nil
	}
	x, v, err := p.value(func() protoreflect.Value { return m.NewField(of) }, s, v)
	if err == nil {
		m.Set(of, x)
	}
	return v, err
}

func (p *protoGenerator) list(list protoreflect.List, s shape, v any) (any, error) {
	inner, err := p.g.inner(s)
	items, _ := v.([]any)
	out := []any{}
	for _, item := range items {
		var x protoreflect.Value
		if err == nil {
			x, item, err = p.value(list.NewElement, inner, item)
		}
		if err != nil {
			return nil, err
		}
		list.Append(x)
		out = append(out, item)
	}
	return out, err
}

func (p *protoGenerator) entries(entries protoreflect.Map, s shape, v any) (any, error) {
	inner, err := p.g.inner(s)
	have, _ := v.(map[string]any)
	out := map[string]any{}
	for key, item := range have {
		var x protoreflect.Value
		if err == nil {
			x, item, err = p.value(entries.NewValue, inner, item)
		}
		if err != nil {
			return nil, err
		}
		entries.Set(protoreflect.ValueOfString(key).MapKey(), x)
		out[key] = item
	}
	return out, err
}

// value makes a value that isn't null, nor a list or a map; fresh makes an empty one where it is a message. It also returns what comes of v.
func (p *protoGenerator) value(fresh func() protoreflect.Value, s shape, v any) (protoreflect.Value, any, error) {
	switch x := v.(type) {
	case time.Time:
		m := fresh()
		fields := m.Message().Descriptor().Fields()
		m.Message().Set(fields.ByName("seconds"), protoreflect.ValueOfInt64(x.Unix()))
		m.Message().Set(fields.ByName("nanos"), protoreflect.ValueOfInt32(int32(x.Nanosecond())))
		return m, v, nil
	case map[string]any:
		m := fresh()
		out, err := p.fill(m.Message(), s, x)
		return m, out, err
	case lake.Date:
		return protoreflect.ValueOfInt32(int32(x)), v, nil
	case int64:
		if s.logical == "time-millis" { // the column has microseconds
			return protoreflect.ValueOfInt32(int32(x / 1000)), v, nil
		}
		return protoreflect.ValueOfInt64(x), v, nil
	case bool, int32, float32, float64, string, []byte:
		return protoreflect.ValueOf(x), v, nil
	}
	return protoreflect.Value{}, nil, fmt.Errorf("a %T is no value of a column", v)
}
