package console

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-io/tributary/console/internal/layered"
	"github.com/tributary-io/tributary/internal/plan"
)

// drawing is a topology as boxes and lines: sub-topologies as frames with their nodes and stores in them, and topics and tables between the frames.
type drawing struct {
	width, height float64
	frames        []frame
	shapes        []shape
	lines         []line
}

// frame is a sub-topology.
type frame struct {
	rect
	title string
}

// rect is a place, by its upper left corner.
type rect struct{ x, y, w, h float64 }

// shape is a node, a store, a topic or a table.
type shape struct {
	rect
	kind string // source, processor, sink, store, topic, internal, table
	text []string
	full string // what is behind it, for those who point at it
}

// line leads from one to another, by the points of a layered.Layout.
type line struct {
	way   []layered.Point
	store bool // between a processor and a store: data goes both ways
}

// Sizes, in px. A letter of the monospaced font is six tenths of its size wide, more or less.
const (
	fontSize     = 12.0
	letter       = 7.3
	lineHeight   = 15.0
	padX, padY   = 12.0, 8.0
	framePad     = 18.0
	frameTitle   = 24.0
	wrapAt       = 26 // letters
	linesAtMost  = 3
	shelf        = 1400.0 // parts that aren't connected stand side by side up to this width
	betweenParts = 40.0
)

// draw draws a plan.
func draw(p *plan.Plan) *drawing {
	b := &sketch{plan: p, topics: map[string]int{}}
	for _, s := range p.Subtopologies {
		b.frame(s, "Sub-topology "+strconv.Itoa(s.ID))
	}
	for _, s := range p.Globals {
		b.frame(s, "Sub-topology "+strconv.Itoa(s.ID)+", global")
	}
	return b.finish()
}

// sketch is a drawing on its way: what stands between frames, and the frames with their insides.
type sketch struct {
	plan   *plan.Plan
	outer  layered.Graph
	boxes  []any // *inside or shape, of the outer graph
	edges  []port
	topics map[string]int // boxes
}

// inside is a sub-topology, laid out by itself.
type inside struct {
	title  string
	width  float64
	shapes []shape // placed in the frame
	lines  []line
	center map[*plan.Node]layered.Point
	half   map[*plan.Node]float64 // of the height
}

// port is where an outer edge meets a node inside of a frame.
type port struct {
	frame int
	node  *plan.Node
}

// frame adds a sub-topology with the topics and tables around it.
func (b *sketch) frame(s *plan.Subtopology, title string) {
	in := layInside(b.plan, s, title)
	at := len(b.boxes)
	b.boxes = append(b.boxes, in)
	b.outer.Boxes = append(b.outer.Boxes, layered.Box{Width: in.width, Height: in.height()})
	for _, n := range s.Nodes {
		switch n.Kind {
		case plan.SourceNode:
			if n.Pattern != "" {
				b.connect(b.free("topic", "matches "+n.Pattern, "topics that match "+n.Pattern), at, n, true)
			}
			for _, topic := range n.Topics {
				b.connect(b.topic(topic), at, n, true)
			}
		case plan.SinkNode:
			if n.Dynamic {
				b.connect(b.free("topic", "a topic by record", "each record chooses its topic"), at, n, false)
			} else {
				b.connect(b.topic(n.Topic), at, n, false)
			}
		case plan.LakeNode:
			place := plain(n.Lake.Sink.String())
			b.connect(b.free("table", place, "table "+place), at, n, false)
		}
	}
}

// topic is the box of a topic; there is one of each.
func (b *sketch) topic(name string) int {
	if at, ok := b.topics[name]; ok {
		return at
	}
	kind, short, full := "topic", name, "topic "+name
	if b.plan.InternalTopics[name] != nil {
		kind, short, full = "internal", strings.TrimPrefix(name, b.plan.ApplicationID+"-"), "internal topic "+name
	}
	b.topics[name] = b.free(kind, short, full)
	return b.topics[name]
}

// free adds a box that stands outside of frames.
func (b *sketch) free(kind, text, full string) int {
	s := newShape(kind, text, full)
	b.boxes = append(b.boxes, s)
	b.outer.Boxes = append(b.outer.Boxes, layered.Box{Width: s.w, Height: s.h})
	return len(b.boxes) - 1
}

func (b *sketch) connect(box, frame int, n *plan.Node, in bool) {
	x := b.boxes[frame].(*inside).center[n].X - b.outer.Boxes[frame].Width/2
	e := layered.Edge{From: box, To: frame, ToX: x}
	if !in {
		e = layered.Edge{From: frame, To: box, FromX: x}
	}
	b.outer.Edges = append(b.outer.Edges, e)
	b.edges = append(b.edges, port{frame, n})
}

