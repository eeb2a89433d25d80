package avrorows

import (
	"fmt"
	"slices"

	"github.com/tributary-io/tributary/lake/columns"
)

// Plan reads the records of one writer's schema into the declared columns. It is immutable and safe for concurrent use.
type Plan struct {
	steps []step
	width int
}

// MismatchError says why records of a writer's schema can't be read as the declared one.
type MismatchError struct {
	Path             string
	Writer, Declared string
	Reason           string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("field %s: the writer's %s can't be read as the declared %s: %s", e.Path, e.Writer, e.Declared, e.Reason)
}

// Plan resolves a writer's schema against the declared one.
func (d *Declared) Plan(writer Text) (*Plan, error) {
	w, err := parse(writer)
	if err != nil {
		return nil, err
	}
	return d.plan(w)
}

func (d *Declared) plan(w *node) (*Plan, error) {
	r := &resolver{opts: d.opts, skips: map[*node]*step{}}
	if d.root.kind == "record" {
		p := d.present(w)
		if p.kind != "record" {
			return nil, &MismatchError{"(the whole value)", w.describe(), d.root.describe(), "it is not a record"}
		}
		steps, err := r.record("", p, d.root, &columns.Type{Kind: columns.Struct, Fields: d.Fields}, 0)
		if err != nil {
			return nil, err
		}
		if p != w {
			steps = []step{{op: opRootUnion, path: "(the whole value)", n: slices.Index(w.branches, p), sub: steps}}
		}
		return &Plan{steps: steps, width: (&columns.Schema{Fields: d.Fields}).Width()}, nil
	}
	s, err := r.value(d.name, w, d.root, &d.Fields[0].Type, 0)
	if err != nil {
		return nil, err
	}
	return &Plan{steps: []step{s}, width: d.Fields[0].Type.Width()}, nil
}

// present looks through a writer's root union to the record that the declared one resolves to.
func (d *Declared) present(w *node) *node {
	if w.kind != "union" {
		return w
	}
	for _, b := range w.branches {
		if b.kind == "record" && (short(b.name) == short(d.root.name) || len(w.present()) == 1) {
			return b
		}
	}
	return w
}

type resolver struct {
	opts  Options
	skips map[*node]*step // of records, which may be recursive
}

