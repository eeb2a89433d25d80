package engine

import (
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/group"
)

// askedToRejoin is a membership that counts how often a rebalance was asked for.
type askedToRejoin struct {
	group.Membership
	times int
}

func (a *askedToRejoin) Rejoin() { a.times++ }

// An instance that leads looks again after the interval, once, whether tasks can move on.
func TestProbingInterval(t *testing.T) {
	now := time.Unix(1000, 0)
	e, err := New(counts("probing"), Brokers("localhost:1"), ProbingInterval(time.Minute), Clock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	asked := &askedToRejoin{}
	e.membership = asked
	m := &members{e: e}
	m.probeLater(true)
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{time.Minute, 0}, {time.Second, 1}, {time.Hour, 1}} {
		now = now.Add(step.after)
		if m.probe(); asked.times != step.want {
			t.Errorf("%v later: asked %d times, want %d", step.after, asked.times, step.want)
		}
	}
}
