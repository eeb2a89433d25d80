package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// dawdler passes records on, and takes its time to process one in a hundred and to close.
type dawdler struct {
	ctx            processors.ProcessorContext[string, string]
	record, closed time.Duration
	n              int
	closings       *atomic.Int64
	hurry          *atomic.Bool // all is done
}

func (d *dawdler) Init(ctx processors.ProcessorContext[string, string]) error {
	d.ctx = ctx
	return nil
}

func (d *dawdler) Process(r *processors.Record[string, string]) error {
	if d.n++; d.n%100 == 0 {
		time.Sleep(d.record)
	}
	return d.ctx.Forward(r)
}

func (d *dawdler) Close() error {
	d.closings.Add(1)
	if !d.hurry.Load() {
		time.Sleep(d.closed)
	}
	return nil
}

// Tasks that take longer to process a record and to close than a rebalance may take don't make the group go round in circles: members keep their
// places, and every record comes out once.
func TestSlowTasksDoNotMakeTheGroupLoop(t *testing.T) {
	t.Parallel() // it mostly sleeps
	const partitions, records, limit = 4, 400, 1500 * time.Millisecond
	a := newApp(t, brokertest.Embedded(t), "slow")
	a.create("in", partitions)
	a.create("out", 1)
	var closings [2]atomic.Int64
	var rebalances [2]atomic.Int64
	var hurry atomic.Bool
	start := func(n int) *instance {
		b := topology.NewBuilder(a.name)
		b.Stream(a.topic("in"), serde.String, serde.String).
			Process(func() processors.Processor[string, string, string, string] {
				return &dawdler{record: 2 * limit, closed: 2 * limit, closings: &closings[n], hurry: &hurry}
			}).
			To(a.topic("out"), topology.KeySerde(serde.String), topology.ValueSerde(serde.String))
		return a.start(build(b), []string{"i1", "i2"}[n], RebalanceTimeout(limit), SessionTimeout(6*time.Second), OnState(func(s State) {
			if s == Rebalancing {
				rebalances[n].Add(1)
			}
		}))
	}
	out := a.read("out")
	i1 := start(0)
	i1.await(t, "runs", func(s Stats) bool { return s.State == Running })
	a.produce("in", partitions, numbered(records, 10)...)
	i2 := start(1)
	i2.await(t, "has half", func(s Stats) bool { return s.State == Running && runningTasks(s) == partitions/2 })
	eventually(t, "all comes out", func() bool { return len(out.all()) >= records && i1.Stats().Lag+i2.Stats().Lag == 0 })
	if n := len(out.all()); n != records {
		t.Errorf("%d records came out, want %d", n, records)
	}
	hurry.Store(true)
	if n := closings[0].Load(); n > partitions+partitions/2 { // those that move, and all once for a commit that met the rebalance
		t.Errorf("the first instance closed tasks %d times", n)
	}
	for n := range rebalances {
		if got := rebalances[n].Load(); got > 4 {
			t.Errorf("instance %d went through %d rebalances", n+1, got)
		}
	}
	i1.stop(t)
	i2.stop(t)
}
