// Package topology declares stream processing topologies: streams and tables read from Kafka topics, operators on them, and the
// topics and lake tables they end in.
//
//	b := topology.NewBuilder("order-totals")
//	orders := b.Stream("orders", serde.String, serde.JSON[Order]())
//	customers := b.Table("customers", serde.String, serde.JSON[Customer]())
//
//	orders.
//		DedupBy(func(o Order) string { return o.EventID }, 24*time.Hour).
//		Join(customers, enrich).
//		GroupBy(func(_ string, e Enriched) string { return e.Region }, topology.ValueSerde(serde.JSON[Enriched]())).
//		Windowed(topology.Tumbling(5*time.Minute).Grace(10*time.Minute)).
//		Count(topology.Store("orders-by-region")).
//		EmitFinal().
//		ToStream().
//		Map(toRow).
//		ToLake(lake.Delta("s3://lake/raw/orders__region_counts"), topology.Name("region-counts"))
//	plan, err := b.Build()
//
// [Builder.Build] checks everything that can be checked without a broker, and tells all problems in one [*BuildError]. The [*Plan] that
// it makes is run by package engine, or in a test by package topologytest. The package does no I/O.
//
// # How a record passes through
//
// Each operator becomes one or more nodes of the plan. The nodes' implementations are in package processors; for each task the plan's
// suppliers wire them to each other as typed functions, so a record passes from node to node as a pointer, without boxing. Where
// records have to come together by a key that was changed, Build puts a repartition topic in between.
//
// # Nulls
//
// Kafka keys and values may be null. A Go type that can be nil (pointer, slice, map, interface) holds a null as nil; for other types
// a null in a stream's topic is a deserialization error that advises a pointer. In a table a null value is a delete: functions never
// see it. [Table.ToStream] passes deletes on; [Changes] gives them to functions as nil pointers. Left and outer joins take pointers
// for the side that may be missing.
//
// # Serdes
//
// Sources name the serdes of their keys and values. What an operator makes has the built-in serde of its Go type (see package serde),
// else that of its input if the type stays the same, or if the key is taken out of its window, else the one given by the options [KeySerde]
// and [ValueSerde]. Where a topic, a store or a repartition needs a serde that is unknown, Build says so.
//
// # Names
//
// Generated names of nodes, stores and internal topics are those of Kafka Streams for the same topology, so that an application can be
// moved with its state. They shift when an operator is inserted before them: name what is durable with [Name] and [Store], or refuse
// generated names with [StrictNames]. docs/semantics/naming.md has the rules.
//
// # Types
//
// Keys are of any type; they are compared by their bytes. Go's generic methods can't speak of ever larger types of their own, so
// windowed results have types of their own ([WindowedTable], [WindowedStream]), and some operators are functions ([Flatten],
// [FlattenTable], [Changes]).
//
// Some methods show a type parameter [_ onUse]. It is inferred: call them as if it weren't there. With it the compiler makes the code of those methods
// only that are called (docs/decisions/compile-time.md).
package topology
