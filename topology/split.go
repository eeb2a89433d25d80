package topology

import (
	"strconv"

	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
)

// Split sends each record down the first branch that takes it. Records that no branch takes end here, unless there is a Default.
//
//	split := orders.Split()
//	large := split.Branch(func(_ string, o Order) bool { return o.Amount > 1000 })
//	rest := split.Default()
func (s *Stream[K, V]) Split[_ onUse](opts ...Option) *Split[K, V] {
	b := s.s.b
	o := newSettings(opts, optName)
	split := &Split[K, V]{stream: s.s, name: b.graph.NameOr(o.userName, "KSTREAM-BRANCH-")}
	split.node = logical.NewNode(split.name, &logical.Processor{
		Supplier: processors.SupplierFunc(func(rt processors.Runtime, children []processors.Child) (processors.Instance, error) {
			return processors.Branch(split.routes).New(rt, children)
		}),
	})
	b.report(split.name, o)
	b.graph.Add(split.node, s.s.node)
	return split
}

// Split is a stream that is being split.
type Split[K, V any] struct {
	stream *stream[K, V]
	name   string
	node   *logical.Node
	routes []processors.Route[K, V] // the default is last
	ended  bool
}

// Branch adds a branch for the records that no earlier branch has taken and for which take is true. The branch's node is named after
// the split's, followed by the option Name, or by the branch's number from 1 on.
func (s *Split[K, V]) Branch[_ onUse](take func(K, V) bool, opts ...Option) *Stream[K, V] {
	return s.TryBranch(lift2(take), opts...)
}

// TryBranch is Branch with a function that may fail.
func (s *Split[K, V]) TryBranch[_ onUse](take func(K, V) (bool, error), opts ...Option) *Stream[K, V] {
	return s.branch(len(s.routes)+1, take, take == nil, opts)
}

// Default adds the branch for all records that no other branch has taken. It ends the split.
func (s *Split[K, V]) Default[_ onUse](opts ...Option) *Stream[K, V] {
	return s.branch(0, nil, false, opts)
}

func (s *Split[K, V]) branch(number int, take func(K, V) (bool, error), missing bool, opts []Option) *Stream[K, V] {
	o := newSettings(opts, optName)
	suffix := o.userName
	if suffix == "" {
		suffix = strconv.Itoa(number)
	}
	b := s.stream.b
	name := s.name + suffix
	b.graph.NewName(name) // a number that Kafka Streams takes
	if missing {
		o.bad(plan.InvalidArgument, "the function is nil")
	}
	if s.ended {
		o.bad(plan.TopologyProblem, "the split has its default branch already: add other branches before it")
	}
	s.ended = number == 0
	s.routes = append(s.routes, processors.Route[K, V]{Child: name, When: take})
	b.report(name, o)
	node := b.graph.Add(logical.NewNode(name, &logical.Processor{Supplier: processors.PassThrough[K, V]()}), s.node)
	in := s.stream
	return &Stream[K, V]{&stream[K, V]{
		b: b, node: node, key: in.key, value: in.value, sources: in.sources, rekeyed: in.rekeyed, windows: in.windows,
	}}
}
