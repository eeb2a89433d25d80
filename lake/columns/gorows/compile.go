package gorows

import (
	"encoding"
	"fmt"
	"math/big"
	"reflect"
	"time"

	"github.com/tributary-io/tributary/lake/columns"
)

// Plan makes rows of one Go type. It is immutable and safe for concurrent use.
type Plan struct {
	// Fields are the columns. For a struct these are its fields, for any other type one column with the name given to Compile.
	Fields []columns.Field
	// Partitions names the columns whose tags say "partition".
	Partitions []string

	pointer reflect.Type // *T: what Append takes
	hops    int          // pointers between *T and the value
	steps   []step
	width   int
}

// Options change what Compile makes of a type.
type Options struct {
	// Name is the column of a type that is not a struct.
	Name string
	// Nested keeps a struct as one column with the Name.
	Nested bool
	// Hints are the columns as an Avro schema declares them: comments, tags and types where the Go type leaves a choice.
	Hints []columns.Field
}

var (
	typeTime     = reflect.TypeFor[time.Time]()
	typeRat      = reflect.TypeFor[big.Rat]()
	typeInt      = reflect.TypeFor[big.Int]()
	typeDay      = reflect.TypeFor[columns.Day]()
	typeDuration = reflect.TypeFor[time.Duration]()
	typeTexter   = reflect.TypeFor[encoding.TextMarshaler]()
)

// Compile makes the plan for values of type t. It returns every problem that it finds.
func Compile(t reflect.Type, opts Options) (*Plan, []error) {
	p := &Plan{pointer: reflect.PointerTo(t)}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
		p.hops++
	}
	c := &compiler{}
	if isStruct(t) && !opts.Nested {
		p.Fields, p.steps = c.structFields("", t, opts.Hints, true)
		p.Partitions = c.partitions
	} else {
		name := opts.Name
		if name == "" {
			name = "value"
		}
		f := columns.Field{Name: name}
		p.steps = []step{c.field(name, t, tag{}, hintOf(opts.Hints, name), &f)}
		p.Fields = []columns.Field{f}
	}
	p.width = number(p.steps, 0)
	if len(c.errs) == 0 {
		c.errs = (&columns.Schema{Fields: p.Fields}).Check()
	}
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return p, nil
}

// isStruct reports whether t is a struct with fields of its own meaning, not one that stands for a single value.
func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != typeTime && t != typeRat && t != typeInt && !marshalsText(t)
}

func marshalsText(t reflect.Type) bool {
	return t.Implements(typeTexter) || reflect.PointerTo(t).Implements(typeTexter)
}

func hintOf(hints []columns.Field, name string) *columns.Field {
	for i := range hints {
		if hints[i].Name == name {
			return &hints[i]
		}
	}
	return nil
}

type compiler struct {
	errs       []error
	partitions []string
	stack      []reflect.Type // structs being compiled, to find recursion
}

func (c *compiler) fail(path, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("field %s: %s", path, fmt.Sprintf(format, args...)))
}

// structFields compiles the fields of a struct, embedded ones included.
func (c *compiler) structFields(path string, t reflect.Type, hints []columns.Field, top bool) (fields []columns.Field, steps []step) {
	for _, on := range c.stack {
		if on == t {
			c.fail(path, "type %v contains itself: a table has no recursive types; leave the field out with `lake:\"-\"`", t)
			return nil, nil
		}
	}
	c.stack = append(c.stack, t)
	defer func() { c.stack = c.stack[:len(c.stack)-1] }()
	for _, m := range c.members(path, t) {
		at := columns.Join(path, m.name)
		hint := hintOf(hints, m.name)
		f := columns.Field{Name: m.name, NotNull: m.tag.notNull, Comment: m.tag.comment}
		s := c.field(at, m.typ, m.tag, hint, &f)
		f.Metadata = mergeMetadata(hint, m.tag.metadata)
		if f.Comment == "" && hint != nil {
			f.Comment = hint.Comment
		}
		if m.tag.partition {
			c.partition(at, top, &f)
		}
		fields = append(fields, f)
		steps = append(steps, m.reach(s))
	}
	return fields, steps
}

