package topology

import (
	"math"
	"time"

	"github.com/tributary-io/tributary/internal/plan"
)

// AdvanceIdle lets stream time go on with the wall clock while nothing comes: once all inputs of a task have been read to their end and
// nothing has come for so long, its stream time moves on by as much as the wall clock has since. Windows then close, suppressed results
// and records without a match come out, and stream-time punctuations fire, as if a record had moved the time. It moves on until the next
// record, and is not undone by it: a record of before counts as late. Choose a time that no producer's pause exceeds, unless what it sends
// afterwards is new.
//
// Sources may say otherwise for themselves: see AdvanceAfter.
//
// It is off by default, as in Kafka Streams, where only records move stream time and so the last windows of a quiet partition stay open.
// With it results depend on the wall clock. Time goes on in steps of a quarter of after. In package topologytest only AdvanceWallClock
// moves it.
func AdvanceIdle(after time.Duration) BuilderOption {
	return func(b *Builder) {
		b.nodes.write(func(pb *plan.Builder) { pb.AdvanceIdle(after.Milliseconds()) })
	}
}

// AdvanceAfter is AdvanceIdle for one source, in place of the Builder's: stream time of tasks that read it may go on with the wall clock once
// nothing has come from it for so long. It does when all of a task's sources let it, so after the longest of their times; behind a repartition
// those count that it is fed from. With 0 the source never lets it, whatever the Builder says: where a pause means that events are late, not that
// there are none.
func AdvanceAfter(idle time.Duration) Option {
	return Option{optIdle, func(s *settings) {
		if idle < 0 || idle > 0 && idle < time.Millisecond {
			s.bad(plan.InvalidArgument, "option AdvanceAfter is given %v: it takes 0, or a millisecond or more", idle)
		}
		s.idle.Advance = plan.Setting{Set: true, Ms: idle.Milliseconds()}
	}}
}

// WaitFor says how long records of a task's other sources wait for those of this one while it is read to its end, in place of engine.MaxTaskIdle:
// 0 is not at all, Forever until something comes. The task then takes the earliest of what it has.
//
// It has no effect in package topologytest, where nothing waits.
func WaitFor(d time.Duration) Option {
	return Option{optIdle, func(s *settings) {
		if d < 0 {
			s.bad(plan.InvalidArgument, "option WaitFor is given %v", d)
		}
		s.idle.Wait = plan.Setting{Set: true, Ms: d.Milliseconds()}
		if d == Forever {
			s.idle.Wait.Ms = math.MaxInt64
		}
	}}
}
