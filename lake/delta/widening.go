package delta

import (
	"encoding/json"
	"fmt"
	"slices"
)

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

// unknownChanges names the changes of types that the table's columns have gone through and this package can't follow: its older files have values that
// can't be told. Only a table whose protocol has the feature has such changes.
func (h *Head) unknownChanges() (out []string) {
	if !slices.Contains(h.Protocol.ReaderFeatures, "typeWidening") && !slices.Contains(h.Protocol.ReaderFeatures, "typeWidening-preview") {
		return nil
	}
	walkFields("", h.Metadata.Schema, func(path string, f Field) {
		raw, has := f.Metadata.Get(keyTypeChanges)
		if !has {
			return
		}
		var changes []struct{ FromType, ToType Primitive }
		if err := json.Unmarshal(raw, &changes); err != nil {
			out = append(out, fmt.Sprintf("type widening of column %s by a change that can't be read (%s)", path, raw))
		}
		for _, c := range changes {
			if c.FromType != c.ToType && !widens(c.FromType, c.ToType) && !holds(c.ToType, c.FromType) {
				out = append(out, fmt.Sprintf("type widening of column %s from %s to %s", path, c.FromType, c.ToType))
			}
		}
	})
	return out
}

// The integer types from the narrowest on, and the digits that a decimal needs in front of its point to hold them.
var (
	integers      = []Primitive{Byte, Short, Integer, Long}
	integerDigits = []int{10, 10, 10, 20} // as the specification has them
)

// holds reports whether a decimal has room for all values of an integer type. Engines have let columns become smaller ones than the specification
// speaks of.
func holds(decimal, integer Primitive) bool {
	digits := map[Primitive]int{Byte: 3, Short: 5, Integer: 10, Long: 19}[integer]
	precision, scale, ok := decimal.DecimalParts()
	return ok && digits > 0 && precision-scale >= digits
}

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