func mergeMetadata(hint *columns.Field, own map[string]any) map[string]any {
	if hint == nil || len(hint.Metadata) == 0 {
		return own
	}
	out := make(map[string]any, len(hint.Metadata)+len(own))
	for k, v := range hint.Metadata {
		out[k] = v
	}
	for k, v := range own {
		out[k] = v
	}
	return out
}

func (c *compiler) partition(path string, top bool, f *columns.Field) {
	switch {
	case !top:
		c.fail(path, "only a column at the top can be a partition column")
	case f.Type.Kind == columns.Struct || f.Type.Kind == columns.List || f.Type.Kind == columns.Map || f.Type.Kind == columns.Binary:
		c.fail(path, "a %s can't be a partition column", &f.Type)
	default:
		c.partitions = append(c.partitions, f.Name)
	}
}

// field compiles one value of type t into a column, sets the column's type and returns the step.
func (c *compiler) field(path string, t reflect.Type, tg tag, hint *columns.Field, f *columns.Field) step {
	if t.Kind() == reflect.Pointer {
		sub := c.field(path, t.Elem(), tg, hint, f)
		return step{op: opPointer, path: path, sub: []step{sub}}
	}
	s := step{path: path, typ: t}
	if !c.special(path, t, tg, hint, f, &s) && !c.scalar(t, f, &s) {
		c.nested(path, t, hint, f, &s)
	}
	if tg.decimal && f.Type.Kind != columns.Decimal && f.Type.Kind != 0 {
		c.fail(path, "decimal(…) is for integers, big.Int, big.Rat and unscaled bytes, not for %v", t)
	}
	c.follow(hint, f, &s)
	return s
}

// follow widens or reinterprets a scalar as the Avro schema declares it.
func (c *compiler) follow(hint *columns.Field, f *columns.Field, s *step) {
	if hint == nil || hint.Type.Kind == f.Type.Kind {
		return
	}
	from, to := f.Type.Kind, hint.Type.Kind
	switch {
	case from == columns.Timestamp && to == columns.Date:
		s.op = opTimeDate
	case from == columns.Timestamp && to == columns.TimestampNTZ:
		s.op = opTimeLocal
	case from == columns.Integer && to == columns.Date:
	case from == columns.Long && (to == columns.Timestamp || to == columns.TimestampNTZ) && s.op == opInt64:
		return // the unit of a bare integer isn't known: it stays a number
	case s.op == opInt8 && to == columns.Integer:
		s.op = opInt8As32
	case s.op == opInt16 && to == columns.Integer:
		s.op = opInt16As32
	case s.op == opInt32 && to == columns.Long:
		s.op = opInt32As64
	case s.op == opFloat32 && to == columns.Double:
		s.op = opFloat32As64
	default:
		return
	}
	f.Type.Kind = to
}

// special handles the types that stand for one value, whatever their kind.
func (c *compiler) special(path string, t reflect.Type, tg tag, hint *columns.Field, f *columns.Field, s *step) bool {
	switch {
	case t == typeTime:
		f.Type.Kind, s.op = columns.Timestamp, opTime
		if tg.date {
			f.Type.Kind, s.op = columns.Date, opTimeDate
		}
	case t == typeDay:
		f.Type.Kind, s.op = columns.Date, opInt32
	case t == typeDuration:
		f.Type.Kind, s.op = columns.Long, opDuration
	case t == typeRat, t == typeInt, tg.decimal && intSize(t.Kind()) > 0,
		isBytes(t) && (tg.decimal || hint != nil && hint.Type.Kind == columns.Decimal):
		c.decimal(path, t, tg, hint, f, s)
	case t.Kind() == reflect.Array && t.Len() == 16 && t.Elem().Kind() == reflect.Uint8:
		f.Type.Kind, s.op = columns.String, opUUID
	case marshalsText(t):
		f.Type.Kind, s.op = columns.String, opText
	case isBytes(t):
		f.Type.Kind, s.op = columns.Binary, opBytes
		if tg.text || hint != nil && hint.Type.Kind == columns.String {
			f.Type.Kind, s.op = columns.String, opByteText
		}
	case t.Kind() == reflect.Array && t.Elem().Kind() == reflect.Uint8:
		f.Type.Kind, s.op, s.n = columns.Binary, opByteArray, t.Len()
	default:
		return false
	}
	return true
}

