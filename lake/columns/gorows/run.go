package gorows

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/sink"
)

type op uint8

const (
	opBool op = iota
	opInt8
	opInt16
	opInt32
	opInt64
	opInt8As32
	opInt16As32
	opInt32As64
	opUint8
	opUint16
	opUint32
	opUint64
	opFloat32
	opFloat64
	opFloat32As64
	opString
	opBytes
	opByteText
	opByteArray
	opUUID
	opTime
	opTimeDate
	opTimeLocal
	opDuration
	opRat
	opBigInt
	opIntDecimal
	opBytesDecimal
	opText
	opPointer
	opStruct
	opSlice
	opArray
	opMap
)

// step reads one value at an offset and appends it to one column, or to a nested column and its descendants.
type step struct {
	op               op
	col              int     // pre-order number, relative to the plan's first column
	off              uintptr // in the struct that holds the value
	size             uintptr // of an element of a slice or array
	n                int     // length of an array; size of an integer for opIntDecimal
	precision, scale int
	sub              []step
	typ              reflect.Type
	path             string
}

// Width is the number of columns that the plan fills, in the pre-order numbering.
func (p *Plan) Width() int { return p.width }

// Append appends the value that v, a *T of the compiled type T, points to, with the plan's first column being number first.
// null is true, and nothing has been appended, if T is a pointer and nil. Errors are *sink.RowError; the caller rolls back.
func (p *Plan) Append(b *columns.Builder, first int, v any) (null bool, err error) {
	if reflect.TypeOf(v) != p.pointer {
		return false, &sink.RowError{Err: fmt.Errorf("the table takes values of %v, not %T", p.pointer, v)}
	}
	ptr := reflect.ValueOf(v).UnsafePointer()
	for range p.hops {
		if ptr == nil {
			return true, nil
		}
		ptr = *(*unsafe.Pointer)(ptr)
	}
	if ptr == nil {
		return true, nil
	}
	r := run{b: b, cols: b.Columns()[first:], first: first}
	if s := r.steps(ptr, p.steps); s != nil {
		return false, &sink.RowError{Field: s.path, Err: r.err}
	}
	return false, nil
}

// AppendNulls appends a null to each of the plan's top-level columns.
func (p *Plan) AppendNulls(b *columns.Builder, first int) error {
	for i := range p.Fields {
		if err := b.AppendNull(first); err != nil {
			return &sink.RowError{Field: p.Fields[i].Name, Err: err}
		}
		first += p.Fields[i].Type.Width()
	}
	return nil
}

// run is one pass of the steps over one row.
type run struct {
	b     *columns.Builder
	cols  []columns.Column
	first int
	err   error
}

var errUTF8 = errors.New("the text is not valid UTF-8")

// steps runs the steps over the struct at base. It returns the step that failed, with the reason in r.err.
func (r *run) steps(base unsafe.Pointer, steps []step) *step {
	for i := range steps {
		s := &steps[i]
		c := &r.cols[s.col]
		p := unsafe.Add(base, s.off)
		switch s.op {
		case opBool:
			c.AppendBool(*(*bool)(p))
		case opInt8:
			c.AppendInt8(*(*int8)(p))
		case opInt16:
			c.AppendInt16(*(*int16)(p))
		case opInt32:
			c.AppendInt32(*(*int32)(p))
		case opInt64:
			c.AppendInt64(*(*int64)(p))
		case opFloat32:
			c.AppendFloat32(*(*float32)(p))
		case opFloat64:
			c.AppendFloat64(*(*float64)(p))
		case opString:
			v := *(*string)(p)
			if !utf8.ValidString(v) {
				r.err = errUTF8
				return s
			}
			c.AppendString(v)
		case opTime:
			var us int64
			if us, r.err = columns.Micros(*(*time.Time)(p)); r.err != nil {
				return s
			}
			c.AppendInt64(us)
		case opPointer:
			if q := *(*unsafe.Pointer)(p); q == nil {
				if !r.null(s) {
					return s
				}
			} else if f := r.steps(q, s.sub); f != nil {
				return f
			}
		case opStruct:
			c.AppendStruct()
			if f := r.steps(p, s.sub); f != nil {
				return f
			}
		default:
			if f := r.rare(p, s, c); f != nil {
				return f
			}
		}
	}
	return nil
}

func (r *run) null(s *step) bool {
	r.err = r.b.AppendNull(r.first + s.col)
	return r.err == nil
}

