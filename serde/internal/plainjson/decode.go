package plainjson

import (
	"math"
	"reflect"
	"strconv"
	"unsafe"
)

// reader walks over a text.
type reader struct {
	scanner
	strict bool // names without a field are not skipped

	short  [16]shortString
	shorts int // in use
	sum    int // of their lengths
}

// shortString is a string that is still to be copied out of the text, and the offset of its place in the whole value. It isn't a pointer, so that the
// value needn't be on the heap.
type shortString struct {
	to        uintptr
	from, end int32
}

// longestShort is up to which length strings share an allocation: one that is kept keeps the others of its text, so long ones don't.
const longestShort = 64

// Decode reads a text into the value of the plan's type that into points to, which must be zero. Nothing of data is kept. Where it gives
// false the text isn't plain, or isn't valid, and the value is left with parts of it. strict leaves names without a field to the caller, too.
func (p *Plan) Decode(data []byte, into unsafe.Pointer, strict bool) bool {
	r := reader{scanner: scanner{data: data}, strict: strict}
	r.space()
	if r.peek() != '{' || !r.value(&p.root, into, place{whole: true}) {
		return false
	}
	r.space()
	if r.at != len(data) {
		return false
	}
	r.flush(into)
	return true
}

// place is where something lies in memory: whole says that offset is that in the whole value, which it isn't behind a pointer.
type place struct {
	offset uintptr
	whole  bool
}

// value reads a value to where it belongs, which is in the value that base points to.
func (r *reader) value(v *value, base unsafe.Pointer, p place) bool {
	if r.peek() == 'n' {
		return r.literal("null") // leaves what is there, which is zero
	}
	at := unsafe.Add(base, p.offset)
	switch v.kind {
	case text:
		return r.text(base, p)
	case boolean:
		if r.peek() == 't' {
			*(*bool)(at) = true
			return r.literal("true")
		}
		return r.literal("false")
	case integer:
		return r.integer(v.bits, at)
	case unsigned:
		return r.unsigned(v.bits, at)
	case float:
		return r.float(v.bits, at)
	case object:
		return r.object(v, base, p)
	}
	elem := reflect.New(v.of).UnsafePointer()
	*(*unsafe.Pointer)(at) = elem
	return r.value(v.elem, elem, place{})
}

func (r *reader) object(v *value, base unsafe.Pointer, p place) bool {
	if !r.take('{') {
		return false
	}
	r.space()
	if r.take('}') {
		return true
	}
	var met uint64
	for next := 0; ; {
		name, ok := r.name()
		if !ok {
			return false
		}
		if i := v.find(name, next); i >= 0 {
			f, bit := &v.fields[i], uint64(1)<<i
			if met&bit != 0 || !r.value(&f.value, base, place{p.offset + f.offset, p.whole}) {
				return false // which of two values counts isn't decided here
			}
			met, next = met|bit, i+1
		} else if r.strict || v.mayMean(name) || !r.skip(0) {
			return false
		}
		r.space()
		if r.take('}') {
			return true
		}
		if !r.take(',') {
			return false
		}
		r.space()
	}
}

func (r *reader) text(base unsafe.Pointer, p place) bool {
	from, end, ok := r.plainString()
	if !ok {
		return false
	}
	switch n := end - from; {
	case n == 0:
	case n > longestShort || end > math.MaxInt32 || !p.whole:
		*(*string)(unsafe.Add(base, p.offset)) = string(r.data[from:end])
	default:
		if r.shorts == len(r.short) {
			r.flush(base)
		}
		r.short[r.shorts] = shortString{p.offset, int32(from), int32(end)}
		r.shorts++
		r.sum += n
	}
	return true
}

// flush copies the short strings out of the text into the whole value.
func (r *reader) flush(into unsafe.Pointer) {
	if r.shorts == 0 {
		return
	}
	block := make([]byte, 0, r.sum)
	for i := range r.short[:r.shorts] {
		s := &r.short[i]
		begin := len(block)
		block = append(block, r.data[s.from:s.end]...)
		*(*string)(unsafe.Add(into, s.to)) = unsafe.String(&block[begin], len(block)-begin)
	}
	r.shorts, r.sum = 0, 0
}

func (r *reader) integer(bits uint8, at unsafe.Pointer) bool {
	negative := r.take('-')
	n, ok := r.digits()
	limit := uint64(1) << (bits - 1)
	if !negative {
		limit--
	}
	if !ok || n > limit {
		return false
	}
	i := int64(n)
	if negative {
		i = -i
	}
	switch bits {
	case 8:
		*(*int8)(at) = int8(i)
	case 16:
		*(*int16)(at) = int16(i)
	case 32:
		*(*int32)(at) = int32(i)
	default:
		*(*int64)(at) = i
	}
	return true
}

func (r *reader) unsigned(bits uint8, at unsafe.Pointer) bool {
	n, ok := r.digits()
	if !ok || n > ^uint64(0)>>(64-bits) {
		return false
	}
	switch bits {
	case 8:
		*(*uint8)(at) = uint8(n)
	case 16:
		*(*uint16)(at) = uint16(n)
	case 32:
		*(*uint32)(at) = uint32(n)
	default:
		*(*uint64)(at) = n
	}
	return true
}

func (r *reader) float(bits uint8, at unsafe.Pointer) bool {
	from := r.at
	if !r.number() {
		return false
	}
	number := r.data[from:r.at]
	f, err := strconv.ParseFloat(unsafe.String(&number[0], len(number)), int(bits))
	if err != nil {
		return false
	}
	if bits == 32 {
		*(*float32)(at) = float32(f)
	} else {
		*(*float64)(at) = f
	}
	return true
}
