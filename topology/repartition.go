package topology

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/tributary-io/tributary/internal/logical"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
)

// throughTopic makes the parts of a repartition that depend on the types.
func throughTopic[K, V any](b *Builder, key serde.Serde[K], value serde.Serde[V], partition partitioning[K, V]) logical.RepartitionTyped {
	return logical.RepartitionTyped{
		Filter: func(dropNullKeys bool) processors.Supplier {
			if dropNullKeys {
				return dropNullKey[K, V]()
			}
			return processors.PassThrough[K, V]()
		},
		Ends: func(topic string, coordinates bool) (processors.Supplier, processors.SourceSupplier, error) {
			if err := needSerdes(key, value); err != nil {
				return nil, nil, err
			}
			noteFormat(b, topic, key, value)
			sink := processors.TopicSink[K, V]{
				Topic: topic, Key: key, Value: value, Partitioner: partition.one, Multicast: partition.many, Coordinates: coordinates,
			}
			return sink, processors.TopicSource[K, V]{Key: key, Value: value, Table: true}, nil // Table: nulls pass
		},
		Complete: key != nil && value != nil,
		FullName: b.full,
	}
}

// dropNullKey lets records with a key pass. Those without belong to no partition, and are not counted as dropped (as in Kafka
// Streams).
func dropNullKey[K, V any]() processors.Supplier {
	return processors.SupplierFunc(func(_ processors.Runtime, children []processors.Child) (processors.Instance, error) {
		next, err := processors.Fan[K, V](children)
		pass := func(r *processors.Record[K, V]) error {
			if r.KeyNull {
				return nil
			}
			return next(r)
		}
		return processors.Instance{Next: processors.Next[K, V](pass)}, err
	})
}

// needSerdes says which serde is unknown, and what to do.
func needSerdes[K, V any](key serde.Serde[K], value serde.Serde[V]) error {
	var missing []plan.MissingSerde
	if key == nil {
		missing = append(missing, missingSerde[K]("key"))
	}
	if value == nil {
		missing = append(missing, missingSerde[V]("value"))
	}
	if len(missing) == 0 {
		return nil
	}
	var what, options []string
	for _, m := range missing {
		option := "topology.KeySerde"
		if m.What == "value" {
			option = "topology.ValueSerde"
		}
		what = append(what, fmt.Sprintf("the %s (%v)", m.What, m.Type))
		options = append(options, option+suchAsJSON(m.Type))
	}
	return &plan.UnknownSerdes{Missing: missing, Text: fmt.Sprintf("no serde is known for %s: give %s to this operator, or to the one that makes it",
		strings.Join(what, " and "), strings.Join(options, " and "))}
}

// suchAsJSON is the argument of an option for a type that JSON can hold.
func suchAsJSON(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Struct, reflect.Pointer, reflect.Map, reflect.Slice:
		return fmt.Sprintf("(serde.JSON[%v]()) or another serde", of)
	}
	return ""
}

// missingSerde names what is unknown. That of a key in windows is unknown since the key's is.
func missingSerde[T any](what string) plan.MissingSerde {
	of := reflect.TypeFor[T]()
	if of.Kind() == reflect.Struct && of.PkgPath() == reflect.TypeFor[processors.Window]().PkgPath() && strings.HasPrefix(of.Name(), "Windowed[") {
		of = of.Field(0).Type
	}
	return plan.MissingSerde{What: what, Type: of}
}

// Repartition sends the stream through a topic of its own, so that records of one key come together in a partition, or so that there
// are more partitions (option Partitions).
func (s *Stream[K, V]) Repartition[_ onUse](opts ...Option) *Stream[K, V] {
	return &Stream[K, V]{repartition(s.s, opts)}
}