// rare runs the steps that are not worth a place in the hot loop.
func (r *run) rare(p unsafe.Pointer, s *step, c *columns.Column) *step {
	switch s.op {
	case opInt8As32:
		c.AppendInt32(int32(*(*int8)(p)))
	case opInt16As32:
		c.AppendInt32(int32(*(*int16)(p)))
	case opInt32As64:
		c.AppendInt64(int64(*(*int32)(p)))
	case opUint8:
		c.AppendInt16(int16(*(*uint8)(p)))
	case opUint16:
		c.AppendInt32(int32(*(*uint16)(p)))
	case opUint32:
		c.AppendInt64(int64(*(*uint32)(p)))
	case opUint64:
		v := *(*uint64)(p)
		if v > math.MaxInt64 {
			r.err = fmt.Errorf("%d is larger than a long column holds", v)
			return s
		}
		c.AppendInt64(int64(v))
	case opFloat32As64:
		c.AppendFloat64(float64(*(*float32)(p)))
	case opByteArray:
		c.AppendBytes(unsafe.Slice((*byte)(p), s.n))
	case opUUID:
		var buf [36]byte
		c.AppendBytes(columns.AppendUUID(buf[:0], (*[16]byte)(p)))
	case opTimeDate:
		c.AppendInt32(int32(columns.DayOf(*(*time.Time)(p))))
	case opDuration:
		c.AppendInt64(columns.FloorDiv(*(*int64)(p), 1000))
	case opTimeLocal:
		return r.local(p, s, c)
	case opBytes, opByteText:
		return r.bytes(p, s, c)
	case opRat, opBigInt, opIntDecimal, opBytesDecimal:
		return r.decimal(p, s, c)
	case opText:
		return r.text(p, s, c)
	case opSlice:
		return r.slice(p, s, c)
	case opArray:
		return r.elements(p, s.n, s, c)
	case opMap:
		return r.mapping(p, s, c)
	}
	return nil
}

// local keeps the wall clock reading of a time and drops its zone.
func (r *run) local(p unsafe.Pointer, s *step, c *columns.Column) *step {
	t := *(*time.Time)(p)
	_, zone := t.Zone()
	us, err := columns.Micros(t.Add(time.Duration(zone) * time.Second))
	if r.err = err; err != nil {
		return s
	}
	c.AppendInt64(us)
	return nil
}

func (r *run) bytes(p unsafe.Pointer, s *step, c *columns.Column) *step {
	v := *(*[]byte)(p)
	if v == nil {
		if !r.null(s) {
			return s
		}
		return nil
	}
	if s.op == opByteText && !utf8.Valid(v) {
		r.err = errUTF8
		return s
	}
	c.AppendBytes(v)
	return nil
}

func (r *run) decimal(p unsafe.Pointer, s *step, c *columns.Column) *step {
	var v decimal128.Num
	switch s.op {
	case opRat:
		v, r.err = columns.DecimalFromRat((*big.Rat)(p), s.precision, s.scale)
	case opBigInt:
		v, r.err = columns.DecimalFromInt((*big.Int)(p), s.precision)
	case opBytesDecimal:
		b := *(*[]byte)(p)
		if b == nil {
			if !r.null(s) {
				return s
			}
			return nil
		}
		v, r.err = columns.DecimalFromBytes(b, s.precision)
	default:
		n := signed(p, s.n)
		if v = decimal128.FromI64(n); !v.FitsInPrecision(int32(s.precision)) {
			r.err = fmt.Errorf("unscaled decimal %d doesn't fit precision %d", n, s.precision)
		}
	}
	if r.err != nil {
		return s
	}
	c.AppendDecimal(v)
	return nil
}

func signed(p unsafe.Pointer, size int) int64 {
	switch size {
	case 1:
		return int64(*(*int8)(p))
	case 2:
		return int64(*(*int16)(p))
	case 4:
		return int64(*(*int32)(p))
	}
	return *(*int64)(p)
}

func (r *run) text(p unsafe.Pointer, s *step, c *columns.Column) *step {
	var text []byte
	v := reflect.NewAt(s.typ, p)
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, r.err = m.MarshalText()
	}
	if r.err == nil && !utf8.Valid(text) {
		r.err = errUTF8
	}
	if r.err != nil {
		return s
	}
	c.AppendBytes(text)
	return nil
}

// sliceHeader is the layout of every slice.
type sliceHeader struct {
	data unsafe.Pointer
	len  int
	cap  int
}

func (r *run) slice(p unsafe.Pointer, s *step, c *columns.Column) *step {
	h := (*sliceHeader)(p)
	if h.data == nil {
		if !r.null(s) {
			return s
		}
		return nil
	}
	return r.elements(h.data, h.len, s, c)
}

func (r *run) elements(data unsafe.Pointer, n int, s *step, c *columns.Column) *step {
	for i := range n {
		if f := r.steps(unsafe.Add(data, uintptr(i)*s.size), s.sub); f != nil {
			return f
		}
	}
	c.AppendEnd(&r.cols[s.col+1])
	return nil
}

// mapping appends a map in the order of its keys, so that the same input always gives the same file.
func (r *run) mapping(p unsafe.Pointer, s *step, c *columns.Column) *step {
	m := reflect.NewAt(s.typ, p).Elem()
	if m.IsNil() {
		if !r.null(s) {
			return s
		}
		return nil
	}
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	value := reflect.New(s.typ.Elem())
	for _, k := range keys {
		if !utf8.ValidString(k.String()) {
			r.err = errUTF8
			return s
		}
		r.cols[s.col+1].AppendString(k.String())
		value.Elem().Set(m.MapIndex(k))
		if f := r.steps(value.UnsafePointer(), s.sub); f != nil {
			return f
		}
	}
	c.AppendEnd(&r.cols[s.col+1])
	return nil
}
