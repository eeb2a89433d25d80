package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Dead letters are committed before the table moves past their records: were the process to die in between, they would be lost otherwise.
// It runs on the embedded broker, where a committed transaction shows at once.
func TestDeadLettersAreCommittedBeforeTheTable(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "deadfirst")
	a.create("in", 1)
	a.create("dead", 1)
	admin := kadm.NewClient(a.c.Client(t))
	var early int
	tab := newTable()
	tab.fault = func(*table) error {
		ends, err := admin.ListCommittedOffsets(context.Background(), a.topic("dead"))
		if err != nil {
			return err
		}
		if o, ok := ends.Lookup(a.topic("dead"), 0); !ok || o.Offset == 0 {
			early++
		}
		return nil
	}
	handlers := ErrorHandlers(processors.Handlers{Processing: processors.DeadLetterOnError(a.topic("dead"))})
	a.produce("in", 1, "bad1", "u0")
	i := a.start(landing(a.name, tab), "i1", Lake(LakeBatches{Every: time.Millisecond}), handlers)
	eventually(t, "landed", func() bool { return tab.count() == 1 })
	i.stop(t)
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if early > 0 {
		t.Errorf("%d of %d commits of the table came before the dead letter was committed", early, tab.commits)
	}
}

// The same at the end, when what is in hand lands at once.
func TestDeadLettersAreCommittedBeforeTheLastRowsLand(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "deadlast")
	a.create("in", 1)
	a.create("dead", 1)
	dead := a.read("dead")
	tab := newTable()
	handlers := ErrorHandlers(processors.Handlers{Processing: processors.DeadLetterOnError(a.topic("dead"))})
	a.produce("in", 1, "u0", "bad1", "u1", "bad2")
	i := a.start(landing(a.name, tab), "i1", Lake(LakeBatches{Every: time.Hour}), CommitInterval(4*time.Second), handlers)
	i.await(t, "all is processed", func(s Stats) bool { return s.Processed == 4 })
	i.stop(t)
	if err := tab.once([]string{"u0", "u1"}); err != nil {
		t.Error(err)
	}
	eventually(t, "dead letters", func() bool { return len(dead.all()) == 2 })
}

// A record that can't be decoded has its dead letter, also where it is the first that a task meets.
func TestDeadLettersOfUndecodableRecordsBeforeTheLake(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "deadundecodable")
	a.create("in", 1)
	a.create("dead", 1)
	dead := a.read("dead")
	tab := newTable()
	b := topology.NewBuilder(a.name)
	b.Stream(a.topic("in"), serde.String, serde.Int64).MapValues(func(n int64) string { return fmt.Sprint("u", n) }).ToLake(tab, topology.Name("table0"))
	handlers := ErrorHandlers(processors.Handlers{Deserialization: processors.DeadLetterOnError(a.topic("dead"))})
	a.produce("in", 1, "junk", number(1), "junk", "junk", number(2))
	i := a.start(build(b), "i1", Lake(LakeBatches{Every: time.Millisecond}), handlers)
	eventually(t, "landed", func() bool { return tab.count() == 2 })
	i.stop(t)
	eventually(t, "dead letters", func() bool { return len(dead.all()) == 3 })
}
