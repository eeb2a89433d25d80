package layered

import "slices"

// Circular tells by edge which ones close a circle. Compute draws these upward; one who would rather not have them can ask before.
func Circular(g *Graph) []bool {
	const (
		unseen = iota
		open
		done
	)
	out := make([][]int, len(g.Boxes)) // edges
	for i, e := range g.Edges {
		out[e.From] = append(out[e.From], i)
	}
	state := make([]int, len(g.Boxes))
	reversed := make([]bool, len(g.Edges))
	var visit func(box int)
	visit = func(box int) {
		state[box] = open
		for _, i := range out[box] {
			switch to := g.Edges[i].To; state[to] {
			case open:
				reversed[i] = true
			case unseen:
				visit(to)
			}
		}
		state[box] = done
	}
	incoming := make([]bool, len(g.Boxes))
	for _, e := range g.Edges {
		incoming[e.To] = incoming[e.To] || e.From != e.To
	}
	for box := range g.Boxes { // first those that nothing leads to
		if !incoming[box] {
			visit(box)
		}
	}
	for box := range g.Boxes {
		if state[box] == unseen {
			visit(box)
		}
	}
	return reversed
}

// layersOf gives each box a layer below all boxes that lead to it.
func layersOf(g *Graph, reversed []bool) []int {
	above, below := make([][]int, len(g.Boxes)), make([][]int, len(g.Boxes))
	for i, e := range g.Edges {
		from, to := e.From, e.To
		if from == to {
			continue
		}
		if reversed[i] {
			from, to = to, from
		}
		above[to], below[from] = append(above[to], from), append(below[from], to)
	}
	layer := make([]int, len(g.Boxes))
	deepest := 0
	for _, box := range downward(above, below) {
		for _, from := range above[box] {
			layer[box] = max(layer[box], layer[from]+1)
		}
		deepest = max(deepest, layer[box])
	}
	for i, b := range g.Boxes {
		switch {
		case b.Bottom:
			layer[i] = deepest
		case len(above[i]) == 0 && len(below[i]) > 0 && !b.Top: // as near as may be to what it leads to
			nearest := deepest
			for _, to := range below[i] {
				nearest = min(nearest, layer[to])
			}
			layer[i] = max(nearest-1, 0)
		}
	}
	return layer
}

// downward lists the boxes so that each comes behind all that lead to it.
func downward(above, below [][]int) []int {
	waits := make([]int, len(above))
	var ready, order []int
	for box := range above {
		if waits[box] = len(above[box]); waits[box] == 0 {
			ready = append(ready, box)
		}
	}
	for len(ready) > 0 {
		box := ready[0]
		ready = ready[1:]
		order = append(order, box)
		for _, to := range below[box] {
			if waits[to]--; waits[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	return slices.Clip(order)
}
