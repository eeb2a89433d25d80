package columns

// Gather returns a new builder with the given rows of b, in that order, restricted to the top-level columns whose place in the
// schema is listed in keep. It serves tables with partition columns, which want one file for each partition value.
func (b *Builder) Gather(schema *Schema, keep []int, rows []int32) *Builder {
	out := NewBuilder(schema)
	to := 0
	for _, k := range keep {
		from := b.schema.ColumnOf(k)
		gather(out, to, b, from, rows)
		to = out.ends[to]
	}
	out.rows = len(rows)
	return out
}

// gather copies the values with the given indices from src's column to dst's, descendants included.
func gather(dst *Builder, to int, src *Builder, from int, idx []int32) {
	d, s := &dst.cols[to], &src.cols[from]
	gatherNulls(d, s, idx)
	switch s.kind {
	case String, Binary:
		for _, i := range idx {
			d.AppendBytes(s.data[s.off[i]:s.off[i+1]])
		}
	case List, Map, Struct:
		children := idx
		if s.kind == Struct {
			d.rows += len(idx)
		} else {
			children = gatherElements(d, s, idx)
		}
		for fc, tc := from+1, to+1; fc < src.ends[from]; fc, tc = src.ends[fc], dst.ends[tc] {
			gather(dst, tc, src, fc, children)
		}
	case Boolean:
		d.bools = pick(d.bools, s.bools, idx)
	case Byte:
		d.i8 = pick(d.i8, s.i8, idx)
	case Short:
		d.i16 = pick(d.i16, s.i16, idx)
	case Integer, Date:
		d.i32 = pick(d.i32, s.i32, idx)
	case Float:
		d.f32 = pick(d.f32, s.f32, idx)
	case Double:
		d.f64 = pick(d.f64, s.f64, idx)
	case Decimal:
		d.dec = pick(d.dec, s.dec, idx)
	default:
		d.i64 = pick(d.i64, s.i64, idx)
	}
}

// gatherElements ends the lists of d and returns the indices of their elements.
func gatherElements(d, s *Column, idx []int32) []int32 {
	var elems []int32
	for _, i := range idx {
		for e := s.off[i]; e < s.off[i+1]; e++ {
			elems = append(elems, e)
		}
		d.off = append(d.off, int32(len(elems)))
	}
	return elems
}

func gatherNulls(d, s *Column, idx []int32) {
	if len(s.nulls) == 0 {
		return
	}
	null := s.nullMap()
	for n, i := range idx {
		if null[i] {
			d.nulls = append(d.nulls, int32(n))
		}
	}
}

// nullMap says for each value whether it is null.
func (c *Column) nullMap() []bool {
	m := make([]bool, c.Len())
	for _, i := range c.nulls {
		m[i] = true
	}
	return m
}

func pick[T any](dst, src []T, idx []int32) []T {
	for _, i := range idx {
		dst = append(dst, src[i])
	}
	return dst
}
