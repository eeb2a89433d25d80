package delta

import "slices"

// keyTypeChanges is the key of field metadata that tells which types a column had before (PROTOCOL.md, "Type Widening").
const keyTypeChanges = "delta.typeChanges"

// HasWidened reports whether a column of the table, at any depth, has had a narrower type before.
func (m *Metadata) HasWidened() (found bool) {
	walkFields("", m.Schema, func(_ string, f Field) {
		_, has := f.Metadata.Get(keyTypeChanges)
		found = found || has
	})
	return found
}

// The integer types from the narrowest on, and the digits that a decimal needs in front of its point to hold them.
var (
	integers      = []Primitive{Byte, Short, Integer, Long}
	integerDigits = []int{10, 10, 10, 20} // as the specification has them
)

// widens reports whether the specification lets a column become another type without its files being written anew.
func widens(from, to Type) bool {
	a, ok1 := from.(Primitive)
	b, ok2 := to.(Primitive)
	if !ok1 || !ok2 {
		return false
	}
	i, j := slices.Index(integers, a), slices.Index(integers, b)
	precision, scale, decimal := b.DecimalParts()
	switch {
	case i >= 0 && j >= 0:
		return i < j
	case i >= 0 && decimal:
		return precision-scale >= integerDigits[i]
	case b == Double:
		return a == Float || i >= 0 && a != Long
	case a == Date:
		return b == TimestampNTZ
	case decimal:
		p, s, ok := a.DecimalParts()
		return ok && s <= scale && p-s <= precision-scale && a != b
	}
	return false
}
