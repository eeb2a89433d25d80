package avrorows

// skip makes the step that passes over a value of the writer that is not declared. It follows recursive types, which are fine
// as long as nobody wants to store them.
func (r *resolver) skip(n *node) *step {
	s := &step{op: opSkipBytes}
	switch n.kind {
	case "null":
		s.op = opSkipFixed
	case "boolean":
		s.op, s.n = opSkipFixed, 1
	case "float":
		s.op, s.n = opSkipFixed, 4
	case "double":
		s.op, s.n = opSkipFixed, 8
	case "fixed":
		s.op, s.n = opSkipFixed, n.size
	case "long":
		s.op = opSkipLong
	case "int":
		s.op = opSkipInt
	case "enum":
		s.op, s.n = opSkipEnum, len(n.symbols)
	case "array", "map":
		s.op = opSkipArray
		if n.kind == "map" {
			s.op = opSkipMap
		}
		s.weightless = weightless(n.items, nil)
		s.next = []*step{r.skip(n.items)}
	case "union":
		s.op = opSkipUnion
		for _, b := range n.branches {
			s.next = append(s.next, r.skip(b))
		}
	case "record":
		if known := r.skips[n]; known != nil {
			return known
		}
		s.op = opSkipRecord
		r.skips[n] = s
		for i := range n.fields {
			s.next = append(s.next, r.skip(n.fields[i].node))
		}
	}
	return s
}

// maxDepth bounds the nesting of skipped recursive values.
const maxDepth = 512

// pass skips one value.
func (d *decoder) pass(s *step, depth int) bool {
	switch s.op {
	case opSkipFixed:
		return d.advance(int64(s.n))
	case opSkipLong:
		_, ok := d.long()
		return ok
	case opSkipInt:
		v, ok := d.long()
		return ok && d.isInt(v)
	case opSkipEnum:
		_, ok := d.index(s.n)
		return ok
	case opSkipBytes:
		n, ok := d.long()
		return ok && d.advance(n)
	case opSkipRecord:
		if depth > maxDepth {
			return d.fail("values are nested more than %d deep", maxDepth)
		}
		for _, f := range s.next {
			if !d.pass(f, depth+1) {
				return false
			}
		}
		return true
	case opSkipUnion:
		i, ok := d.index(len(s.next))
		return ok && d.pass(s.next[i], depth+1)
	}
	return d.passBlocks(s, depth)
}

// passBlocks skips an array or a map, by whole blocks where their sizes are given.
func (d *decoder) passBlocks(s *step, depth int) bool {
	if depth > maxDepth {
		return d.fail("values are nested more than %d deep", maxDepth)
	}
	for {
		n, size, ok := d.block()
		if !ok || n == 0 {
			return ok
		}
		if size >= 0 {
			if !d.advance(size) {
				return false
			}
			continue
		}
		if s.weightless && s.op == opSkipArray {
			continue // whatever their number, nothing follows
		}
		for range n {
			if s.op == opSkipMap {
				if k, ok := d.long(); !ok || !d.advance(k) {
					return false
				}
			}
			if !d.pass(s.next[0], depth+1) {
				return false
			}
		}
	}
}
