package gorows

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// member is a field of a struct as its columns see it: embedded structs are flattened.
type member struct {
	name  string
	typ   reflect.Type
	tag   tag
	depth int
	order []int // index path, for the order of columns
	// hops are the offsets of embedded pointers to follow, then the offset of the field itself.
	hops []uintptr
}

// reach wraps a step so that it reads the member from the outer struct.
func (m *member) reach(s step) step {
	s.off = m.hops[len(m.hops)-1]
	for i := len(m.hops) - 2; i >= 0; i-- {
		s = step{op: opPointer, path: s.path, off: m.hops[i], sub: []step{s}}
	}
	return s
}

// members lists the fields of t that become columns, in the order of the source, by the rules of encoding/json: the shallowest
// field of a name wins, then one that is named by a tag. What stays ambiguous is an error.
func (c *compiler) members(path string, t reflect.Type) []member {
	var all []member
	c.collect(path, t, member{hops: []uintptr{0}}, &all, nil)
	byName := map[string][]member{}
	for _, m := range all {
		byName[m.name] = append(byName[m.name], m)
	}
	var out []member
	for name, ms := range byName {
		slices.SortStableFunc(ms, func(a, b member) int {
			if a.depth != b.depth {
				return cmp.Compare(a.depth, b.depth)
			}
			return cmp.Compare(rank(a), rank(b))
		})
		if len(ms) > 1 && ms[0].depth == ms[1].depth && rank(ms[0]) == rank(ms[1]) {
			c.fail(path, "type %v has two fields for column %q: rename one in its tag", t, name)
			continue
		}
		out = append(out, ms[0])
	}
	slices.SortFunc(out, func(a, b member) int { return slices.Compare(a.order, b.order) })
	return out
}

func rank(m member) int {
	if m.tag.named {
		return 0
	}
	return 1
}

// collect walks t's fields; outer holds how t itself is reached.
func (c *compiler) collect(path string, t reflect.Type, outer member, all *[]member, stack []reflect.Type) {
	if slices.Contains(stack, t) {
		c.fail(path, "type %v embeds itself: a table has no recursive types; leave the field out with `lake:\"-\"`", t)
		return
	}
	stack = append(stack, t)
	for i := range t.NumField() {
		f := t.Field(i)
		tg, err := parseTag(f)
		if err != nil {
			c.fail(join(path, f.Name), "%v", err)
			continue
		}
		m := member{name: tg.name, typ: f.Type, tag: tg, depth: outer.depth, order: append(slices.Clone(outer.order), i)}
		m.hops = slices.Clone(outer.hops)
		m.hops[len(m.hops)-1] += f.Offset
		if tg.skip {
			continue
		}
		if f.Anonymous && !tg.named && flattens(f.Type) {
			m.depth++
			inner := f.Type
			for inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
				m.hops = append(m.hops, 0)
			}
			c.collect(path, inner, m, all, stack)
			continue
		}
		if !f.IsExported() {
			continue
		}
		if m.name == "" {
			m.name = f.Name
		}
		*all = append(*all, m)
	}
}

func flattens(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return isStruct(t)
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }
