package avrorows

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/sink"
)

// Transcoder appends values of another format to the columns of a declared schema. Each value is written in Avro's binary form of that schema
// first, so that unions, defaults, decimals and nulls have one implementation. What the schema doesn't declare is passed over; a field that the
// value lacks gets its default, or is null where it may be. It is safe for concurrent use.
type Transcoder[V Value[V]] struct {
	declared *Declared
	plan     *Plan
	fields   map[*node]map[string]int // of records: field by name and alias
	defaults map[*field][]byte
	states   sync.Pool
}

// transcoding is the state of one value.
type transcoding[V Value[V]] struct {
	*Transcoder[V]
	buf   []byte
	text  []byte
	slots []slot[V]
}

type slot[V any] struct {
	v     V
	found bool
}

// NewTranscoder makes a transcoder for a declared schema.
func NewTranscoder[V Value[V]](d *Declared) (*Transcoder[V], error) {
	plan, err := d.plan(d.root)
	if err != nil {
		return nil, err
	}
	t := &Transcoder[V]{declared: d, plan: plan, fields: map[*node]map[string]int{}, defaults: map[*field][]byte{}}
	t.states.New = func() any { return &transcoding[V]{Transcoder: t} }
	return t, t.prepare(d.root)
}

// prepare looks at all records of the schema. Declare has refused cycles.
func (t *Transcoder[V]) prepare(n *node) (err error) {
	for _, b := range n.branches {
		err = errors.Join(err, t.prepare(b))
	}
	if n.items != nil {
		err = errors.Join(err, t.prepare(n.items))
	}
	if n.kind != "record" || t.fields[n] != nil {
		return err
	}
	byName := map[string]int{}
	t.fields[n] = byName
	for i := range n.fields {
		for _, alias := range n.fields[i].aliases {
			byName[alias] = i
		}
	}
	for i := range n.fields {
		f := &n.fields[i]
		byName[f.name] = i
		if f.hasDefault {
			data, e := encodeDefault(nil, f.node, f.def)
			t.defaults[f], err = data, errors.Join(err, e)
		}
		err = errors.Join(err, t.prepare(f.node))
	}
	return err
}

// Append writes one value into the columns from number first on. A *sink.RowError says what doesn't fit; the caller rolls back.
func (t *Transcoder[V]) Append(b *columns.Builder, first int, v V) error {
	s := t.states.Get().(*transcoding[V])
	defer t.states.Put(s)
	var err error
	s.slots = s.slots[:0]
	if s.buf, err = s.value(s.buf[:0], t.declared.root, v); err != nil {
		var at *fieldError
		if errors.As(err, &at) {
			return &sink.RowError{Field: at.path, Err: at.err}
		}
		return &sink.RowError{Err: err}
	}
	return t.plan.Append(b, first, s.buf)
}

// fieldError is an error with the path of the field, which grows on the way out.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }

func inField(name string, err error) error {
	if at, ok := err.(*fieldError); ok {
		at.path = columns.Join(name, at.path)
		return at
	}
	return &fieldError{name, err}
}

func misfit(n *node, kind ValueKind) error {
	return fmt.Errorf("%s is not %s, which the declared schema has here", kind, n.describe())
}

// value writes a value of a node.
func (t *transcoding[V]) value(dst []byte, n *node, v V) ([]byte, error) {
	kind := v.Kind()
	if n.kind == "union" {
		return t.union(dst, n, v, kind)
	}
	if n.kind == "null" {
		return dst, nil
	}
	if kind == NullValue {
		return nil, errors.New("null, but the declared schema takes none here")
	}
	switch n.kind {
	case "record":
		if n.logical == "" && kind == ObjectValue {
			return t.record(dst, n, v)
		}
	case "array":
		if kind == ListValue {
			return t.array(dst, n, v)
		}
	case "map":
		if kind == ObjectValue {
			return t.mapping(dst, n, v)
		}
	case "boolean":
		if kind == BoolValue {
			if v.Bool() {
				return append(dst, 1), nil
			}
			return append(dst, 0), nil
		}
	case "int", "long":
		i, err := t.integer(n, v, kind)
		return binary.AppendVarint(dst, i), err
	case "float", "double":
		return t.float(dst, n, v, kind)
	case "enum":
		return t.enum(dst, n, v, kind)
	case "string":
		if kind == TextValue {
			return t.lengthed(dst, v)
		}
	case "bytes", "fixed":
		return t.bytes(dst, n, v, kind)
	}
	return nil, misfit(n, kind)
}

func (t *transcoding[V]) lengthed(dst []byte, v V) (_ []byte, err error) {
	if t.text, err = v.AppendText(t.text[:0]); err != nil {
		return nil, err
	}
	return append(binary.AppendVarint(dst, int64(len(t.text))), t.text...), nil
}