// height is that of the frame: of its shapes, with a margin.
func (in *inside) height() float64 {
	h := frameTitle
	for _, s := range in.shapes {
		h = max(h, s.y+s.h)
	}
	return h + framePad
}

// layInside lays out the nodes and stores of a sub-topology.
func layInside(p *plan.Plan, s *plan.Subtopology, title string) *inside {
	in := &inside{title: title, center: map[*plan.Node]layered.Point{}, half: map[*plan.Node]float64{}}
	g := layered.Graph{BoxGap: 18, LayerGap: 26, LaneGap: 10}
	box := map[any]int{} // by node, or name of a store
	add := func(key any, s shape, top, bottom bool) int {
		if at, ok := box[key]; ok {
			return at
		}
		box[key] = len(in.shapes)
		in.shapes = append(in.shapes, s)
		g.Boxes = append(g.Boxes, layered.Box{Width: s.w, Height: s.h, Top: top, Bottom: bottom})
		return box[key]
	}
	for _, n := range s.Nodes {
		end := n.Kind == plan.SinkNode || n.Kind == plan.LakeNode
		add(n, newShape(kindOf(n), n.Name, nodeText(n)), n.Kind == plan.SourceNode, end)
	}
	var stored []bool // by edge
	for _, n := range s.Nodes {
		for _, child := range n.Children {
			if to, ok := box[child]; ok {
				g.Edges, stored = append(g.Edges, layered.Edge{From: box[n], To: to}), append(stored, false)
			}
		}
		for _, name := range n.Stores {
			to := add(name, newShape("store", name, storeText(p, name)), false, false)
			g.Edges, stored = append(g.Edges, layered.Edge{From: box[n], To: to}), append(stored, true)
		}
	}
	l := layered.Compute(&g)
	in.width = max(l.Width+2*framePad, textWidth(title)+2*framePad)
	left := (in.width - l.Width) / 2
	for i, c := range l.Centers {
		in.shapes[i].x, in.shapes[i].y = left+c.X-in.shapes[i].w/2, frameTitle+c.Y-in.shapes[i].h/2
	}
	for _, n := range s.Nodes {
		c := l.Centers[box[n]]
		in.center[n], in.half[n] = layered.Point{X: left + c.X, Y: frameTitle + c.Y}, g.Boxes[box[n]].Height/2
	}
	for i, way := range l.Routes {
		if way != nil {
			in.lines = append(in.lines, line{moved(way, left, frameTitle), stored[i]})
		}
	}
	return in
}

func kindOf(n *plan.Node) string {
	switch n.Kind {
	case plan.SourceNode:
		return "source"
	case plan.ProcessorNode:
		return "processor"
	}
	return "sink"
}