func repartition[K, V any](s *stream[K, V], opts []Option) *stream[K, V] {
	b := s.b
	o := newSettings(opts, optName|serdeOptions|optPartitions|optPartitioner|optMulticast)
	name := o.userName
	if name == "" {
		name = b.graph.NewName("KSTREAM-REPARTITION-")
	}
	key, value := keySerde(o, s.key), valueSerde(o, s.value)
	node := b.graph.NewRepartition(name, o.userName != "", throughTopic(b, key, value, givenPartitioning[K, V](o)))
	op := node.Repartition()
	op.Optimizable = false
	if o.has(optPartitions) {
		if o.partitions <= 0 {
			o.bad(plan.InvalidArgument, "option Partitions: %d is no number of partitions", o.partitions)
		}
		op.Partitions = int32(o.partitions)
	}
	b.report(node.Name, o)
	b.graph.Add(node, s.node)
	return &stream[K, V]{b: b, node: node, key: key, value: value, sources: []string{node.Name}, windows: s.windows}
}

// repartitionForJoin returns s itself if its records are where their keys belong, else s behind a repartition topic named base, which
// all joins of s share where the name is generated.
func repartitionForJoin[K, V any](s *stream[K, V], base string, named bool, key serde.Serde[K], value serde.Serde[V]) *stream[K, V] {
	if !s.rekeyed {
		return s
	}
	node := s.b.graph.NewRepartition(base, named, throughTopic(s.b, key, value, partitioning[K, V]{})) // takes numbers even if not used
	if s.joinTopic == nil || s.node.Name != base {
		s.joinTopic = s.b.graph.Add(node, s.node)
	}
	return &stream[K, V]{
		b: s.b, node: s.joinTopic, key: key, value: value, sources: []string{s.joinTopic.Name}, windows: s.windows,
	}
}

// To writes the stream to a topic, which has to exist, with each record's time and headers.
func (s *Stream[K, V]) To[_ onUse](topic string, opts ...Option) { streamTo(s.s, topic, opts) }

// ToDynamic writes each record to the topic that f names; all of them have to exist.
func (s *Stream[K, V]) ToDynamic[_ onUse](f func(K, V) string, opts ...Option) {
	if f == nil {
		s.TryToDynamic(nil, opts...)
		return
	}
	s.TryToDynamic(func(r *processors.Record[K, V]) (string, error) { return f(r.Key, r.Value), nil }, opts...)
}

// TryToDynamic is ToDynamic with a function that may fail and that sees the whole record.
func (s *Stream[K, V]) TryToDynamic[_ onUse](f func(*processors.Record[K, V]) (string, error), opts ...Option) {
	streamToDynamic(s.s, f, opts)
}

func streamTo[K, V any](s *stream[K, V], topic string, opts []Option) {
	sinkStream(s, topic, nil, s.b.operator(opts, sinkOptions, "KSTREAM-SINK-", false))
}

func streamToDynamic[K, V any](s *stream[K, V], choose func(*processors.Record[K, V]) (string, error), opts []Option) {
	o := s.b.operator(opts, sinkOptions, "KSTREAM-SINK-", choose == nil)
	if choose == nil { // reported; the sink is still one that chooses
		choose = func(*processors.Record[K, V]) (string, error) { return "", nil }
	}
	sinkStream(s, "", choose, o)
}

const sinkOptions = optName | serdeOptions | optPartitioner | optMulticast

// sinkStream writes to topic, or to the topic that each record chooses.
func sinkStream[K, V any](s *stream[K, V], topic string, choose func(*processors.Record[K, V]) (string, error), o *operation) {
	partition := givenPartitioning[K, V](o.settings)
	sink := processors.TopicSink[K, V]{
		Topic: topic, TopicOf: choose,
		Key: keySerde(o.settings, s.key), Value: valueSerde(o.settings, s.value),
		Partitioner: partition.one, Multicast: partition.many,
	}
	if sink.Partitioner == nil && sink.Multicast == nil {
		sink.PartitionKey = processors.KeyWithoutWindow(sink.Key, topic)
	}
	if err := needSerdes(sink.Key, sink.Value); err != nil {
		o.unknownSerdes("", err)
	}
	s.b.report(o.name, o.settings)
	s.b.graph.Add(logical.NewNode(o.name, &logical.Sink{Topic: topic, Dynamic: choose != nil, Supplier: sink}), s.node)
}
