package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
)

// ErrUnsupported is wrapped by every error that says: the runner doesn't know a word of the scenario.
var ErrUnsupported = errors.New("unsupported")

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// object is a JSON object that is read field by field. Fields that nobody asked for are found by finish: a scenario that says
// something the runner doesn't listen to must not pass.
//
// The first error sticks in the reader that all objects of a scenario share.
type object struct {
	where  string
	fields map[string]json.RawMessage
	used   map[string]bool
	first  *error
}

func newObject(where string, raw json.RawMessage, first *error) *object {
	o := &object{where: where, used: map[string]bool{}, first: first}
	if err := json.Unmarshal(raw, &o.fields); err != nil {
		o.fail(fmt.Errorf("%s: %w", where, err))
	}
	return o
}

func (o *object) fail(err error) {
	if *o.first == nil {
		*o.first = err
	}
}

func (o *object) unsupported(format string, args ...any) {
	o.fail(unsupported("%s: %s", o.where, fmt.Sprintf(format, args...)))
}

// has reports whether the field is there and not null.
func (o *object) has(name string) bool {
	o.used[name] = true
	raw, ok := o.fields[name]
	return ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

// there reports whether the field is there, null or not.
func (o *object) there(name string) bool {
	o.used[name] = true
	_, ok := o.fields[name]
	return ok
}

func (o *object) raw(name string) json.RawMessage {
	o.used[name] = true
	return o.fields[name]
}

// into decodes the field into v, which stays as it is where the field is absent.
func (o *object) into(name string, v any) {
	if !o.has(name) {
		return
	}
	if err := json.Unmarshal(o.fields[name], v); err != nil {
		o.fail(fmt.Errorf("%s: field %s: %w", o.where, name, err))
	}
}

func (o *object) str(name string) string { return o.strOr(name, "") }

func (o *object) strOr(name, def string) string {
	o.into(name, &def)
	return def
}

func (o *object) int(name string) int64 { return o.intOr(name, 0) }

func (o *object) intOr(name string, def int64) int64 {
	o.into(name, &def)
	return def
}

func (o *object) boolOr(name string, def bool) bool {
	o.into(name, &def)
	return def
}

func (o *object) strs(name string) []string {
	var list []string
	o.into(name, &list)
	return list
}

// obj returns the object in a field, an empty one where the field is absent.
func (o *object) obj(name string) *object {
	raw := json.RawMessage("{}")
	if o.has(name) {
		raw = o.fields[name]
	}
	return newObject(o.where+"."+name, raw, o.first)
}

func (o *object) objs(name string) []*object {
	var raws []json.RawMessage
	o.into(name, &raws)
	list := make([]*object, len(raws))
	for i, raw := range raws {
		list[i] = newObject(fmt.Sprintf("%s.%s[%d]", o.where, name, i), raw, o.first)
	}
	return list
}

func (o *object) typ(name string) Type {
	t, err := parseType(o.raw(name))
	if err != nil {
		o.fail(fmt.Errorf("%s: field %s: %w", o.where, name, err))
	}
	return t
}

// finish reports fields that were never read.
func (o *object) finish() {
	var left []string
	for name := range o.fields {
		if !o.used[name] {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		sort.Strings(left)
		o.unsupported("unknown field %s", strings.Join(left, ", "))
	}
}
