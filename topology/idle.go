package topology

import (
	"time"

	"github.com/tributary-io/tributary/internal/plan"
)

// AdvanceIdle lets stream time go on with the wall clock while nothing comes: once all inputs of a task have been read to their end and
// nothing has come for so long, its stream time moves on by as much as the wall clock has since. Windows then close, suppressed results
// and records without a match come out, and stream-time punctuations fire, as if a record had moved the time. It moves on until the next
// record, and is not undone by it: a record of before counts as late. Choose a time that no producer's pause exceeds, unless what it sends
// afterwards is new.
//
// It is off by default, as in Kafka Streams, where only records move stream time and so the last windows of a quiet partition stay open.
// With it results depend on the wall clock. Time goes on in steps of a quarter of after. In package topologytest only AdvanceWallClock
// moves it.
func AdvanceIdle(after time.Duration) BuilderOption {
	return func(b *Builder) {
		b.nodes.write(func(pb *plan.Builder) { pb.AdvanceIdle(after.Milliseconds()) })
	}
}
