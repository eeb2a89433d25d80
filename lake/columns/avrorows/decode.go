package avrorows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/sink"
)

type op uint8

const (
	opBool op = iota
	opInt
	opLong
	opMillis // long or int in ms to µs
	opNanos  // long or int in ns to µs
	opLongFloat
	opLongDouble
	opFloat
	opFloatDouble
	opDouble
	opString
	opBytes
	opDecimal
	opFixed
	opFixedDecimal
	opFixedUUID
	opDuration
	opEnum
	opUnion
	opNull
	opRecord
	opArray
	opMap
	opMember
	opDefault
	opFail
	opRootUnion
	opSkipFixed
	opSkipLong
	opSkipInt
	opSkipEnum
	opSkipBytes
	opSkipRecord
	opSkipArray
	opSkipMap
	opSkipUnion
)

// step reads one value of the writer and appends it to a column, or passes over it.
type step struct {
	op         op
	narrow     bool // the writer's number is an int: 32 bits
	weightless bool // elements may take no bytes
	col        int  // pre-order number, relative to the plan's first column
	n          int  // size of a fixed; branch of a root union
	precision  int
	sub        []step
	next       []*step // of skips, which may be cyclic
	others     []int   // columns of the other members of a union
	symbols    [][]byte
	data       []byte // default
	err        error  // opFail
	path       string
}

// decoder is one pass of a plan over one record.
type decoder struct {
	buf   []byte
	pos   int
	b     *columns.Builder
	cols  []columns.Column
	first int
	err   error
}

var (
	errShort = errors.New("the bytes end in the middle of the value")
	errUTF8  = errors.New("the text is not valid UTF-8")
)

// Width is the number of columns that the plan fills, in the pre-order numbering.
func (p *Plan) Width() int { return p.width }

// Append decodes data, a bare Avro value, into the columns from number first on. Errors are *sink.RowError; the caller rolls
// back. data is not kept.
func (p *Plan) Append(b *columns.Builder, first int, data []byte) error {
	d := decoder{buf: data, b: b, cols: b.Columns()[first:], first: first}
	if s := d.run(p.steps); s != nil {
		return &sink.RowError{Field: s.path, Err: fmt.Errorf("byte %d of %d: %w", d.pos, len(data), d.err)}
	}
	if d.pos != len(data) {
		return &sink.RowError{Err: fmt.Errorf("%d of %d bytes are left after the value: it was written with another schema", len(data)-d.pos, len(data))}
	}
	return nil
}

// run runs the steps in order. It returns the step that failed, with the reason in d.err.
func (d *decoder) run(steps []step) *step {
	for i := range steps {
		s := &steps[i]
		switch s.op {
		case opLong:
			v, ok := d.long()
			if !ok || s.narrow && !d.isInt(v) {
				return s
			}
			d.cols[s.col].AppendInt64(v)
		case opString:
			v, ok := d.bytes()
			if !ok {
				return s
			}
			if !utf8.Valid(v) {
				d.err = errUTF8
				return s
			}
			d.cols[s.col].AppendBytes(v)
		case opInt:
			v, ok := d.long()
			if !ok || !d.isInt(v) {
				return s
			}
			d.cols[s.col].AppendInt32(int32(v))
		case opDouble:
			v, ok := d.take(8)
			if !ok {
				return s
			}
			d.cols[s.col].AppendFloat64(math.Float64frombits(binary.LittleEndian.Uint64(v)))
		case opUnion:
			k, ok := d.index(len(s.sub))
			if !ok {
				return s
			}
			if f := d.run(s.sub[k : k+1]); f != nil {
				return f
			}
		case opNull:
			if d.err = d.b.AppendNull(d.first + s.col); d.err != nil {
				return s
			}
		case opRecord:
			d.cols[s.col].AppendStruct()
			if f := d.run(s.sub); f != nil {
				return f
			}
		default:
			if f := d.other(s); f != nil {
				return f
			}
		}
	}
	return nil
}

