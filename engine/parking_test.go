package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// side is a topology that lands topics as they are, in0, in1 and so on, each in a table of its own.
func side(name string, tables ...*table) *topology.Plan {
	b := topology.NewBuilder(name)
	for i, t := range tables {
		b.Stream(fmt.Sprint(name, "-in", i), serde.String, serde.String).ToLake(t, topology.Name(fmt.Sprint("table", i)))
	}
	p, err := b.Build()
	if err != nil {
		panic(err)
	}
	return p
}

// is sets what is wrong with a table.
func (t *table) is(closed error, fault func(*table) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed, t.fault = closed, fault
}

// parkedTables are the reasons of a picture's parked tables, by sink, joined by those of its tasks, by name.
func parkedIn(s Stats) map[string]string {
	why := map[string]string{}
	for _, l := range s.Lake {
		if l.Parked != nil {
			why[l.Sink] = l.Parked.Error()
		}
	}
	for _, t := range s.Tasks {
		if t.Parked != nil {
			why[t.Name] = t.Parked.Error()
		}
	}
	return why
}

// Of four tables one refuses to be opened, one refuses rows, and one has no topic: the fourth lands, and the others do once they can, each row once.
func TestFaultsOfTablesStayWithThem(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "parkedtables")
	var tabs []*table
	for i := range 4 {
		tabs = append(tabs, newTable())
		if i < 3 {
			a.create(fmt.Sprint("in", i), 2)
			a.produce(fmt.Sprint("in", i), 2, unique(0, 100)...)
		}
	}
	tabs[1].is(errors.New("has a constraint"), nil)
	tabs[2].is(nil, func(*table) error {
		return &sink.RefusedError{Table: "memory", Reason: "changed its mind", Advice: "wait"}
	})
	i := a.start(side(a.name, tabs...), "i1", quickLake, ParkLake(), LookForTopics(100*time.Millisecond))
	eventually(t, "the first landed", func() bool { return tabs[0].count() == 100 })
	i.await(t, "the others are parked, and say why", func(s Stats) bool {
		why := parkedIn(s)
		return strings.Contains(why["table1"], "has a constraint") && strings.Contains(why["table2"], "changed its mind") &&
			strings.Contains(why["1_1"], "has a constraint") && strings.Contains(why["2_0"], "changed its mind") && s.State == Running
	})
	a.produce("in0", 2, unique(100, 100)...)
	eventually(t, "the first goes on", func() bool { return tabs[0].count() == 200 })
	tabs[1].is(nil, nil)
	tabs[2].is(nil, nil)
	a.create("in3", 2)
	a.produce("in3", 2, unique(0, 100)...)
	for n, tab := range tabs[1:] {
		eventually(t, fmt.Sprint("landed in table ", n+1), func() bool { return tab.count() >= 100 })
	}
	i.await(t, "nothing is parked", func(s Stats) bool { return len(parkedIn(s)) == 0 && s.Lag == 0 })
	i.stop(t)
	for n, rows := range []int{200, 100, 100, 100} {
		if err := tabs[n].once(unique(0, rows)); err != nil {
			t.Errorf("table %d: %v", n, err)
		}
	}
}

// Where no table can be opened, there is nothing to go on with.
func TestNoTableAtAllIsAnError(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "parkedall")
	tabs := []*table{newTable(), newTable()}
	for i, tab := range tabs {
		a.create(fmt.Sprint("in", i), 1)
		tab.is(fmt.Errorf("reason %d", i), nil)
	}
	err := a.start(side(a.name, tabs...), "i1", ParkLake()).failure(t)
	if err == nil || !strings.Contains(err.Error(), "reason 0") || !strings.Contains(err.Error(), "reason 1") {
		t.Errorf("got %v, want both reasons", err)
	}
}

// A task at a record that fails is parked there: the rows before it land, and its siblings go on. One whose table was lost is parked, too.
func TestFaultsOfTasksStayWithThem(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "parkedtasks")
	tabs := []*table{newTable(), newTable()}
	a.create("in0", 2)
	a.create("in1", 2)
	a.produce("in1", 2, unique(0, 20)...)
	i := a.start(side(a.name, tabs...), "i1", quickLake, ParkLake())
	eventually(t, "landed", func() bool { return tabs[1].count() == 20 })
	i.stop(t)
	tabs[1].mu.Lock()
	var lost sink.Partition // one partition's progress
	for p := range tabs[1].progress {
		if p.Partition == 1 {
			lost = p
		}
	}
	kept := tabs[1].progress[lost]
	delete(tabs[1].progress, lost)
	tabs[1].mu.Unlock()

	var skips atomic.Bool
	handlers := ErrorHandlers(processors.Handlers{Processing: processors.HandleErrors(func(*processors.ErrorContext) processors.Verdict { return processors.Verdict{Fail: !skips.Load()} })})
	a.produce("in0", 2, "u0", "u1", "u2", "bad", "u4", "u5") // the bad one is in partition 1
	a.produce("in1", 2, unique(20, 20)...)
	i = a.start(side(a.name, tabs...), "i1", quickLake, ParkLake(), handlers)
	eventually(t, "what isn't behind a fault has landed", func() bool { return tabs[0].count() == 4 && tabs[1].count() == 30 })
	i.await(t, "both tasks say why", func(s Stats) bool {
		why := parkedIn(s)
		return strings.Contains(why["0_1"], "can't be stored") && strings.Contains(why["1_1"], "the table was lost") && len(why) == 2 && s.State == Running
	})
	skips.Store(true)
	tabs[1].mu.Lock()
	tabs[1].progress[lost] = kept
	tabs[1].mu.Unlock()
	eventually(t, "landed", func() bool { return tabs[0].count() == 5 && tabs[1].count() == 40 })
	i.await(t, "nothing is parked", func(s Stats) bool { return len(parkedIn(s)) == 0 })
	i.stop(t)
	if err := errors.Join(tabs[0].once([]string{"u0", "u1", "u2", "u4", "u5"}), tabs[1].once(unique(0, 40))); err != nil {
		t.Error(err)
	}
}

