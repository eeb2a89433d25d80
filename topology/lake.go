package topology

import (
	"reflect"

	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
)

// ToLake lands the stream in a table, each record as a row.
//
// The name of the sink, given by the option Name, is part of the table's record of progress: a sink that gets another name reads its
// input from the start again. Where nothing but lake sinks without state hangs on a source, rows carry the source's own offsets;
// everywhere else the rows go through an internal topic, which is written in the same transaction as everything else.
func (s *Stream[K, V]) ToLake[_ onUse](table sink.Sink, opts ...Option) {
	streamToLake(s.s, table, opts)
}

func streamToLake[K, V any](s *stream[K, V], table sink.Sink, opts []Option) {
	o := s.b.operator(opts, optName|serdeOptions, "LAKE-SINK-", false)
	if o.userName == "" {
		s.b.graph.AddImplicit(logical.Implicit{Lake: o.name})
	}
	key, value := keySerde(o.settings, s.key), valueSerde(o.settings, s.value)
	if table == nil {
		o.bad(plan.InvalidArgument, "the table is nil")
	} else if err := table.Bind(reflect.TypeFor[K](), reflect.TypeFor[V]()); err != nil {
		o.problems = append(o.problems, plan.Problem{
			Kind: plan.InvalidArgument, Message: "rows of " + table.String() + " can't be made of the stream", Err: err,
		})
	}
	lake := plan.LakeSink{
		Name: o.name, Sink: table, Direct: processors.LakeSink[K, V]{},
		Staged: func(topic string) (processors.Supplier, processors.SourceSupplier, processors.Supplier, error) {
			if err := needSerdes(key, value); err != nil {
				return nil, nil, nil, err
			}
			noteFormat(s.b, topic, key, value)
			return processors.LakeForward[K, V]{Topic: topic, Key: key, Value: value},
				processors.TopicSource[K, V]{Key: key, Value: value, Table: true}, // Table: nulls pass
				processors.LakeSink[K, V]{}, nil
		},
	}
	s.b.report(o.name, o.settings)
	s.b.graph.Add(logical.NewNode(o.name, &logical.Lake{Sink: lake}), s.node)
}