// other runs the steps that are not worth a place in the hot loop.
func (d *decoder) other(s *step) *step {
	switch s.op {
	case opBool, opFloat, opFloatDouble, opFixed, opFixedUUID, opFixedDecimal, opDuration:
		return d.sized(s)
	case opMillis, opNanos, opLongFloat, opLongDouble:
		return d.number(s)
	case opBytes, opDecimal:
		return d.binary(s)
	case opEnum:
		k, ok := d.index(len(s.symbols))
		if ok && s.symbols[k] == nil {
			ok = d.fail("symbol %d of the writer's enum is not declared", k)
		}
		if !ok {
			return s
		}
		d.cols[s.col].AppendBytes(s.symbols[k])
	case opArray, opMap:
		return d.blocks(s)
	case opMember:
		return d.member(s)
	case opDefault:
		return d.fill(s)
	case opFail:
		d.err = s.err
		return s
	case opRootUnion:
		if k, ok := d.long(); !ok || k != int64(s.n) {
			if ok {
				d.fail("branch %d of the writer's union is not the declared record", k)
			}
			return s
		}
		return d.run(s.sub)
	default:
		if !d.pass(s, 0) {
			return s
		}
	}
	return nil
}

// sized reads the values of known size.
func (d *decoder) sized(s *step) *step {
	n := s.n
	switch s.op {
	case opBool:
		n = 1
	case opFloat, opFloatDouble:
		n = 4
	}
	v, ok := d.take(n)
	if !ok {
		return s
	}
	c := &d.cols[s.col]
	switch s.op {
	case opBool:
		if v[0] > 1 {
			d.fail("a boolean is 0 or 1, not %d", v[0])
			return s
		}
		c.AppendBool(v[0] == 1)
	case opFloat:
		c.AppendFloat32(math.Float32frombits(binary.LittleEndian.Uint32(v)))
	case opFloatDouble:
		c.AppendFloat64(float64(math.Float32frombits(binary.LittleEndian.Uint32(v))))
	case opFixed:
		c.AppendBytes(v)
	case opFixedUUID:
		var text [36]byte
		c.AppendBytes(columns.AppendUUID(text[:0], (*[16]byte)(v)))
	case opDuration:
		c.AppendStruct()
		for i := range 3 {
			d.cols[s.col+1+i].AppendInt64(int64(binary.LittleEndian.Uint32(v[4*i:])))
		}
	default:
		return d.decimal(s, v)
	}
	return nil
}

// number reads a varint that isn't stored as it is.
func (d *decoder) number(s *step) *step {
	v, ok := d.long()
	if !ok || s.narrow && !d.isInt(v) {
		return s
	}
	c := &d.cols[s.col]
	switch s.op {
	case opMillis:
		us, ok := columns.MillisToMicros(v)
		if !ok {
			d.fail("%d ms since 1970 is out of the range of microseconds", v)
			return s
		}
		c.AppendInt64(us)
	case opNanos:
		c.AppendInt64(columns.FloorDiv(v, 1000))
	case opLongFloat:
		c.AppendFloat32(float32(v))
	case opLongDouble:
		c.AppendFloat64(float64(v))
	}
	return nil
}

func (d *decoder) binary(s *step) *step {
	v, ok := d.bytes()
	if !ok {
		return s
	}
	if s.op == opDecimal {
		return d.decimal(s, v)
	}
	d.cols[s.col].AppendBytes(v)
	return nil
}

func (d *decoder) decimal(s *step, v []byte) *step {
	x, err := columns.DecimalFromBytes(v, s.precision)
	if d.err = err; err != nil {
		return s
	}
	d.cols[s.col].AppendDecimal(x)
	return nil
}

// member reads one member of a union's struct and leaves the others null.
func (d *decoder) member(s *step) *step {
	d.cols[s.col].AppendStruct()
	for _, col := range s.others {
		if d.err = d.b.AppendNull(d.first + col); d.err != nil {
			return s
		}
	}
	return d.run(s.sub)
}

// fill appends a default by reading its encoded form.
func (d *decoder) fill(s *step) *step {
	buf, pos := d.buf, d.pos
	d.buf, d.pos = s.data, 0
	f := d.run(s.sub)
	d.buf, d.pos = buf, pos
	return f
}