// Tables that one task feeds are parked together with it, and another task goes on.
func TestTablesOfOneTaskArePausedTogether(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "parkedtogether")
	tabs := []*table{newTable(), newTable()}
	a.create("in", 2)
	a.produce("in", 2, unique(0, 100)...)
	var refused atomic.Int32
	tabs[1].is(nil, func(*table) error {
		if refused.Add(1) < 3 {
			return &sink.RefusedError{Table: "memory", Reason: "not yet", Advice: "wait"}
		}
		return nil
	})
	i := a.start(landing(a.name, tabs...), "i1", quickLake, ParkLake())
	for n, tab := range tabs {
		eventually(t, fmt.Sprint("landed in table ", n), func() bool { return tab.count() >= 100 })
	}
	i.stop(t)
	for n, tab := range tabs {
		if err := tab.once(unique(0, 100)); err != nil {
			t.Errorf("table %d: %v", n, err)
		}
	}
	if refused.Load() < 3 {
		t.Errorf("asked %d times", refused.Load())
	}
}

// beside sends records that fail to the topic of dead letters beside their own. It knows these topics.
type beside []string

func (beside) HandleError(e *processors.ErrorContext) processors.Verdict {
	return processors.Verdict{DeadLetterTopic: e.Topic + ".dead"}
}
func (b beside) DeadLetterTopics() []string { return b }

// A topic of dead letters that is deleted parks the task that has a letter for it, also where another one is gone already. The others go on, their letters
// too; and so do those that are parked when the topics are made again.
func TestDeletedDeadLettersStayWithTheirTask(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "parkedletters")
	var tabs []*table
	var dead beside
	for i := range 3 {
		tabs = append(tabs, newTable())
		a.create(fmt.Sprint("in", i), 1)
		a.create(fmt.Sprint("in", i, ".dead"), 1)
		dead = append(dead, a.topic(fmt.Sprint("in", i, ".dead")))
	}
	i := a.start(side(a.name, tabs...), "i1", quickLake, ParkLake(), ErrorHandlers(processors.Handlers{Processing: dead}), func(c *config) { c.vanish = time.Second })
	lands := func(in, rows int) {
		t.Helper()
		a.produce(fmt.Sprint("in", in), 1, "bad", fmt.Sprint("u", rows-1))
		eventually(t, fmt.Sprintf("row %d of %d", rows, in), func() bool { return tabs[in].count() == rows })
	}
	for in := range tabs {
		lands(in, 1)
	}
	admin := kadm.NewClient(a.c.Client(t))
	for in := range 2 {
		if _, err := admin.DeleteTopic(t.Context(), dead[in]); err != nil {
			t.Fatal(err)
		}
		a.produce(fmt.Sprint("in", in), 1, "bad", "u1")
		i.await(t, "the task says why", func(s Stats) bool {
			why := parkedIn(s)
			return strings.Contains(why[fmt.Sprint(in, "_0")], dead[in]+": there is no such topic; make it again") && len(why) == in+1
		})
		lands(2, in+2)
	}
	for in := range 2 {
		a.create(fmt.Sprint("in", in, ".dead"), 1)
		eventually(t, "it lands, too", func() bool { return tabs[in].count() == 2 })
	}
	i.await(t, "nothing is parked", func(s Stats) bool { return len(parkedIn(s)) == 0 })
	i.stop(t)
	for in, tab := range tabs {
		rows, letters := 2, a.read(fmt.Sprint("in", in, ".dead"))
		left := 1
		if in == 2 {
			rows, left = 3, 3
		}
		eventually(t, "the dead letters are there", func() bool { return len(letters.all()) == left })
		if err := tab.once([]string{"u0", "u1", "u2"}[:rows]); err != nil {
			t.Error(err)
		}
	}
}

// A task that has more than rows isn't parked: one that can't write its dead letter ends the instance under ParkLake, too.
func TestDeletedDeadLettersOfOtherTasksEndTheInstance(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "otherletters")
	for _, topic := range []string{"in", "in.dead", "out"} {
		a.create(topic, 1)
	}
	b := topology.NewBuilder(a.name)
	b.Stream(a.topic("in"), serde.String, serde.String).TryMapValues(func(_, v string) (string, error) {
		if v == "bad" {
			return "", errors.New("bad")
		}
		return v, nil
	}).To(a.topic("out"))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	out := a.read("out")
	i := a.start(p, "i1", ParkLake(), ErrorHandlers(processors.Handlers{Processing: beside{a.topic("in.dead")}}), func(c *config) { c.vanish = time.Second })
	a.produce("in", 1, "bad", "good")
	eventually(t, "the record behind it", func() bool { return len(out.all()) == 1 })
	if _, err := kadm.NewClient(a.c.Client(t)).DeleteTopic(t.Context(), a.topic("in.dead")); err != nil {
		t.Fatal(err)
	}
	a.produce("in", 1, "bad")
	if err := i.failure(t); err == nil || !strings.Contains(err.Error(), a.topic("in.dead")) {
		t.Errorf("ended by %v", err)
	}
}
