package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/offsetset"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// checker fails at values that begin with "bad", and panics at others.
type checker struct{}

func (checker) Init(processors.ProcessorContext[string, string]) error { return nil }
func (checker) Close() error                                           { return nil }
func (checker) Process(r *processors.Record[string, string]) error {
	if strings.HasPrefix(r.Value, "panic") {
		panic(r.Value)
	}
	if strings.HasPrefix(r.Value, "bad") {
		return errors.New(r.Value)
	}
	return nil
}

// withGlobals has a global table of numbers, of which other bytes can't be decoded, and a global store with a processor that may fail.
func withGlobals(name string) *topology.Plan {
	b := topology.NewBuilder(name)
	rates := b.GlobalTable(name+"-rates", serde.String, serde.Int64, topology.Store("rates"))
	store := topology.KeyValueStore("checks", serde.String, serde.String)
	b.AddGlobalStore(store, name+"-checks", serde.String, serde.String, func() processors.Processor[string, string, string, string] { return checker{} })
	b.Stream(name+"-in", serde.String, serde.String).
		JoinGlobal(rates, func(k, _ string) string { return k }, func(v string, rate int64) string { return fmt.Sprint(v, "=", rate) }).
		To(name + "-out")
	return build(b)
}

// number is a value that the global table can decode.
func number(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// sources counts letters by the record that they are about.
func sources(letters []*kgo.Record) map[string]int {
	all := map[string]int{}
	for _, r := range letters {
		at := map[string]string{}
		for _, h := range r.Headers {
			at[h.Key] = string(h.Value)
		}
		all[at[processors.HeaderErrorTopic]+"-"+at[processors.HeaderErrorPartition]+"@"+at[processors.HeaderErrorOffset]]++
	}
	return all
}

func newGlobals(t *testing.T, c *brokertest.Cluster, name string) *app {
	a := newApp(t, c, name)
	for topic, partitions := range map[string]int32{"rates": 2, "checks": 1, "in": 1, "out": 1, "dead": 1} {
		a.create(topic, partitions)
	}
	return a
}

// What global tables leave out has one dead letter each, although every instance meets it, and one without state meets all of it again.
func TestDeadLettersOfGlobalTables(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newGlobals(t, c, "globaldead")
		dead, out := a.read("dead"), a.read("out")
		to := processors.DeadLetterOnError(a.topic("dead"))
		handlers := ErrorHandlers(processors.Handlers{Deserialization: to, Processing: to})
		a.produce("rates", 2, number(3), "junk", "junk", number(4)) // k0 to k3
		a.produce("checks", 1, "bad0", "fine", "panic1")
		one, two := a.start(withGlobals(a.name), "i1", handlers), a.start(withGlobals(a.name), "i2", handlers)
		for _, i := range []*instance{one, two} {
			i.await(t, "runs", func(s Stats) bool { return s.State == Running })
		}
		want := map[string]int{"rates-1@0": 1, "rates-0@1": 1, "checks-0@0": 1, "checks-0@2": 1}
		check := func(more ...string) {
			t.Helper()
			for _, m := range more {
				want[m] = 1
			}
			eventually(t, "dead letters", func() bool { return len(sources(dead.all())) >= len(want) })
			for source, n := range sources(dead.all()) {
				if source = strings.TrimPrefix(source, a.name+"-"); want[source] != n {
					t.Errorf("%s has %d letters, want %d", source, n, want[source])
				}
			}
		}
		check()
		a.produce("rates", 2, number(5), "junk", "junk")
		a.produce("checks", 1, "bad3")
		check("rates-1@2", "rates-0@3", "checks-0@3")
		eventually(t, "joined", func() bool { // whoever has the task may still be reading the table
			a.produce("in", 1, "a") // k0
			return slices.Contains(out.values(), "a=5")
		})
		one.stop(t)
		two.stop(t)
		check()
		three := a.start(withGlobals(a.name), "i3", handlers)
		three.await(t, "runs", func(s Stats) bool { return s.State == Running })
		a.produce("checks", 1, "bad4")
		check("checks-0@4")
		three.stop(t)
		check()
	})
}

