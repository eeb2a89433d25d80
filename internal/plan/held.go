package plan

import (
	"math"

	"github.com/tributary-io/tributary/processors"
)

// heldBack finds out how far the records that reach each node may be behind, because nodes before it, in this sub-topology or one that
// writes into its repartition topics, hold them back.
type heldBack struct {
	sinks map[string][]*Node // by internal topic
	held  map[*Node]int64
	span  map[*Node]int64 // the longest windows before the node and in it
}

// setHeld sets Node.HeldMs of all nodes.
func (p *Plan) setHeld() {
	h := heldBack{map[string][]*Node{}, map[*Node]int64{}, map[*Node]int64{}}
	for _, n := range p.Nodes {
		if n.Kind == SinkNode && p.InternalTopics[n.Topic] != nil {
			h.sinks[n.Topic] = append(h.sinks[n.Topic], n)
		}
	}
	for _, n := range p.Nodes {
		n.HeldMs = h.before(n)
	}
}

// before is how far behind the records are that reach n.
func (h *heldBack) before(n *Node) int64 {
	if held, ok := h.held[n]; ok {
		return held
	}
	h.held[n] = 0 // ends the search where internal topics go round
	held := int64(0)
	for _, topic := range n.Topics {
		for _, s := range h.sinks[topic] {
			held = max(held, h.before(s))
		}
	}
	for _, parent := range n.Parents {
		held = max(held, addMs(h.before(parent), h.in(parent)))
	}
	h.held[n] = held
	return held
}

// in is how long n itself holds records back.
func (h *heldBack) in(n *Node) int64 {
	holder, ok := n.Supplier.(processors.Holder)
	if !ok {
		return 0
	}
	return holder.HoldsMs(h.windows(n))
}

// windows is the length of the longest windows that n and those before it make.
func (h *heldBack) windows(n *Node) int64 {
	if span, ok := h.span[n]; ok {
		return span
	}
	span := int64(0)
	if w, ok := n.Supplier.(processors.Windower); ok {
		span = w.SpanMs()
	}
	for _, parent := range n.Parents {
		span = max(span, h.windows(parent))
	}
	h.span[n] = span
	return span
}

func addMs(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
