package plainjson

import (
	"encoding"
	"encoding/json"
	jsonv2 "encoding/json/v2"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"
)

// Plan is how texts are read into values of one type. It may be used by many goroutines at once.
type Plan struct{ root value }

// kind is what a place in memory takes.
type kind uint8

const (
	text kind = iota
	boolean
	integer
	unsigned
	float
	object
	pointer
)

// value describes a place in memory.
type value struct {
	kind   kind
	bits   uint8        // of a number
	fields []field      // of an object
	elem   *value       // of a pointer
	of     reflect.Type // what a pointer points to
}

type field struct {
	name   string
	offset uintptr
	value  value
}

// maxFields is how many fields an object may have: a bit each says which were met.
const maxFields = 64

var plans sync.Map // reflect.Type to *Plan, nil if there can be none

// For gives the plan for a type, always the same one, or nil if its values are to be read by encoding/json.
func For(t reflect.Type) *Plan {
	if p, ok := plans.Load(t); ok {
		return p.(*Plan)
	}
	var p *Plan
	if v, ok := plan(t, nil); ok && (v.kind == object || v.kind == pointer && v.elem.kind == object) {
		p = &Plan{v}
	}
	stored, _ := plans.LoadOrStore(t, p)
	return stored.(*Plan)
}

// plan describes a type. within are the structs around it: one that is in itself is not plain.
func plan(t reflect.Type, within []reflect.Type) (v value, ok bool) {
	if special(t) {
		return v, false
	}
	switch t.Kind() {
	case reflect.String:
		return value{kind: text}, true
	case reflect.Bool:
		return value{kind: boolean}, true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return value{kind: integer, bits: uint8(t.Bits())}, true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return value{kind: unsigned, bits: uint8(t.Bits())}, true
	case reflect.Float32, reflect.Float64:
		return value{kind: float, bits: uint8(t.Bits())}, true
	case reflect.Pointer:
		elem, ok := plan(t.Elem(), within)
		return value{kind: pointer, elem: &elem, of: t.Elem()}, ok && elem.kind != pointer
	case reflect.Struct:
		for _, around := range within {
			if around == t {
				return v, false
			}
		}
		return planStruct(t, append(within, t))
	}
	return v, false
}

func planStruct(t reflect.Type, within []reflect.Type) (v value, ok bool) {
	v.kind = object
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			return v, false
		}
		name, ok := nameOf(f)
		if !ok {
			return v, false
		}
		if name == "" {
			continue
		}
		of, ok := plan(f.Type, within)
		if !ok {
			return v, false
		}
		v.fields = append(v.fields, field{name, f.Offset, of})
	}
	for i := range v.fields {
		for j := range i {
			if resembles(v.fields[i].name, v.fields[j].name) {
				return v, false
			}
		}
	}
	return v, len(v.fields) <= maxFields
}

// nameOf is the name of a field in texts, empty if it isn't in them. ok is false where the field is to be read in a way of its own.
func nameOf(f reflect.StructField) (name string, ok bool) {
	tag, tagged := f.Tag.Lookup("json")
	if !f.IsExported() {
		return "", !tagged
	}
	if tag == "-" {
		return "", true
	}
	name, options, _ := strings.Cut(tag, ",")
	for o := range strings.SplitSeq(options, ",") {
		if o != "" && o != "omitempty" && o != "omitzero" {
			return "", false
		}
	}
	if name == "" {
		name = f.Name
	}
	for i := range len(name) {
		if c := name[i]; c >= utf8.RuneSelf || c < ' ' || strings.IndexByte("\"\\'`,", c) >= 0 {
			return "", false
		}
	}
	return name, true
}

// special tells that a type is read in a way of its own: by a method, or since encoding/json knows it.
func special(t reflect.Type) bool {
	switch t.PkgPath() {
	case "time", "encoding/json", "encoding/json/v2", "encoding/json/jsontext":
		return true
	}
	for _, i := range []reflect.Type{
		reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[jsonv2.UnmarshalerFrom](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

// find gives the index of the field with a name, which is probably next; -1 if there is none.
func (v *value) find(name []byte, next int) int {
	if next < len(v.fields) && v.fields[next].name == string(name) {
		return next
	}
	for i := range v.fields {
		if v.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

// mayMean tells that encoding/json might find a field under a name that isn't its own: it takes no notice of case.
func (v *value) mayMean(name []byte) bool {
	for i := range v.fields {
		if resembles(v.fields[i].name, name) {
			return true
		}
	}
	return false
}

// resembles tells whether two names are the same without regard to case, dashes and underscores.
func resembles[B string | []byte](a string, b B) bool {
	i, j := 0, 0
	for {
		for i < len(a) && (a[i] == '_' || a[i] == '-') {
			i++
		}
		for j < len(b) && (b[j] == '_' || b[j] == '-') {
			j++
		}
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		if lower(a[i]) != lower(b[j]) {
			return false
		}
		i, j = i+1, j+1
	}
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