func (c *compiler) decimal(path string, t reflect.Type, tg tag, hint *columns.Field, f *columns.Field, s *step) {
	s.precision, s.scale = tg.precision, tg.scale
	switch {
	case tg.decimal:
	case hint != nil && hint.Type.Kind == columns.Decimal:
		s.precision, s.scale = hint.Type.Precision, hint.Type.Scale
	case t == typeInt:
		s.precision = columns.MaxDecimalPrecision
	default:
		c.fail(path, "a big.Rat needs its precision and scale: add the tag option decimal(p,s), or give the Avro schema that declares it")
	}
	f.Type = columns.Type{Kind: columns.Decimal, Precision: s.precision, Scale: s.scale}
	switch {
	case t == typeRat:
		s.op = opRat
	case t == typeInt:
		s.op = opBigInt
	case isBytes(t):
		s.op = opBytesDecimal
	default:
		s.op, s.n = opIntDecimal, intSize(t.Kind())
	}
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func intSize(k reflect.Kind) int {
	switch k {
	case reflect.Int8:
		return 1
	case reflect.Int16:
		return 2
	case reflect.Int32:
		return 4
	case reflect.Int64, reflect.Int:
		return 8
	}
	return 0
}

var scalars = map[reflect.Kind]struct {
	kind columns.Kind
	op   op
}{
	reflect.Bool:    {columns.Boolean, opBool},
	reflect.Int8:    {columns.Byte, opInt8},
	reflect.Int16:   {columns.Short, opInt16},
	reflect.Int32:   {columns.Integer, opInt32},
	reflect.Int64:   {columns.Long, opInt64},
	reflect.Int:     {columns.Long, opInt64},
	reflect.Uint8:   {columns.Short, opUint8},
	reflect.Uint16:  {columns.Integer, opUint16},
	reflect.Uint32:  {columns.Long, opUint32},
	reflect.Uint64:  {columns.Long, opUint64},
	reflect.Uint:    {columns.Long, opUint64},
	reflect.Float32: {columns.Float, opFloat32},
	reflect.Float64: {columns.Double, opFloat64},
	reflect.String:  {columns.String, opString},
}

func (c *compiler) scalar(t reflect.Type, f *columns.Field, s *step) bool {
	e, ok := scalars[t.Kind()]
	if ok {
		f.Type.Kind, s.op = e.kind, e.op
	}
	return ok
}

// nested handles structs, slices, arrays and maps, and refuses the rest.
func (c *compiler) nested(path string, t reflect.Type, hint *columns.Field, f *columns.Field, s *step) {
	switch t.Kind() {
	case reflect.Struct:
		var hints []columns.Field
		if hint != nil {
			hints = hint.Type.Fields
		}
		f.Type.Kind, s.op = columns.Struct, opStruct
		f.Type.Fields, s.sub = c.structFields(path, t, hints, false)
	case reflect.Slice, reflect.Array:
		f.Type.Kind, s.op = columns.List, opSlice
		if t.Kind() == reflect.Array {
			s.op, s.n = opArray, t.Len()
		}
		s.size = t.Elem().Size()
		c.element(columns.Join(path, "element"), t.Elem(), hint, f, s)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			c.fail(path, "map keys must be strings, not %v: a column's map has string keys", t.Key())
			return
		}
		f.Type.Kind, s.op = columns.Map, opMap
		c.element(columns.Join(path, "value"), t.Elem(), hint, f, s)
	default:
		c.fail(path, "a %v (%v) can't be stored: use a concrete type, or leave it out with `lake:\"-\"`", t.Kind(), t)
	}
}

func (c *compiler) element(path string, t reflect.Type, hint *columns.Field, f *columns.Field, s *step) {
	name := "element"
	if f.Type.Kind == columns.Map {
		name = "value"
	}
	var elemHint *columns.Field
	if hint != nil {
		elemHint = hint.Type.Elem
	}
	f.Type.Elem = &columns.Field{Name: name}
	s.sub = []step{c.field(path, t, tag{}, elemHint, f.Type.Elem)}
}

// number gives each step its column and returns the next free number.
func number(steps []step, at int) int {
	for i := range steps {
		s := &steps[i]
		s.col = at
		switch s.op {
		case opPointer:
			at = number(s.sub, at)
		case opStruct, opSlice, opArray:
			at = number(s.sub, at+1)
		case opMap:
			at = number(s.sub, at+2)
		default:
			at++
		}
	}
	return at
}
