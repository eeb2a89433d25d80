package layered

import (
	"cmp"
	"slices"
)

// sweeps is how often the layers are gone through for fewer crossings: down, and up again.
const sweeps = 12

// order changes the places within the layers so that few edges cross: each spot goes to the mean of those that it is connected with in the layer
// before. The best order that was seen is kept.
func (d *drawing) order() {
	d.begin()
	best, crossings := d.snapshot(), d.crossings()
	for n := 0; n < sweeps && crossings > 0; n++ {
		for i := 1; i < len(d.layers); i++ {
			d.sortLayer(i, func(s *spot) []link { return s.up })
		}
		for i := len(d.layers) - 2; i >= 0; i-- {
			d.sortLayer(i, func(s *spot) []link { return s.down })
		}
		if now := d.crossings(); now < crossings {
			best, crossings = d.snapshot(), now
		}
	}
	d.layers = best
	d.number()
}

// begin puts what is connected side by side: the layers in the order in which a walk over the edges comes by.
func (d *drawing) begin() {
	ordered := make([][]int, len(d.layers))
	seen := make([]bool, len(d.spots))
	var visit func(i int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		ordered[d.spots[i].layer] = append(ordered[d.spots[i].layer], i)
		for _, l := range d.spots[i].down {
			visit(l.to)
		}
	}
	for _, layer := range d.layers {
		for _, i := range layer {
			visit(i)
		}
	}
	d.layers = ordered
	d.number()
}

func (d *drawing) snapshot() [][]int {
	out := make([][]int, len(d.layers))
	for i, layer := range d.layers {
		out[i] = slices.Clone(layer)
	}
	return out
}

func (d *drawing) number() {
	for _, layer := range d.layers {
		for at, i := range layer {
			d.spots[i].at = at
		}
	}
}

func (d *drawing) sortLayer(n int, links func(*spot) []link) {
	layer := d.layers[n]
	mean := make(map[int]float64, len(layer))
	for _, i := range layer {
		s := &d.spots[i]
		mean[i] = float64(s.at)
		if ls := links(s); len(ls) > 0 {
			sum := 0.0
			for _, l := range ls {
				sum += d.end(l)
			}
			mean[i] = sum / float64(len(ls))
		}
	}
	slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
	for at, i := range layer {
		d.spots[i].at = at
	}
}

// end is where in its layer a link ends: the place of the spot, and where on that.
func (d *drawing) end(l link) float64 {
	s := &d.spots[l.to]
	if s.width == 0 {
		return float64(s.at)
	}
	return float64(s.at) + l.peer/s.width
}

// crossings counts how many pairs of edges cross.
func (d *drawing) crossings() (n int) {
	for _, layer := range d.layers {
		var ends []float64 // in the layer below, of edges in the order of their beginnings
		for _, i := range layer {
			links := slices.Clone(d.spots[i].down)
			slices.SortFunc(links, func(a, b link) int { return cmp.Or(cmp.Compare(a.own, b.own), cmp.Compare(d.end(a), d.end(b))) })
			for _, l := range links {
				ends = append(ends, d.end(l))
			}
		}
		n += inversions(ends)
	}
	return n
}

// inversions counts the pairs of which the greater one comes first (by a Fenwick tree over the ranks).
func inversions(numbers []float64) (n int) {
	sorted := slices.Clone(numbers)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	tree := make([]int, len(sorted)+1)
	for seen, v := range numbers {
		rank, _ := slices.BinarySearch(sorted, v)
		smaller := 0 // or equal
		for i := rank + 1; i > 0; i -= i & -i {
			smaller += tree[i]
		}
		n += seen - smaller
		for i := rank + 1; i < len(tree); i += i & -i {
			tree[i]++
		}
	}
	return n
}
