package logical

import (
	"regexp"
	"strings"
)

const repartitionSuffix = "-repartition"

// generatedName matches names that this package makes for streams.
var generatedName = regexp.MustCompile(`^KSTREAM.*-[0-9]{10}$`)

// NewRepartition makes the node of a repartition, and takes the three numbers that its names need. base is the topic's name, with or
// without its suffix. named says that the user chose it.
func (g *Graph) NewRepartition(base string, named bool, typed RepartitionTyped) *Node {
	topic := base
	if !strings.HasSuffix(base, repartitionSuffix) {
		topic += repartitionSuffix
	}
	if !named {
		g.AddImplicit(Implicit{Repartition: topic})
	}
	r := &Repartition{
		Topic: topic, Optimizable: true, Typed: typed,
		SinkName:   g.NewName("KSTREAM-SINK-"),
		FilterName: g.NewName("KSTREAM-FILTER-"),
	}
	source := g.NewName("KSTREAM-SOURCE-")
	if !generatedName.MatchString(base) {
		r.SinkName, r.FilterName, source = topic+"-sink", topic+"-filter", topic+"-source"
	}
	return NewNode(source, r)
}

// Repartition returns the operator of a node made by NewRepartition.
func (n *Node) Repartition() *Repartition { return n.op.(*Repartition) }