// blocks reads an array or a map.
func (d *decoder) blocks(s *step) *step {
	var empty int64
	for {
		n, _, ok := d.block()
		if ok && s.weightless {
			if empty += n; n > maxWeightless || empty > maxWeightless {
				ok = d.fail("more than %d items that take no bytes", maxWeightless)
			}
		}
		if !ok {
			return s
		}
		if n == 0 {
			break
		}
		for range n {
			if s.op == opMap && !d.key(s) {
				return s
			}
			if f := d.run(s.sub); f != nil {
				return f
			}
		}
	}
	d.cols[s.col].AppendEnd(&d.cols[s.col+1])
	return nil
}

func (d *decoder) key(s *step) bool {
	k, ok := d.bytes()
	if !ok {
		return false
	}
	if !utf8.Valid(k) {
		d.err = errUTF8
		return false
	}
	d.cols[s.col+1].AppendBytes(k)
	return true
}

// fail sets the error and returns false.
func (d *decoder) fail(format string, args ...any) bool {
	d.err = fmt.Errorf(format, args...)
	return false
}

// maxWeightless bounds the items of an array that take no bytes: nothing else bounds them.
const maxWeightless = 4096

// block reads the head of a block: how many items follow, and their size in bytes if it is given, else -1.
func (d *decoder) block() (n, size int64, ok bool) {
	if n, ok = d.long(); !ok {
		return 0, 0, false
	}
	size = -1
	if n < 0 {
		if n == math.MinInt64 {
			return 0, 0, d.fail("a block of %d items", n)
		}
		n = -n
		if size, ok = d.long(); !ok {
			return 0, 0, false
		}
		if size < 0 {
			return 0, 0, d.fail("a block of %d bytes", size)
		}
	}
	return n, size, true
}

// index reads the number of a branch or a symbol, of which there are n.
func (d *decoder) index(n int) (int, bool) {
	if d.pos < len(d.buf) {
		if b := d.buf[d.pos]; b&0x81 == 0 && int(b>>1) < n {
			d.pos++
			return int(b >> 1), true
		}
	}
	v, ok := d.long()
	if ok && (v < 0 || v >= int64(n)) {
		ok = d.fail("number %d of a union's branches or an enum's symbols, of which there are %d", v, n)
	}
	return int(v), ok
}

func (d *decoder) isInt(v int64) bool {
	return v == int64(int32(v)) || d.fail("%d is not an int of 32 bits", v)
}

// long reads a zig-zag varint.
func (d *decoder) long() (int64, bool) {
	if d.pos < len(d.buf) {
		if b := d.buf[d.pos]; b < 0x80 {
			d.pos++
			return int64(b>>1) ^ -int64(b&1), true
		}
	}
	return d.longSlow()
}

func (d *decoder) longSlow() (int64, bool) {
	v, n := binary.Uvarint(d.buf[d.pos:])
	if n <= 0 {
		d.err = errShort
		if n < 0 {
			d.err = errors.New("a number of more than 64 bits")
		}
		return 0, false
	}
	d.pos += n
	return int64(v>>1) ^ -int64(v&1), true
}

// bytes reads a length and that many bytes, which alias the input.
func (d *decoder) bytes() ([]byte, bool) {
	n, ok := d.long()
	if !ok {
		return nil, false
	}
	if n < 0 || n > int64(len(d.buf)-d.pos) {
		return nil, d.fail("%d bytes are announced, %d are left", n, len(d.buf)-d.pos)
	}
	v := d.buf[d.pos : d.pos+int(n)]
	d.pos += int(n)
	return v, true
}

func (d *decoder) take(n int) ([]byte, bool) {
	if n > len(d.buf)-d.pos {
		d.err = errShort
		return nil, false
	}
	v := d.buf[d.pos : d.pos+n]
	d.pos += n
	return v, true
}

func (d *decoder) advance(n int64) bool {
	if n < 0 || n > int64(len(d.buf)-d.pos) {
		return d.fail("%d bytes are announced, %d are left", n, len(d.buf)-d.pos)
	}
	d.pos += int(n)
	return true
}