// At-least-once has no transactions: letters are written, by a single instance once.
func TestDeadLettersOfGlobalTablesAtLeastOnce(t *testing.T) {
	a := newGlobals(t, brokertest.Embedded(t), "globalalo")
	dead := a.read("dead")
	handlers := ErrorHandlers(processors.Handlers{Deserialization: processors.DeadLetterOnError(a.topic("dead"))})
	a.produce("rates", 2, "junk")
	for range 2 {
		i := a.start(withGlobals(a.name), "i1", handlers, Processing(AtLeastOnce))
		i.await(t, "runs", func(s Stats) bool { return s.State == Running })
		i.stop(t)
		if err := os.RemoveAll(a.dir + "/i1/" + a.name + "/global"); err != nil { // the table is read anew next time
			t.Fatal(err)
		}
	}
	eventually(t, "the letter", func() bool { return len(dead.all()) > 0 })
	if n := len(dead.all()); n != 1 {
		t.Errorf("%d letters", n)
	}
}

// The ledger has what the global tables drop.
func TestLedgerOfGlobalTables(t *testing.T) {
	a := newGlobals(t, brokertest.Embedded(t), "globalledger")
	ledger := a.read("dead")
	client := a.c.Client(t, kgo.DefaultProduceTopic(a.topic("rates")))
	if err := client.ProduceSync(t.Context(), &kgo.Record{Value: []byte(number(1))}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"i1", "i2"} {
		i := a.start(withGlobals(a.name), name, ErrorHandlers(processors.Handlers{DroppedTopic: a.topic("dead")}))
		i.await(t, "runs", func(s Stats) bool { return s.State == Running })
		i.stop(t)
	}
	eventually(t, "the entry", func() bool { return len(ledger.all()) > 0 })
	if n := len(ledger.all()); n != 1 {
		t.Errorf("%d entries", n)
	}
}

// Without a handler a global table stops the application, at a start as well as later, and says at which record.
func TestGlobalTablesFailByDefault(t *testing.T) {
	a := newGlobals(t, brokertest.Embedded(t), "globalfail")
	i := a.start(withGlobals(a.name), "i1")
	i.await(t, "runs", func(s Stats) bool { return s.State == Running })
	a.produce("rates", 2, number(3), number(4), "junk")
	for round := range 2 {
		err := i.failure(t)
		if err == nil || !strings.Contains(err.Error(), "globalfail-rates-0 offset 1") {
			t.Errorf("round %d: got %v, want one that names the record", round, err)
		}
		i = a.start(withGlobals(a.name), "i1")
	}
	if err := i.failure(t); err == nil {
		t.Error("it runs")
	}
}

// A burst that is larger than the write buffer and the inputs' buffers doesn't stop a global table.
func TestGlobalTableTakesABurst(t *testing.T) {
	a := newGlobals(t, brokertest.Embedded(t), "globalburst")
	b := topology.NewBuilder(a.name)
	b.GlobalTable(a.topic("rates"), serde.String, serde.String, topology.Store("rates"))
	b.Stream(a.topic("in"), serde.String, serde.String).To(a.topic("out"))
	i := a.start(build(b), "i1", WriteBuffer(256<<10))
	i.await(t, "runs", func(s Stats) bool { return s.State == Running })
	values := make([]string, 3000)
	for n := range values {
		values[n] = strings.Repeat("x", 2000)
	}
	a.produce("rates", 2, values...)
	eventually(t, "all of it", func() bool { return i.Stats().Processed >= int64(len(values)) })
	i.stop(t)
}

func TestNotesOnDeadLetters(t *testing.T) {
	topic, other := [16]byte{1}, [16]byte{2}
	set := &offsetset.Set{}
	for o := range int64(5000) {
		set.Add(2*o + 1)
	}
	text := writeNote(set, topic)
	if len(text) > maxNote {
		t.Errorf("a note of %d bytes", len(text))
	}
	back, err := readNote(set.Below, text, topic)
	if err != nil || !back.Has(9999) || back.Has(9998) {
		t.Errorf("read back %d.., %v", back.Below, err)
	}
	if back, err := readNote(set.Below, text, other); err != nil || back.Has(1) {
		t.Errorf("of a topic made anew: %v, %v", back, err)
	}
	const fixed = "letters:AQAAAAAAAAAAAAAAAAAAAA:2,3-2" // docs/format/offset-metadata.md: must be read for ever
	old, err := readNote(5, fixed, topic)
	for o, want := range []bool{true, true, true, true, true, false, false, true, false, false, true, true, true, false} {
		if old.Has(int64(o)) != want {
			t.Errorf("%d: the fixed note says %v", o, !want)
		}
	}
	if err != nil || writeNote(&old, topic) != fixed {
		t.Errorf("the fixed note is written as %q, %v", writeNote(&old, topic), err)
	}
	if back, err := readNote(-1, "", topic); err != nil || back.Has(0) {
		t.Errorf("none: %v, %v", back, err)
	}
	if _, err := readNote(3, "something", topic); err == nil {
		t.Error("a note of somebody else was taken")
	}
}
