package layered

import "slices"

// Graph is what is to be drawn.
type Graph struct {
	Boxes []Box
	Edges []Edge
	// Between boxes of a layer, and between layers. LaneGap is around edges that pass through a layer.
	BoxGap, LayerGap, LaneGap float64
	// Hang puts the boxes of a layer at its top, else they are in its middle.
	Hang bool
}

// Box is a node of the graph.
type Box struct {
	Width, Height float64
	// Top and Bottom put it into the first and into the last layer. Edges must not lead to the one, or from the other.
	Top, Bottom bool
}

// Edge leads from a box to another one, both by their index. Those from a box to itself are left out.
type Edge struct {
	From, To int
	// Where it leaves the one's bottom and reaches the other's top, from the middle of each.
	FromX, ToX float64
}

// Point is a place; y grows downward.
type Point struct{ X, Y float64 }

// Layout says where things are. All of it lies between 0 and Width, and 0 and Height.
type Layout struct {
	Width, Height float64
	Centers       []Point // of the boxes
	// Routes are the ways of the edges, each from its From to its To: pairs of points, with a straight vertical line from the first of a pair to
	// its second, and a change of the column between pairs. nil for an edge that was left out.
	Routes [][]Point
}

// Compute lays a graph out.
func Compute(g *Graph) *Layout {
	if len(g.Boxes) == 0 {
		return &Layout{Routes: make([][]Point, len(g.Edges))}
	}
	d := newDrawing(g)
	d.order()
	d.placeX()
	return d.layout()
}

// drawing is a graph on its way to a layout.
type drawing struct {
	g      *Graph
	spots  []spot // the boxes, then lanes of edges
	layers [][]int
	chains []chain // by edge
	x      []float64
}

// spot is something that takes place in a layer: a box, or the lane of an edge that passes.
type spot struct {
	layer    int
	width    float64
	lane     bool
	up, down []link
	at       int // in its layer
}

// link leads to a spot of the layer above or below.
type link struct {
	to        int
	own, peer float64 // where it begins and ends, from the middles
	weight    float64 // how straight it should be
}

// chain is the way of an edge over the layers, downward.
type chain struct {
	spots    []int // with both ends; nil: left out
	reversed bool  // it was turned round
	from, to float64
}

func newDrawing(g *Graph) *drawing {
	d := &drawing{g: g, chains: make([]chain, len(g.Edges))}
	reversed := Circular(g)
	for _, b := range g.Boxes {
		d.spots = append(d.spots, spot{width: b.Width})
	}
	for i, layer := range layersOf(g, reversed) {
		d.spots[i].layer = layer
	}
	for i, e := range g.Edges {
		if e.From == e.To {
			continue
		}
		c := &d.chains[i]
		c.reversed, c.from, c.to = reversed[i], e.FromX, e.ToX
		from, to := e.From, e.To
		if c.reversed {
			from, to, c.from, c.to = to, from, c.to, c.from
		}
		d.chain(c, from, to)
	}
	depth := 0
	for _, s := range d.spots {
		depth = max(depth, s.layer+1)
	}
	d.layers = make([][]int, depth)
	for i, s := range d.spots {
		d.layers[s.layer] = append(d.layers[s.layer], i)
	}
	return d
}

// chain gives an edge a lane in each layer that it passes.
func (d *drawing) chain(c *chain, from, to int) {
	c.spots = []int{from}
	for layer := d.spots[from].layer + 1; layer < d.spots[to].layer; layer++ {
		d.spots = append(d.spots, spot{layer: layer, width: d.g.LaneGap, lane: true})
		c.spots = append(c.spots, len(d.spots)-1)
	}
	c.spots = append(c.spots, to)
	for i := range len(c.spots) - 1 {
		a, b := c.spots[i], c.spots[i+1]
		l := link{to: b, weight: 1}
		if i == 0 {
			l.own = c.from
		}
		if i == len(c.spots)-2 {
			l.peer = c.to
		}
		switch lanes := d.spots[a].lane; {
		case lanes && d.spots[b].lane:
			l.weight = 8
		case lanes || d.spots[b].lane:
			l.weight = 2
		}
		d.spots[a].down = append(d.spots[a].down, l)
		d.spots[b].up = append(d.spots[b].up, link{to: a, own: l.peer, peer: l.own, weight: l.weight})
	}
}

// layout gives what was found.
func (d *drawing) layout() *Layout {
	out := &Layout{Centers: make([]Point, len(d.g.Boxes)), Routes: make([][]Point, len(d.g.Edges))}
	top, bottom := make([]float64, len(d.layers)), make([]float64, len(d.layers))
	left := d.x[0] - d.spots[0].width/2
	for i := range d.spots {
		left = min(left, d.x[i]-d.spots[i].width/2)
	}
	for n, layer := range d.layers {
		top[n] = out.Height
		height := 0.0
		for _, i := range layer {
			d.x[i] -= left
			out.Width = max(out.Width, d.x[i]+d.spots[i].width/2)
			if !d.spots[i].lane {
				height = max(height, d.g.Boxes[i].Height)
			}
		}
		bottom[n] = top[n] + height
		out.Height = bottom[n] + d.g.LayerGap
	}
	out.Height -= d.g.LayerGap
	for i := range d.g.Boxes {
		n := d.spots[i].layer
		out.Centers[i] = Point{d.x[i], (top[n] + bottom[n]) / 2}
		if d.g.Hang {
			out.Centers[i].Y = top[n] + d.g.Boxes[i].Height/2
		}
	}
	for i := range d.chains {
		out.Routes[i] = d.route(&d.chains[i], out.Centers, top, bottom)
	}
	return out
}

func (d *drawing) route(c *chain, centers []Point, top, bottom []float64) []Point {
	if c.spots == nil {
		return nil
	}
	first, last := c.spots[0], c.spots[len(c.spots)-1]
	start := Point{d.x[first] + c.from, centers[first].Y + d.g.Boxes[first].Height/2}
	end := Point{d.x[last] + c.to, centers[last].Y - d.g.Boxes[last].Height/2}
	way := []Point{start, {start.X, bottom[d.spots[first].layer]}}
	for _, i := range c.spots[1 : len(c.spots)-1] {
		n := d.spots[i].layer
		way = append(way, Point{d.x[i], top[n]}, Point{d.x[i], bottom[n]})
	}
	way = append(way, Point{end.X, top[d.spots[last].layer]}, end)
	if c.reversed {
		slices.Reverse(way)
	}
	return way
}
