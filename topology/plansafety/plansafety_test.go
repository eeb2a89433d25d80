package plansafety_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/plansafety"
)

var update = flag.Bool("update", false, "write the golden file anew")

// table is a sink that is never opened.
type table string

func (t table) String() string                                      { return string(t) }
func (t table) Bind(_, _ reflect.Type) error                        { return nil }
func (t table) Open(context.Context, sink.Env) (sink.Writer, error) { panic("not opened here") }

func snapshot(t *testing.T, declare func(*topology.Builder), opts ...topology.BuilderOption) *plansafety.Plan {
	t.Helper()
	b := topology.NewBuilder("shop", opts...)
	declare(b)
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return plansafety.Snapshot(p)
}

func orders(b *topology.Builder) *topology.Stream[string, string] {
	return b.Stream("orders", serde.String, serde.String)
}

func all(string, string) bool { return true }

func byValue(_, v string) string { return v }

func first(a, _ string) string { return a }

// want is what is expected of one thing.
type want struct {
	thing  plansafety.Thing
	name   string
	status plansafety.Status
	loses  bool
	says   string // in its differences or advice
}

func TestCompare(t *testing.T) {
	const (
		store = plansafety.AStore
		topic = plansafety.ATopic
		lake  = plansafety.ALake
	)
	tests := []struct {
		name     string
		old, new func(*topology.Builder)
		want     []want
	}{
		{
			"the same",
			func(b *topology.Builder) { orders(b).GroupByKey().Count() },
			func(b *topology.Builder) { orders(b).GroupByKey().Count() },
			[]want{{store, "KSTREAM-AGGREGATE-STATE-STORE-0000000001", plansafety.Kept, false, ""}},
		},
		{
			"a filter before an unnamed count",
			func(b *topology.Builder) { orders(b).GroupByKey().Count() },
			func(b *topology.Builder) { orders(b).Filter(all).GroupByKey().Count() },
			[]want{{store, "KSTREAM-AGGREGATE-STATE-STORE-0000000001", plansafety.Renamed, true, `topology.Store("KSTREAM-AGGREGATE-STATE-STORE-0000000001")`}},
		},
		{
			"a filter before a named count",
			func(b *topology.Builder) { orders(b).GroupByKey().Count(topology.Store("n")) },
			func(b *topology.Builder) { orders(b).Filter(all).GroupByKey().Count(topology.Store("n")) },
			[]want{{store, "n", plansafety.Kept, false, ""}},
		},
		{
			"the advice of a renamed store, followed",
			func(b *topology.Builder) { orders(b).GroupByKey().Count() },
			func(b *topology.Builder) {
				orders(b).Filter(all).GroupByKey().Count(topology.Store("KSTREAM-AGGREGATE-STATE-STORE-0000000001"))
			},
			[]want{{store, "KSTREAM-AGGREGATE-STATE-STORE-0000000001", plansafety.Kept, false, ""}},
		},
		{
			"a store that is given a name",
			func(b *topology.Builder) { orders(b).GroupByKey().Count() },
			func(b *topology.Builder) { orders(b).GroupByKey().Count(topology.Store("n")) },
			[]want{{store, "n", plansafety.Renamed, true, "begins empty"}},
		},
		{
			"an unnamed count before another one takes its name",
			func(b *topology.Builder) { orders(b).GroupByKey().Count() },
			func(b *topology.Builder) { g := orders(b).GroupByKey(); g.Count(); g.Count() },
			[]want{
				{store, "KSTREAM-AGGREGATE-STATE-STORE-0000000001", plansafety.Uncertain, true, "Name all stores"},
				{store, "KSTREAM-AGGREGATE-STATE-STORE-0000000003", plansafety.New, false, "begins empty"},
			},
		},
		{
			"two topics change places",
			func(b *topology.Builder) {
				b.Stream("a", serde.String, serde.String).GroupByKey().Count()
				b.Stream("b", serde.String, serde.String).GroupByKey().Count()
			},
			func(b *topology.Builder) {
				b.Stream("b", serde.String, serde.String).GroupByKey().Count()
				b.Stream("a", serde.String, serde.String).GroupByKey().Count()
			},
			[]want{{store, "KSTREAM-AGGREGATE-STATE-STORE-0000000001", plansafety.Uncertain, true, "contents come from: a -> b"}},
		},
		{
			"a store that is gone",
			func(b *topology.Builder) { orders(b).GroupByKey().Count(topology.Store("n")) },
			func(b *topology.Builder) { orders(b).To("out") },
			[]want{
				{store, "n", plansafety.Orphaned, true, "shop-n-changelog"},
				{plansafety.AnOutput, "out", plansafety.New, false, ""},
			},
		},
		{
			"another value",
			func(b *topology.Builder) { orders(b).GroupByKey().Count(topology.Store("n")) },
			func(b *topology.Builder) { orders(b).GroupByKey().Reduce(first, topology.Store("n")) },
			[]want{{store, "n", plansafety.Changed, true, "value serde"}},
		},
		{
			"another kind",
			func(b *topology.Builder) { orders(b).GroupByKey().Reduce(first, topology.Store("n")) },
			func(b *topology.Builder) {
				orders(b).GroupByKey().Reduce(first, topology.Store("n"), topology.Versioned(time.Hour))
			},
			[]want{{store, "n", plansafety.Changed, true, "kind: timestampedKeyValue -> versioned"}},
		},
		{
			"other windows",
			func(b *topology.Builder) {
				orders(b).GroupByKey().Windowed(topology.Tumbling(time.Minute)).Count(topology.Store("n"))
			},
			func(b *topology.Builder) {
				orders(b).GroupByKey().Windowed(topology.Tumbling(time.Hour)).Count(topology.Store("n"))
			},
			[]want{{store, "n", plansafety.Changed, true, "window size in ms: 60000 -> 3600000"}},
		},
		{
			"a longer retention",
			func(b *topology.Builder) {
				orders(b).GroupByKey().Windowed(topology.Tumbling(time.Minute)).Count(topology.Store("n"))
			},
			func(b *topology.Builder) {
				orders(b).GroupByKey().Windowed(topology.Tumbling(time.Minute)).Count(topology.Store("n"), topology.Retention(48*time.Hour))
			},
			[]want{{store, "n", plansafety.Changed, false, "deletes from shop-n-changelog by the new retention"}},
		},
		{
			"a longer history",
			func(b *topology.Builder) {
				b.Table("rates", serde.String, serde.String, topology.Store("n"), topology.Versioned(time.Hour))
			},
			func(b *topology.Builder) {
				b.Table("rates", serde.String, serde.String, topology.Store("n"), topology.Versioned(2*time.Hour))
			},
			[]want{{store, "n", plansafety.Changed, false, "alter min.compaction.lag.ms of shop-n-changelog"}},
		},
		{
			"no changelog",
			func(b *topology.Builder) { orders(b).GroupByKey().Count(topology.Store("n")) },
			func(b *topology.Builder) { orders(b).GroupByKey().Count(topology.Store("n"), topology.NoLogging()) },
			[]want{{store, "n", plansafety.Changed, true, "restored from: n-changelog -> none"}},
		},
		{
			"another input before moves the sub-topology",
			func(b *topology.Builder) { orders(b).GroupByKey().Count(topology.Store("n")) },
			func(b *topology.Builder) {
				b.Stream("more", serde.String, serde.String).To("out")
				orders(b).GroupByKey().Count(topology.Store("n"))
			},
			[]want{
				{store, "n", plansafety.Changed, false, "sub-topology: 0 -> 1"},
				{plansafety.AnInput, "more", plansafety.New, false, ""},
			},
		},
		{
			"an unlogged store moves with its sub-topology",
			func(b *topology.Builder) { orders(b).GroupByKey().Count(topology.Store("n"), topology.NoLogging()) },
			func(b *topology.Builder) {
				b.Stream("more", serde.String, serde.String).To("out")
				orders(b).GroupByKey().Count(topology.Store("n"), topology.NoLogging())
			},
			[]want{{store, "n", plansafety.Changed, true, "no changelog"}},
		},
		{
			"an unnamed repartition behind a filter",
			func(b *topology.Builder) { orders(b).GroupBy(byValue).Count(topology.Store("n")) },
			func(b *topology.Builder) { orders(b).Filter(all).GroupBy(byValue).Count(topology.Store("n")) },
			[]want{
				{store, "n", plansafety.Kept, false, ""}, // its topic is named after it
				{topic, "shop-n-repartition", plansafety.Kept, false, ""},
			},
		},
		{
			"a repartition topic that is renamed",
			func(b *topology.Builder) {
				orders(b).GroupBy(byValue, topology.Name("by-value")).Count(topology.Store("n"))
			},
			func(b *topology.Builder) {
				orders(b).GroupBy(byValue, topology.Name("values")).Count(topology.Store("n"))
			},
			[]want{
				{topic, "shop-by-value-repartition", plansafety.Renamed, true, `topology.Name("by-value")`},
				{store, "n", plansafety.Kept, false, ""},
			},
		},
		{
			"more partitions",
			func(b *topology.Builder) {
				orders(b).Repartition(topology.Name("wide"), topology.Partitions(4)).GroupByKey().Count(topology.Store("n"))
			},
			func(b *topology.Builder) {
				orders(b).Repartition(topology.Name("wide"), topology.Partitions(8)).GroupByKey().Count(topology.Store("n"))
			},
			[]want{
				{topic, "shop-wide-repartition", plansafety.Repartitioned, true, "partitions: 4 -> 8"},
				{store, "n", plansafety.Repartitioned, true, "partitions: 4 -> 8"},
			},
		},
		{
			"another key through a new repartition keeps the number of the input",
			func(b *topology.Builder) { orders(b).GroupByKey().Count(topology.Store("n")) },
			func(b *topology.Builder) { orders(b).GroupBy(byValue).Count(topology.Store("n")) },
			[]want{
				{topic, "shop-n-repartition", plansafety.New, false, ""},
				{store, "n", plansafety.Changed, false, "sub-topology: 0 -> 1"},
			},
		},
		{
			"a sink that gets another name",
			func(b *topology.Builder) { orders(b).ToLake(table("delta:/t"), topology.Name("landed")) },
			func(b *topology.Builder) { orders(b).ToLake(table("delta:/t"), topology.Name("rows")) },
			[]want{{lake, "landed", plansafety.Renamed, true, `topology.Name("landed")`}},
		},
		{
			"a sink that gets another table",
			func(b *topology.Builder) { orders(b).ToLake(table("delta:/t"), topology.Name("landed")) },
			func(b *topology.Builder) { orders(b).ToLake(table("delta:/u"), topology.Name("landed")) },
			[]want{{lake, "landed", plansafety.Changed, true, "table: delta:/t -> delta:/u"}},
		},
		{
			"a sink that reaches its table by other settings",
			func(b *topology.Builder) { orders(b).ToLake(table("delta:s3://b/t"), topology.Name("landed")) },
			func(b *topology.Builder) {
				orders(b).ToLake(table("delta:s3://b/t?region=eu-central-1"), topology.Name("landed"))
			},
			[]want{{lake, "landed", plansafety.Changed, false, "table: delta:s3://b/t -> delta:s3://b/t?region=eu-central-1"}},
		},
		{
			"another output beside a sink puts a topic before it",
			func(b *topology.Builder) { orders(b).ToLake(table("delta:/t"), topology.Name("landed")) },
			func(b *topology.Builder) {
				s := orders(b)
				s.ToLake(table("delta:/t"), topology.Name("landed"))
				s.To("out")
			},
			[]want{
				{lake, "landed", plansafety.Changed, true, "progress is kept for: orders -> landed-lake"},
				{topic, "shop-landed-lake", plansafety.New, false, ""},
			},
		},
		{
			"a filter before a join with an unnamed table that comes first",
			func(b *topology.Builder) {
				c := b.Table("customers", serde.String, serde.String)
				orders(b).Join(c, first).To("out")
			},
			func(b *topology.Builder) {
				c := b.Table("customers", serde.String, serde.String)
				orders(b).Filter(all).Join(c, first).To("out")
			},
			[]want{{store, "customers-STATE-STORE-0000000000", plansafety.Kept, false, ""}},
		},
		{
			"a global table",
			func(b *topology.Builder) {
				g := b.GlobalTable("rates", serde.String, serde.String, topology.Store("rates"))
				orders(b).JoinGlobal(g, byValue, first).To("out")
			},
			func(b *topology.Builder) {
				g := b.GlobalTable("rates", serde.String, serde.String, topology.Store("prices"))
				orders(b).JoinGlobal(g, byValue, first).To("out")
			},
			[]want{{store, "prices", plansafety.Renamed, false, "reads it whole"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			report := plansafety.Compare(snapshot(t, tt.old), snapshot(t, tt.new))
			loses := false
			for _, w := range tt.want {
				loses = loses || w.loses
				c, ok := report.Of(w.thing, w.name)
				text := strings.Join(append(c.Differences, c.Advice), "\n")
				if !ok || c.Status != w.status || c.Loses != w.loses || !strings.Contains(text, w.says) {
					t.Errorf("%s %s: got %+v, want %s, loses %v, saying %q", w.thing, w.name, c, w.status, w.loses, w.says)
				}
			}
			if report.Loses() != loses {
				t.Errorf("the report says that it loses: %v\n%s", report.Loses(), report)
			}
			if !loses && strings.Contains(report.String(), "!") {
				t.Errorf("marked as a loss:\n%s", report)
			}
		})
	}
}

// A change of the optimization that reuses topics is safe in one direction only.
func TestSourceTopicAsChangelog(t *testing.T) {
	declare := func(b *topology.Builder) {
		orders(b).Join(b.Table("customers", serde.String, serde.String, topology.Store("customers")), first).To("out")
	}
	own, reused := snapshot(t, declare), snapshot(t, declare, topology.Optimize(topology.ReuseSourceTopics))
	if c, _ := plansafety.Compare(own, reused).Of(plansafety.AStore, "customers"); c.Loses || c.Status != plansafety.Changed {
		t.Errorf("from a changelog to the topic: %+v", c)
	}
	if c, _ := plansafety.Compare(reused, own).Of(plansafety.AStore, "customers"); !c.Loses {
		t.Errorf("from the topic to a changelog that begins empty: %+v", c)
	}
}

func TestAnotherApplication(t *testing.T) {
	declare := func(id string) *plansafety.Plan {
		b := topology.NewBuilder(id)
		orders(b).GroupBy(byValue).Count(topology.Store("n"))
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return plansafety.Snapshot(p)
	}
	report := plansafety.Compare(declare("a"), declare("b"))
	if c, ok := report.Of(plansafety.TheApplication, "b"); !ok || !c.Loses {
		t.Errorf("got %+v", c)
	}
	for _, name := range []string{"n", "b-n-repartition"} {
		for _, c := range report.Changes {
			if c.New == name && c.Status != plansafety.Kept {
				t.Errorf("%+v", c)
			}
		}
	}
}

// everything has one of each thing that is saved.
func everything(b *topology.Builder) {
	s := orders(b)
	counted := s.GroupBy(byValue, topology.Name("by-value")).Windowed(topology.Tumbling(time.Minute).Grace(time.Second)).Count(topology.Store("counts"))
	counted.ToStream().Map(func(w topology.Window[string], n int64) (string, string) { return w.Key, "" }).
		ToLake(table("delta:/counts"), topology.Name("landed"))
	g := b.GlobalTable("rates", serde.String, serde.String, topology.Store("rates"))
	s.JoinGlobal(g, byValue, first).GroupByKey().Reduce(first)
	b.StreamPattern("logs-.*", serde.String, serde.JSON[map[string]int]()).Repartition(topology.Name("spread"), topology.Partitions(6)).To("out")
}

// The JSON form of a plan is fixed by a file: it is kept in other repositories.
func TestGoldenFile(t *testing.T) {
	p := snapshot(t, everything)
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "plan.json")
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), b.String()); diff != "" {
		t.Errorf("the form has changed; raise the version if readers of the last one can't take it (-golden +got):\n%s", diff)
	}
	read, err := plansafety.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, read); diff != "" {
		t.Errorf("read back (-saved +read):\n%s", diff)
	}
	if report := plansafety.Compare(read, p); report.Loses() || !report.SameHash {
		t.Errorf("a plan differs from itself:\n%s", report)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"saved by a later version": `{"format":"tributary-plan","version":3,"oldest_reader":2,"application":"a"}`,
		"its format is":            `{"format":"other"}`,
		"not a saved plan":         `[`,
		"no version":               `{"format":"tributary-plan"}`,
	} {
		if _, err := plansafety.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	later := `{"format":"tributary-plan","version":2,"oldest_reader":1,"application":"a","novelty":1}`
	if _, err := plansafety.Read(strings.NewReader(later)); err != nil {
		t.Errorf("a later version that this one understands: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	if golden, err := os.ReadFile(filepath.Join("testdata", "plan.json")); err == nil {
		f.Add(golden)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := plansafety.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		if report := plansafety.Compare(p, p); report.String() == "" {
			t.Error("no report")
		}
	})
}

// Serdes differ in a program's words, or, where these are the same, in those of the plan.
func TestCompareNamesSerdesAsProgramsDo(t *testing.T) {
	build := func(value string) *plansafety.Plan {
		return &plansafety.Plan{Stores: []plansafety.Store{{Name: "n", Key: "serde.stringSerde of string", Value: value}}}
	}
	for _, to := range []struct{ serde, says string }{
		{"serde.stringSerde of string", "value serde: serde.Int64 -> serde.String"},
		{"serde.int64Serde of shop.Cents", "value serde: serde.int64Serde of int64 -> serde.int64Serde of shop.Cents"},
	} {
		report := plansafety.Compare(build("serde.int64Serde of int64"), build(to.serde))
		if text := report.String(); !strings.Contains(text, to.says) {
			t.Errorf("%q isn't in\n%s", to.says, text)
		}
	}
}
