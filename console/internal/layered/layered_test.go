package layered

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// sound checks what must hold of any layout: nothing overlaps, edges lead downward and end at their boxes, all is within the bounds.
func sound(t *testing.T, g *Graph, l *Layout) {
	t.Helper()
	const least = 1e-6
	for i, b := range g.Boxes {
		c := l.Centers[i]
		if c.X-b.Width/2 < -least || c.X+b.Width/2 > l.Width+least || c.Y-b.Height/2 < -least || c.Y+b.Height/2 > l.Height+least || math.IsNaN(c.X+c.Y) {
			t.Errorf("box %d at %v is outside of %v x %v", i, c, l.Width, l.Height)
		}
		for j := range i {
			o := g.Boxes[j]
			if math.Abs(c.X-l.Centers[j].X) < (b.Width+o.Width)/2+g.BoxGap-least && math.Abs(c.Y-l.Centers[j].Y) < (b.Height+o.Height)/2-least {
				t.Errorf("boxes %d and %d are too near", j, i)
			}
		}
	}
	for i, e := range g.Edges {
		way := l.Routes[i]
		if e.From == e.To {
			if way != nil {
				t.Errorf("edge %d leads from a box to itself, by %v", i, way)
			}
			continue
		}
		if len(way)%2 != 0 || len(way) < 4 {
			t.Fatalf("edge %d: %v", i, way)
		}
		for n := 0; n < len(way); n += 2 {
			if way[n].X != way[n+1].X {
				t.Errorf("edge %d isn't straight within a layer: %v", i, way)
			}
		}
		if way[0].X != l.Centers[e.From].X+e.FromX || way[len(way)-1].X != l.Centers[e.To].X+e.ToX {
			t.Errorf("edge %d doesn't begin and end where it should: %v", i, way)
		}
		for n := 2; n < len(way)-2; n += 2 { // its lanes keep clear of boxes
			for j, b := range g.Boxes {
				if c := l.Centers[j]; math.Abs(c.X-way[n].X) < b.Width/2 && math.Abs(c.Y-(way[n].Y+way[n+1].Y)/2) < b.Height/2 {
					t.Errorf("edge %d passes through box %d", i, j)
				}
			}
		}
	}
}

func gaps(g Graph) *Graph {
	g.BoxGap, g.LayerGap, g.LaneGap = 20, 30, 10
	return &g
}

func boxes(n int) []Box {
	all := make([]Box, n)
	for i := range all {
		all[i] = Box{Width: float64(40 + i%3*20), Height: float64(20 + i%2*10)}
	}
	return all
}

func TestChain(t *testing.T) {
	g := gaps(Graph{Boxes: boxes(3), Edges: []Edge{{From: 0, To: 1}, {From: 1, To: 2}}})
	l := Compute(g)
	sound(t, g, l)
	if l.Centers[0].X != l.Centers[1].X || l.Centers[1].X != l.Centers[2].X || l.Width != 80 || l.Height != 20+30+30+30+20 {
		t.Errorf("a chain isn't straight: %+v", l)
	}
}

func TestPinnedBoxes(t *testing.T) {
	g := gaps(Graph{Boxes: boxes(5), Edges: []Edge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 3}, {From: 4, To: 3}}})
	if l := Compute(g); l.Centers[4].Y != l.Centers[2].Y {
		t.Errorf("a root isn't beside the others that lead where it does: %+v", l.Centers)
	}
	g.Boxes[4].Top = true
	g.Edges = append(g.Edges, Edge{From: 0, To: 4})[:4]
	g.Boxes = append(g.Boxes, Box{Width: 10, Height: 10, Bottom: true})
	g.Edges = append(g.Edges, Edge{From: 0, To: 5})
	l := Compute(g)
	sound(t, g, l)
	if l.Centers[4].Y != l.Centers[0].Y || l.Centers[5].Y != l.Centers[3].Y {
		t.Errorf("top and bottom: %+v", l.Centers)
	}
}

func TestCircleAndLoop(t *testing.T) {
	g := gaps(Graph{Boxes: boxes(3), Edges: []Edge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 0}, {From: 1, To: 1}}})
	l := Compute(g)
	sound(t, g, l)
	if up := l.Routes[2]; up[0].Y <= up[len(up)-1].Y {
		t.Errorf("the edge that closes the circle leads down: %v", up)
	}
}

// Edges that need not cross don't, and siblings stand evenly below their parent.
func TestNoNeedlessCrossings(t *testing.T) {
	g := gaps(Graph{Boxes: make([]Box, 8), Edges: []Edge{{From: 0, To: 7}, {From: 1, To: 6}, {From: 2, To: 5}, {From: 3, To: 4}}})
	for i := range g.Boxes {
		g.Boxes[i] = Box{Width: 40, Height: 20}
	}
	d := newDrawing(g)
	d.order()
	if n := d.crossings(); n != 0 {
		t.Errorf("%d crossings", n)
	}
	wide := gaps(Graph{Boxes: []Box{{Width: 40, Height: 20}, {Width: 40, Height: 20}, {Width: 200, Height: 20}},
		Edges: []Edge{{From: 0, To: 2, ToX: 80}, {From: 1, To: 2, ToX: -80}}})
	if l := Compute(wide); l.Centers[0].X < l.Centers[1].X {
		t.Errorf("edges to the ends of a box cross: %v", l.Centers)
	}
	star := gaps(Graph{Boxes: make([]Box, 4), Edges: []Edge{{From: 0, To: 1}, {From: 0, To: 2}, {From: 0, To: 3}}})
	for i := range star.Boxes {
		star.Boxes[i] = Box{Width: 40, Height: 20}
	}
	l := Compute(star)
	sound(t, star, l)
	if math.Abs(l.Centers[0].X-l.Centers[2].X) > 0.5 {
		t.Errorf("the parent isn't above the middle: %v", l.Centers)
	}
}

func TestInversions(t *testing.T) {
	for range 50 {
		numbers := make([]float64, rand.IntN(30))
		for i := range numbers {
			numbers[i] = float64(rand.IntN(10))
		}
		want := 0
		for i := range numbers {
			for j := range i {
				if numbers[j] > numbers[i] {
					want++
				}
			}
		}
		if got := inversions(numbers); got != want {
			t.Fatalf("%v: %d, want %d", numbers, got, want)
		}
	}
}

// Random graphs of many sizes, with circles and edges over many layers, are drawn soundly, and twice the same.
func TestRandomGraphs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 150 {
		g := gaps(Graph{Boxes: boxes(1 + rnd.IntN(40))})
		for range rnd.IntN(2 * len(g.Boxes)) {
			e := Edge{From: rnd.IntN(len(g.Boxes)), To: rnd.IntN(len(g.Boxes))}
			e.FromX, e.ToX = rnd.Float64()*20-10, rnd.Float64()*20-10
			g.Edges = append(g.Edges, e)
		}
		l := Compute(g)
		sound(t, g, l)
		if fmt.Sprint(*l) != fmt.Sprint(*Compute(g)) {
			t.Errorf("graph %d is drawn differently again", n)
		}
		if t.Failed() {
			t.Fatalf("graph %d: %+v", n, *g)
		}
	}
}

func TestEmpty(t *testing.T) {
	if l := Compute(&Graph{}); l.Width != 0 || l.Height != 0 {
		t.Errorf("%+v", l)
	}
}
