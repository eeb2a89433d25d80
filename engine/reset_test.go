package engine

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
)

// A dry run tells and changes nothing, a reset is refused while an instance lives, and after one the application counts from the beginning.
func TestReset(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "reset")
		a.create("in", 2)
		a.create("out", 1)
		a.produce("in", 2, numbered(100, 4)...)
		out := a.read("out")
		opts := ResetOptions{Brokers: c.Addrs, StateDir: a.dir + "/i1"}
		i := a.start(counts(a.name), "i1")
		eventually(t, "counted", func() bool { return total(out.lastCounts()) == 100 })
		opts.Execute = true
		_, err := ResetApplication(t.Context(), counts(a.name), opts)
		var refused *ResetRefusedError
		if !errors.As(err, &refused) || len(refused.Reasons) != 2 || !strings.Contains(err.Error(), "has member") || !strings.Contains(err.Error(), "in use") {
			t.Fatalf("got %v, want to be refused for the member and the directory", err)
		}
		i.stop(t)
		opts.Execute = false
		report, err := ResetApplication(t.Context(), counts(a.name), opts)
		if err != nil {
			t.Fatal(err)
		}
		// 2 partitions of the input and 2 of the repartition topic; a changelog and a repartition topic; 2 tasks with state and the memory of topics.
		if report.Done || report.Offsets[a.name] != 4 || len(report.Topics) != 2 || len(report.State) < 3 {
			t.Errorf("dry run: %+v", report)
		}
		if !strings.Contains(report.String(), "delete group reset with the offsets of 4 partitions") {
			t.Errorf("report:\n%s", report)
		}
		i = a.start(counts(a.name), "i1")
		a.produce("in", 2, "v0")
		eventually(t, "one more: nothing was changed", func() bool { return total(out.lastCounts()) == 101 })
		i.stop(t)
		opts.Execute = true
		if report, err = ResetApplication(t.Context(), counts(a.name), opts); err != nil || !report.Done {
			t.Fatalf("%+v, %v", report, err)
		}
		for _, path := range report.State {
			if _, err := os.Stat(path); err == nil {
				t.Errorf("%s is still there", path)
			}
		}
		before := len(out.all())
		i = a.start(counts(a.name), "i1")
		eventually(t, "all counted again from 1", func() bool { return len(out.all()) == before+101 })
		if got := total(out.lastCounts()); got != 101 {
			t.Errorf("counts add up to %d, want 101", got)
		}
		i.stop(t)
		if _, err = ResetApplication(t.Context(), counts(a.name), opts); err != nil {
			t.Fatal(err)
		}
		if report, err = ResetApplication(t.Context(), counts(a.name), opts); err != nil || len(report.Topics)+len(report.Offsets) != 0 {
			t.Errorf("a second time: %+v, %v", report, err)
		}
	})
}

// What becomes of tables has to be said; kept ones go on where they were.
func TestResetWithTables(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "resetlake")
	a.create("in", 1)
	tab := newTable()
	a.produce("in", 1, numbered(10, 10)...)
	i := a.start(landing(a.name, tab), "i1", quickLake)
	eventually(t, "landed", func() bool { return tab.count() == 10 })
	i.stop(t)
	opts := ResetOptions{Client: []kgo.Opt{kgo.SeedBrokers(a.c.Addrs...)}, StateDir: a.dir + "/i1", Execute: true}
	_, err := ResetApplication(t.Context(), landing(a.name, tab), opts)
	if !errors.As(err, new(*ResetRefusedError)) || !strings.Contains(err.Error(), "table memory") {
		t.Fatalf("got %v, want to be refused for the table", err)
	}
	opts.Lake = KeepLake
	report, err := ResetApplication(t.Context(), landing(a.name, tab), opts)
	if err != nil || len(report.Tables) != 1 || !strings.Contains(report.Tables[0], "goes on behind") {
		t.Fatalf("%+v, %v", report, err)
	}
	i = a.start(landing(a.name, tab), "i1", quickLake)
	a.produce("in", 1, "new")
	eventually(t, "the new row", func() bool { return tab.count() == 11 })
	i.stop(t)
}
