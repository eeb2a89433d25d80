// Package gokacompat runs groups that were written for github.com/lovoo/goka as applications of Tributary, without a change to their
// callbacks, and gives goka's own processors Tributary's state.
//
//	group := goka.DefineGroup("clicks",
//		goka.Input("user-clicks", new(codec.String), count),
//		goka.Join("users-table", new(userCodec)),
//		goka.Output("alerts", new(codec.String)),
//		goka.Persist(new(codec.Int64)))
//
//	app, err := gokacompat.New(group)
//	...
//	err = app.Check(ctx, kgo.SeedBrokers("localhost:9092")) // is it safe to take over from goka?
//	...
//	plan, err := app.Plan()
//	...
//	e, err := engine.New(plan, engine.Brokers("localhost:9092"), engine.StateDir("state"))
//	...
//	err = e.Run(ctx)
//
// There are three ways in, each of use without the others:
//
//   - Serde, TypedSerde and Codec make serdes of goka's codecs and the other way round.
//   - Storage is a storage.Builder for goka's processors and views: state in Pebble, where a value and the offset of its record are written in
//     one batch.
//   - New turns a *goka.GroupGraph into a topology. Under exactly-once (the engine's default) each input record counts once in outputs, table
//     and loop.
//
// # How a record passes through
//
// The inputs and the loop are sources whose serde is the edge's codec. One processor takes them all, looks up the callback of the record's
// topic, and calls it with a goka.Context of its own. SetValue writes to a store whose changelog is goka's table topic; Emit and Loopback send
// to sinks that choose partitions as goka does. Tables of Join are stores that are filled by the same task; they are brought up to date before
// a record of an input is taken. Tables of Lookup are global stores.
//
// # What carries over
//
// The application's id is the group's name, so offsets, the table topic <group>-table and the loop topic <group>-loop are the same ones that
// goka uses, in the same formats. docs/coming-from-goka.md says how to change over, and back, and what differs.
//
// # What this package must not know
//
// How tasks are run: it builds on package topology, as a user would. Nothing else of the module imports it, so goka and its client are
// dependencies of those only who use it.
package gokacompat
