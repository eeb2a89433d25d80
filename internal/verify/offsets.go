package verify

// offsets is a set of offsets by partition. It takes little more than a bit for each where they lie close, so that a topic of hundreds of
// millions of records can be accounted for in memory.
type offsets map[int32]map[int64]*page

const pageBits = 1 << 13

// page holds the offsets of one span of pageBits.
type page struct {
	bits  [pageBits / 64]uint64
	count int
}

func (p *page) has(i int64) bool { return p != nil && p.bits[i/64]&(1<<(i%64)) != 0 }

// take removes an offset and reports whether it was there.
func (o offsets) take(c Coordinates) bool {
	p, i := o[c.Partition][c.Offset/pageBits], c.Offset%pageBits
	if c.Offset < 0 || !p.has(i) {
		return false
	}
	p.bits[i/64] &^= 1 << (i % 64)
	if p.count--; p.count == 0 {
		delete(o[c.Partition], c.Offset/pageBits)
	}
	return true
}

// add reports whether the offset is new. Offsets below 0 are nobody's.
func (o offsets) add(c Coordinates) bool {
	if c.Offset < 0 {
		return true
	}
	set := o[c.Partition]
	if set == nil {
		set = map[int64]*page{}
		o[c.Partition] = set
	}
	p, i := set[c.Offset/pageBits], c.Offset%pageBits
	if p == nil {
		p = &page{}
		set[c.Offset/pageBits] = p
	}
	if p.has(i) {
		return false
	}
	p.bits[i/64] |= 1 << (i % 64)
	p.count++
	return true
}

// each calls f for every offset that is left.
func (o offsets) each(f func(Coordinates)) {
	for partition, pages := range o {
		for at, p := range pages {
			for i := range int64(pageBits) {
				if p.has(i) {
					f(Coordinates{partition, at*pageBits + i})
				}
			}
		}
	}
}