// record resolves the fields of two records; the columns of the declared fields start at number col.
func (r *resolver) record(path string, w, d *node, t *columns.Type, col int) ([]step, error) {
	cols := make([]int, len(d.fields)) // first column of each declared field, -1 for one without
	types := make([]*columns.Type, len(d.fields))
	for i, k := 0, 0; i < len(d.fields); i++ {
		cols[i] = -1
		if !d.fields[i].node.isNull() {
			cols[i], types[i] = col, &t.Fields[k].Type
			col += types[i].Width()
			k++
		}
	}
	taken := make([]bool, len(d.fields))
	var steps []step
	for i := range w.fields {
		wf := &w.fields[i]
		at := matchField(d.fields, wf.name, w)
		if at < 0 || cols[at] < 0 {
			steps = append(steps, *r.skip(wf.node))
			if at >= 0 {
				taken[at] = true
			}
			continue
		}
		p := columns.Join(path, d.fields[at].name)
		if taken[at] {
			return nil, &MismatchError{p, wf.node.describe(), d.fields[at].node.describe(), "two of the writer's fields match it by name and alias"}
		}
		taken[at] = true
		s, err := r.value(p, wf.node, d.fields[at].node, types[at], cols[at])
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	for i := range d.fields {
		if taken[i] || cols[i] < 0 {
			continue
		}
		s, err := r.defaulted(columns.Join(path, d.fields[i].name), &d.fields[i], types[i], cols[i])
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// matchField finds the declared field that a writer's field is read into: by name, else by an alias of the declared field
// whose own name the writer doesn't have.
func matchField(declared []field, name string, w *node) int {
	for i := range declared {
		if declared[i].name == name {
			return i
		}
	}
	for i := range declared {
		if slices.Contains(declared[i].aliases, name) && !hasField(w, declared[i].name) {
			return i
		}
	}
	return -1
}

func hasField(w *node, name string) bool {
	return slices.ContainsFunc(w.fields, func(f field) bool { return f.name == name })
}

// defaulted fills a declared field that the writer lacks.
func (r *resolver) defaulted(path string, f *field, t *columns.Type, col int) (step, error) {
	if !f.hasDefault {
		return step{}, &MismatchError{path, "record", f.node.describe(), "the writer lacks the field and the declared schema has no default for it"}
	}
	data, err := encodeDefault(nil, f.node, f.def)
	if err != nil {
		return step{}, fmt.Errorf("field %s: %w", path, err)
	}
	s, err := r.value(path, f.node, f.node, t, col)
	return step{op: opDefault, col: col, path: path, data: data, sub: []step{s}}, err
}

// value resolves one value of the writer's w as the declared d into column number col of type t.
func (r *resolver) value(path string, w, d *node, t *columns.Type, col int) (step, error) {
	if w.kind == "union" {
		s := step{op: opUnion, col: col, path: path}
		for _, b := range w.branches {
			sub, err := r.value(path, b, d, t, col)
			if err != nil {
				sub = step{op: opFail, path: path, err: err} // only an error once such a branch is written
			}
			s.sub = append(s.sub, sub)
		}
		if allFail(s.sub) {
			return s, s.sub[0].err
		}
		return s, nil
	}
	if d.kind != "union" {
		return r.single(path, w, d, t, col)
	}
	present := d.present()
	if len(present) == 1 && w.kind != "null" {
		return r.single(path, w, present[0], t, col)
	}
	b := matchBranch(w, d)
	if b < 0 {
		return step{}, &MismatchError{path, w.describe(), d.describe(), "no branch of the declared union matches"}
	}
	if d.branches[b].kind == "null" {
		return step{op: opNull, col: col, path: path}, nil
	}
	return r.member(path, w, d.branches[b], slices.Index(present, d.branches[b]), t, col)
}

func allFail(subs []step) bool {
	for i := range subs {
		if subs[i].op != opFail {
			return false
		}
	}
	return len(subs) > 0
}

// member resolves a value into one member of a union's struct; the others become null.
func (r *resolver) member(path string, w, d *node, k int, t *columns.Type, col int) (step, error) {
	s := step{op: opMember, col: col, path: path}
	at := col + 1
	var inner step
	for i := range t.Fields {
		if i == k {
			var err error
			if inner, err = r.single(columns.Join(path, t.Fields[i].Name), w, d, &t.Fields[i].Type, at); err != nil {
				return s, err
			}
		} else {
			s.others = append(s.others, at)
		}
		at += t.Fields[i].Type.Width()
	}
	s.sub = []step{inner}
	return s, nil
}

// matchBranch picks the branch of the declared union that a writer's value is read into: the same type and full name or alias,
// then the same short name, then a promotion. It returns -1 if there is none.
func matchBranch(w, d *node) int {
	for i, b := range d.branches {
		if b.kind == w.kind && sizeFits(w, b) && (!isNamed(w) || w.name == b.name || slices.Contains(b.aliases, w.name)) {
			return i
		}
	}
	for i, b := range d.branches {
		if b.kind == w.kind && isNamed(w) && sizeFits(w, b) && short(w.name) == short(b.name) {
			return i
		}
	}
	for i, b := range d.branches {
		if promotes(w.kind, b.kind) {
			return i
		}
	}
	return -1
}

func sizeFits(w, d *node) bool { return w.kind != "fixed" || w.size == d.size }

func promotes(w, d string) bool {
	switch w {
	case "int":
		return d == "long" || d == "float" || d == "double"
	case "long":
		return d == "float" || d == "double"
	case "float":
		return d == "double"
	case "string":
		return d == "bytes"
	case "bytes":
		return d == "string"
	}
	return false
}

// single resolves two nodes that are no unions.
func (r *resolver) single(path string, w, d *node, t *columns.Type, col int) (step, error) {
	mismatch := func(reason string) (step, error) {
		return step{}, &MismatchError{path, w.describe(), d.describe(), reason}
	}
	s := step{col: col, path: path}
	if w.kind != d.kind && !promotes(w.kind, d.kind) {
		return mismatch("Avro has no promotion from one to the other")
	}
	var err error
	switch d.kind {
	case "record":
		s.op = opRecord
		s.sub, err = r.record(path, w, d, t, col+1)
		return s, err
	case "array", "map":
		s.op, col = opArray, col+1
		if d.kind == "map" {
			s.op, col = opMap, col+1
		}
		sub, err := r.value(columns.Join(path, t.Elem.Name), w.items, d.items, &t.Elem.Type, col)
		s.sub = []step{sub}
		s.weightless = weightless(w.items, nil)
		return s, err
	case "enum":
		return r.enum(s, w, d, mismatch)
	case "fixed":
		if w.size != d.size {
			return mismatch("the sizes differ")
		}
		s.n = w.size
	}
	if (w.logical == "decimal") && (d.logical == "decimal") && (w.precision != d.precision || w.scale != d.scale) {
		return mismatch("precision or scale differ")
	}
	return s, leaf(&s, w, d, t)
}

func (r *resolver) enum(s step, w, d *node, mismatch func(string) (step, error)) (step, error) {
	s.op = opEnum
	any := false
	for _, sym := range w.symbols {
		switch {
		case slices.Contains(d.symbols, sym):
			s.symbols = append(s.symbols, []byte(sym))
			any = true
		case d.hasEnumDefault:
			s.symbols = append(s.symbols, []byte(d.enumDefault))
			any = true
		default:
			s.symbols = append(s.symbols, nil)
		}
	}
	if !any {
		return mismatch("no symbol is in both, and there is no default symbol")
	}
	return s, nil
}

// units are the timestamps' and times' units in fractions of a second.
var units = map[string]int64{"timestamp-millis": 1e3, "timestamp-micros": 1e6, "timestamp-nanos": 1e9, "local-timestamp-millis": 1e3,
	"local-timestamp-micros": 1e6, "local-timestamp-nanos": 1e9, "time-millis": 1e3, "time-micros": 1e6}

// leaf sets the operation that reads the writer's scalar into the declared column.
func leaf(s *step, w, d *node, t *columns.Type) error {
	s.narrow = w.kind == "int"
	switch d.kind {
	case "boolean":
		s.op = opBool
	case "int":
		s.op = opInt
		if t.Kind == columns.Long { // time-millis
			s.op = opLong
			setUnit(s, w, d)
		}
	case "long":
		s.op = opLong
		setUnit(s, w, d)
	case "float", "double":
		s.op = floatOps[w.kind+" "+d.kind]
	case "string":
		s.op = opString
	case "bytes":
		s.op = opBytes
		if t.Kind == columns.Decimal {
			s.op, s.precision = opDecimal, t.Precision
		}
	case "fixed":
		s.op = fixedOp(t)
		s.precision = t.Precision
	}
	return nil
}

var floatOps = map[string]op{"int float": opLongFloat, "long float": opLongFloat, "float float": opFloat, "int double": opLongDouble,
	"long double": opLongDouble, "float double": opFloatDouble, "double double": opDouble}

func fixedOp(t *columns.Type) op {
	switch t.Kind {
	case columns.Decimal:
		return opFixedDecimal
	case columns.String:
		return opFixedUUID
	case columns.Struct:
		return opDuration
	}
	return opFixed
}

// setUnit makes the step bring the value to microseconds: by the writer's unit where it declares one, else by the declared.
func setUnit(s *step, w, d *node) {
	unit, ok := units[d.logical]
	if !ok {
		return
	}
	if u, ok := units[w.logical]; ok {
		unit = u
	}
	switch unit {
	case 1e3:
		s.op = opMillis
	case 1e9:
		s.op = opNanos
	}
}

// weightless reports whether values of the node may take no bytes, so that a count alone could make endless work.
func weightless(n *node, stack []*node) bool {
	switch n.kind {
	case "null":
		return true
	case "fixed":
		return n.size == 0
	case "record":
		if slices.Contains(stack, n) {
			return false
		}
		for i := range n.fields {
			if !weightless(n.fields[i].node, append(stack, n)) {
				return false
			}
		}
		return true
	}
	return false
}