func nodeText(n *plan.Node) string {
	switch n.Kind {
	case plan.SourceNode:
		return "source " + n.Name + ", reads " + strings.Join(append(slices.Clone(n.Topics), nonEmpty(n.Pattern)...), ", ")
	case plan.ProcessorNode:
		if len(n.Stores) > 0 {
			return "processor " + n.Name + ", with " + strings.Join(n.Stores, ", ")
		}
		return "processor " + n.Name
	case plan.LakeNode:
		return "sink " + n.Name + ", lands in " + plain(n.Lake.Sink.String())
	}
	if n.Dynamic {
		return "sink " + n.Name + ", each record chooses its topic"
	}
	return "sink " + n.Name + ", writes " + n.Topic
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func storeText(p *plan.Plan, name string) string {
	s := p.Stores[name]
	if s == nil {
		return "store " + name
	}
	text := "store " + name + ", " + s.Spec.Kind.String()
	if s.Spec.InMemory {
		text += ", in memory"
	}
	if s.Changelog != "" {
		text += ", backed up in " + s.Changelog
	}
	return text
}

func moved(way []layered.Point, x, y float64) []layered.Point {
	out := make([]layered.Point, len(way))
	for i, p := range way {
		out[i] = layered.Point{X: p.X + x, Y: p.Y + y}
	}
	return out
}

// open gives topics that are written below where they are read a second box, for those who read them: lines would have to go up through frames.
func (b *sketch) open() {
	for i, closes := range layered.Circular(&b.outer) {
		e := &b.outer.Edges[i]
		end := &e.From
		if _, framed := b.boxes[e.From].(*inside); framed {
			end = &e.To
		}
		if closes {
			b.boxes = append(b.boxes, b.boxes[*end])
			b.outer.Boxes = append(b.outer.Boxes, b.outer.Boxes[*end])
			*end = len(b.boxes) - 1
		}
	}
}

// finish lays the frames out, part by part of what is connected, and the parts in rows.
func (b *sketch) finish() *drawing {
	b.open()
	d := &drawing{}
	x, y, row := 0.0, 0.0, 0.0
	for _, p := range b.parts() {
		l := layered.Compute(&p.graph)
		if x > 0 && x+l.Width > shelf {
			x, y, row = 0, y+row+betweenParts, 0
		}
		b.place(d, p, l, x, y)
		x += l.Width + betweenParts
		row = max(row, l.Height)
	}
	d.height = y + row
	return d
}

// connected is a part of the outer graph that is connected.
type connected struct {
	graph layered.Graph
	boxes []int // of the whole
	edges []int
}

// parts takes the outer graph apart.
func (b *sketch) parts() []*connected {
	root := make([]int, len(b.boxes))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for _, e := range b.outer.Edges {
		if x, y := find(e.From), find(e.To); x != y {
			root[max(x, y)] = min(x, y)
		}
	}
	var all []*connected
	byRoot, at := map[int]*connected{}, make([]int, len(b.boxes))
	for i, box := range b.outer.Boxes {
		p := byRoot[find(i)]
		if p == nil {
			p = &connected{graph: layered.Graph{BoxGap: 30, LayerGap: 34, LaneGap: 14, Hang: true}}
			byRoot[find(i)] = p
			all = append(all, p)
		}
		at[i] = len(p.boxes)
		p.boxes = append(p.boxes, i)
		p.graph.Boxes = append(p.graph.Boxes, box)
	}
	for i, e := range b.outer.Edges {
		p := byRoot[find(e.From)]
		e.From, e.To = at[e.From], at[e.To]
		p.graph.Edges = append(p.graph.Edges, e)
		p.edges = append(p.edges, i)
	}
	return all
}

// place puts a part into the drawing.
func (b *sketch) place(d *drawing, p *connected, l *layered.Layout, x, y float64) {
	d.width = max(d.width, x+l.Width)
	corner := map[int]layered.Point{} // of frames
	for i, box := range p.boxes {
		size := p.graph.Boxes[i]
		left, top := x+l.Centers[i].X-size.Width/2, y+l.Centers[i].Y-size.Height/2
		switch v := b.boxes[box].(type) {
		case *inside:
			corner[box] = layered.Point{X: left, Y: top}
			d.frames = append(d.frames, frame{rect{left, top, size.Width, size.Height}, v.title})
			for _, s := range v.shapes {
				s.x, s.y = s.x+left, s.y+top
				d.shapes = append(d.shapes, s)
			}
			for _, ln := range v.lines {
				d.lines = append(d.lines, line{moved(ln.way, left, top), ln.store})
			}
		case shape:
			v.x, v.y = left, top
			d.shapes = append(d.shapes, v)
		}
	}
	for i, edge := range p.edges {
		if l.Routes[i] == nil {
			continue
		}
		way := moved(l.Routes[i], x, y)
		to := b.edges[edge]
		in := b.boxes[to.frame].(*inside)
		node := corner[to.frame].Y + in.center[to.node].Y
		if p.graph.Edges[i].To == slices.Index(p.boxes, to.frame) { // on to the source, into the frame
			last := &way[len(way)-1]
			last.Y = node - in.half[to.node]
		} else {
			way[0].Y = node + in.half[to.node]
		}
		d.lines = append(d.lines, line{way: way})
	}
}

func newShape(kind, text, full string) shape {
	s := shape{kind: kind, text: wrap(text), full: full}
	for _, t := range s.text {
		s.w = max(s.w, textWidth(t))
	}
	s.w += 2 * padX
	s.h = float64(len(s.text))*lineHeight + 2*padY
	switch kind {
	case "topic", "internal":
		s.w += padX // its ends are round
	case "store":
		s.h += 10 // its lid
	}
	return s
}

func textWidth(s string) float64 { return float64(len([]rune(s))) * letter }

// wrap cuts a name into lines: behind a sign that joins words if there is one. What doesn't fit into the last one is left out.
func wrap(name string) []string {
	rest := []rune(name)
	var lines []string
	for len(rest) > wrapAt {
		if len(lines) == linesAtMost-1 {
			return append(lines, "…"+string(rest[len(rest)-wrapAt+1:])) // the end of a name tells more than its middle
		}
		at := wrapAt
		for i := wrapAt; i > wrapAt/3; i-- {
			if strings.ContainsRune("-_./ :,", rest[i-1]) {
				at = i
				break
			}
		}
		lines = append(lines, string(rest[:at]))
		rest = rest[at:]
	}
	if len(rest) > 0 || len(lines) == 0 {
		lines = append(lines, string(rest))
	}
	return lines
}