// union writes the branch that fits: the only one that isn't null, or the one that takes values of this kind. Where several do, the value says
// which one as Avro's JSON does: an object with the branch's name as its only key.
func (t *transcoding[V]) union(dst []byte, n *node, v V, kind ValueKind) ([]byte, error) {
	chosen, count := -1, 0
	for i, b := range n.branches {
		switch {
		case kind == NullValue && b.kind == "null":
			return binary.AppendVarint(dst, int64(i)), nil
		case kind != NullValue && b.kind != "null" && takes(b, kind):
			if count == 0 {
				chosen = i
			}
			count++
		}
	}
	if kind == NullValue {
		return nil, errors.New("null, but the declared schema takes none here")
	}
	present := n.present()
	if len(present) == 1 {
		chosen = slices.Index(n.branches, present[0])
	} else if named, inner := t.named(n, v, kind); named >= 0 {
		return t.value(binary.AppendVarint(dst, int64(named)), n.branches[named], inner)
	} else if count != 1 {
		return nil, fmt.Errorf("%s fits %d branches of %s: say which, as in {\"branch\": value}", kind, count, n.describe())
	}
	return t.value(binary.AppendVarint(dst, int64(chosen)), n.branches[chosen], v)
}

// named finds the branch that an object with one member names; -1 if it names none.
func (t *transcoding[V]) named(n *node, v V, kind ValueKind) (branch int, inner V) {
	branch = -1
	if kind != ObjectValue {
		return branch, inner
	}
	names, present, members := memberNames(n.present()), n.present(), 0
	_ = v.Entries(func(key []byte, member V) (bool, error) {
		members++
		for i, b := range present {
			if string(key) == names[i] || string(key) == b.name {
				branch, inner = slices.Index(n.branches, b), member
			}
		}
		return true, nil
	})
	if members != 1 {
		branch = -1
	}
	return branch, inner
}

// takes tells whether a node has values of a kind at all.
func takes(n *node, kind ValueKind) bool {
	switch n.kind {
	case "boolean":
		return kind == BoolValue
	case "int", "long":
		return kind == IntValue || n.logical != "" && (kind == TextValue || kind == InstantValue)
	case "float", "double":
		return kind == FloatValue || kind == IntValue
	case "string", "enum":
		return kind == TextValue
	case "bytes":
		return kind == BytesValue || n.logical == "decimal" && (kind == FloatValue || kind == IntValue)
	case "fixed":
		return kind == BytesValue || n.logical == "duration" && kind == ObjectValue || n.logical == "decimal" && (kind == FloatValue || kind == IntValue)
	case "array":
		return kind == ListValue
	}
	return kind == ObjectValue // record, map
}

func (t *transcoding[V]) record(dst []byte, n *node, v V) ([]byte, error) {
	byName := t.fields[n]
	from := len(t.slots)
	t.slots = append(t.slots, make([]slot[V], len(n.fields))...)
	defer func() { t.slots = t.slots[:from] }()
	err := v.Entries(func(key []byte, member V) (bool, error) {
		i, ok := byName[string(key)]
		if ok {
			t.slots[from+i] = slot[V]{member, true}
		}
		return ok, nil
	})
	if err != nil {
		return nil, err
	}
	for i := range n.fields {
		f := &n.fields[i]
		if s := t.slots[from+i]; s.found {
			if dst, err = t.value(dst, f.node, s.v); err != nil {
				return nil, inField(f.name, err)
			}
			continue
		}
		if data, ok := t.defaults[f]; ok {
			dst = append(dst, data...)
			continue
		}
		null := slices.IndexFunc(f.node.branches, func(b *node) bool { return b.kind == "null" })
		switch {
		case null >= 0:
			dst = binary.AppendVarint(dst, int64(null))
		case f.node.kind != "null":
			return nil, inField(f.name, errors.New("missing, and the declared schema has no default for it"))
		}
	}
	return dst, nil
}

// array writes a block for each element: how many there are isn't known before.
func (t *transcoding[V]) array(dst []byte, n *node, v V) ([]byte, error) {
	i := 0
	err := v.Items(func(item V) (err error) {
		if dst, err = t.value(binary.AppendVarint(dst, 1), n.items, item); err != nil {
			return inField(fmt.Sprint("element ", i), err)
		}
		i++
		return nil
	})
	return append(dst, 0), err
}

func (t *transcoding[V]) mapping(dst []byte, n *node, v V) ([]byte, error) {
	err := v.Entries(func(key []byte, member V) (_ bool, err error) {
		dst = binary.AppendVarint(dst, 1)
		dst = append(binary.AppendVarint(dst, int64(len(key))), key...)
		name := string(key)
		if dst, err = t.value(dst, n.items, member); err != nil {
			return true, inField(name, err)
		}
		return true, nil
	})
	return append(dst, 0), err
}

