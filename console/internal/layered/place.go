package layered

// placements is how often the layers are gone through to move spots toward those that they are connected with.
const placements = 16

// placeX moves spots sideways, in their order: each toward the mean of where its edges come from or go to, as near as those beside it let it.
func (d *drawing) placeX() {
	d.x = make([]float64, len(d.spots))
	for _, layer := range d.layers {
		at := 0.0
		for n, i := range layer {
			if n > 0 {
				at += d.distance(layer[n-1], i)
			}
			d.x[i] = at
		}
		for _, i := range layer { // around 0
			d.x[i] -= at / 2
		}
	}
	up := func(s *spot) []link { return s.up }
	down := func(s *spot) []link { return s.down }
	both := func(s *spot) []link { return append(s.up[:len(s.up):len(s.up)], s.down...) }
	for range placements {
		for n := 1; n < len(d.layers); n++ {
			d.align(d.layers[n], up)
		}
		for n := len(d.layers) - 2; n >= 0; n-- {
			d.align(d.layers[n], down)
		}
	}
	for range placements {
		for n := range d.layers {
			d.align(d.layers[n], both)
		}
	}
}

// distance is how far the middles of two neighbors of a layer are apart at least.
func (d *drawing) distance(a, b int) float64 {
	gap := d.g.BoxGap
	if d.spots[a].lane || d.spots[b].lane {
		gap = d.g.LaneGap
	}
	return (d.spots[a].width+d.spots[b].width)/2 + gap
}

// block is a row of neighbors that are pushed together.
type block struct {
	at, weight float64
	spots      int
}

// align gives a layer the places in which the sum of the squared distances from where its spots want to be is least, while they keep their order and
// their distances. Without the distances that is an isotonic regression, which pooling neighbors that are in each other's way solves.
func (d *drawing) align(layer []int, links func(*spot) []link) {
	var blocks []block
	offset := make([]float64, len(layer))
	for n, i := range layer {
		if n > 0 {
			offset[n] = offset[n-1] + d.distance(layer[n-1], i)
		}
		at, weight := d.wanted(i, links)
		b := block{at - offset[n], weight, 1}
		for len(blocks) > 0 && blocks[len(blocks)-1].at >= b.at {
			last := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			b.at = (b.at*b.weight + last.at*last.weight) / (b.weight + last.weight)
			b.weight += last.weight
			b.spots += last.spots
		}
		blocks = append(blocks, b)
	}
	n := 0
	for _, b := range blocks {
		for range b.spots {
			d.x[layer[n]] = b.at + offset[n]
			n++
		}
	}
}

// wanted is where a spot would be by its links. One without any stays where it is, and gives way to others.
func (d *drawing) wanted(i int, links func(*spot) []link) (at, weight float64) {
	for _, l := range links(&d.spots[i]) {
		at += l.weight * (d.x[l.to] + l.peer - l.own)
		weight += l.weight
	}
	if weight == 0 {
		return d.x[i], 0.01
	}
	return at / weight, weight
}
