package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/group"
)

// A task's standby is in another zone than the task, where the instances say in which they are.
func TestStandbysAreSpread(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "spread")
	a.create("in", 4)
	a.create("out", 1)
	zones := map[*instance]string{}
	for name, zone := range map[string]string{"i1": "a", "i2": "a", "i3": "b"} {
		i := a.start(counts(a.name), name, Standbys(1), WarmupReplicas(0), SpreadStandbys("zone"), Tags(map[string]string{"zone": zone}))
		zones[i] = zone
	}
	eventually(t, "each task has a standby, in the other zone", func() bool {
		tasks, copies := map[string]string{}, map[string]string{}
		for i, zone := range zones {
			s := i.Stats()
			for _, task := range s.Tasks {
				if task.Running && strings.HasPrefix(task.Name, "1_") {
					tasks[task.Name] = zone
				}
			}
			for _, copied := range s.Standbys {
				copies[copied.Name] = zone
			}
		}
		inA := 0
		for name, zone := range tasks {
			if copies[name] == "" || copies[name] == zone {
				return false
			}
			if zone == "a" {
				inA++
			}
		}
		return len(tasks) == 4 && len(copies) == 4 && inA >= 2
	})
}

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