func (t *transcoding[V]) float(dst []byte, n *node, v V, kind ValueKind) (_ []byte, err error) {
	var f float64
	switch kind {
	case FloatValue, IntValue:
		var ok bool
		if f, ok = v.Float(); !ok {
			return nil, fmt.Errorf("the number is out of range of a %s", n.kind)
		}
	case TextValue: // as JSON has to write what it has no number for
		if t.text, err = v.AppendText(t.text[:0]); err != nil {
			return nil, err
		}
		switch string(t.text) {
		case "NaN":
			f = math.NaN()
		case "Infinity":
			f = math.Inf(1)
		case "-Infinity":
			f = math.Inf(-1)
		default:
			return nil, misfit(n, kind)
		}
	default:
		return nil, misfit(n, kind)
	}
	if n.kind == "float" {
		if math.Abs(f) > math.MaxFloat32 && !math.IsInf(f, 0) {
			return nil, fmt.Errorf("%v is out of range of a float", f)
		}
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(f))), nil
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f)), nil
}

func (t *transcoding[V]) enum(dst []byte, n *node, v V, kind ValueKind) (_ []byte, err error) {
	if kind != TextValue {
		return nil, misfit(n, kind)
	}
	if t.text, err = v.AppendText(t.text[:0]); err != nil {
		return nil, err
	}
	i := slices.Index(n.symbols, string(t.text))
	if i < 0 && n.hasEnumDefault {
		i = slices.Index(n.symbols, n.enumDefault)
	}
	if i < 0 {
		return nil, fmt.Errorf("%q is none of the symbols %v", t.text, n.symbols)
	}
	return binary.AppendVarint(dst, int64(i)), nil
}

// bytes writes bytes and fixed, and what Avro puts into them: decimals, UUIDs, durations.
func (t *transcoding[V]) bytes(dst []byte, n *node, v V, kind ValueKind) (_ []byte, err error) {
	switch {
	case n.logical == "decimal":
		return t.decimal(dst, n, v, kind)
	case n.kind == "fixed" && n.logical == "duration" && kind == ObjectValue:
		return t.duration(dst, v)
	}
	var data []byte
	switch kind {
	case BytesValue:
		data = v.Bytes()
	case TextValue:
		if t.text, err = v.AppendText(t.text[:0]); err != nil {
			return nil, err
		}
		if n.kind == "fixed" && n.logical == "uuid" && n.size == 16 && len(t.text) == 36 {
			return appendParsedUUID(dst, t.text)
		}
		if data, err = base64Bytes(t.text); err != nil {
			return nil, fmt.Errorf("not base64, as bytes are written in texts: %w", err)
		}
	default:
		return nil, misfit(n, kind)
	}
	if n.kind == "bytes" {
		return append(binary.AppendVarint(dst, int64(len(data))), data...), nil
	}
	if len(data) != n.size {
		return nil, fmt.Errorf("%d bytes, but the declared fixed has %d", len(data), n.size)
	}
	return append(dst, data...), nil
}

// base64Bytes takes the usual and the URL alphabet, with and without padding.
func base64Bytes(text []byte) ([]byte, error) {
	for len(text) > 0 && text[len(text)-1] == '=' {
		text = text[:len(text)-1]
	}
	if slices.ContainsFunc(text, func(c byte) bool { return c == '-' || c == '_' }) {
		return base64.RawURLEncoding.AppendDecode(nil, text)
	}
	return base64.RawStdEncoding.AppendDecode(nil, text)
}

func appendParsedUUID(dst, text []byte) ([]byte, error) {
	var id [16]byte
	digits := 0
	for i, c := range text {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return nil, fmt.Errorf("%q is not a UUID", text)
			}
			continue
		}
		d := slices.Index([]byte("0123456789abcdef"), c|0x20)
		if d < 0 || c < '0' {
			return nil, fmt.Errorf("%q is not a UUID", text)
		}
		id[digits/2] = id[digits/2]<<4 | byte(d)
		digits++
	}
	return append(dst, id[:]...), nil
}

// duration writes the three little-endian numbers of Avro's duration.
func (t *transcoding[V]) duration(dst []byte, v V) ([]byte, error) {
	var parts [3]uint32
	err := v.Entries(func(key []byte, member V) (bool, error) {
		i := slices.Index([]string{"months", "days", "millis"}, string(key))
		if i < 0 {
			return false, nil
		}
		n, ok := int64(0), false
		if k := member.Kind(); k == IntValue || k == FloatValue {
			n, ok = member.Int()
		}
		if !ok || n < 0 || n > math.MaxUint32 {
			return true, fmt.Errorf("%s of a duration is not a number of 32 bits", key)
		}
		parts[i] = uint32(n)
		return true, nil
	})
	for _, p := range parts {
		dst = binary.LittleEndian.AppendUint32(dst, p)
	}
	return dst, err
}
