package topology_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// TestNamesAreThoseOfKafkaStreams checks the overloads that the golden scenarios, which always pass serdes, don't use. The expected
// names follow from the sources of Kafka Streams 4.3.1.
func TestNamesAreThoseOfKafkaStreams(t *testing.T) {
	tests := map[string]struct {
		build func(b *topology.Builder)
		want  []string // some of the nodes and stores
	}{
		"count()": {
			func(b *topology.Builder) { strings2(b, "t").GroupByKey().Count() },
			[]string{"KSTREAM-AGGREGATE-STATE-STORE-0000000001", "KSTREAM-AGGREGATE-0000000002"},
		},
		"count(Materialized.with)": {
			func(b *topology.Builder) { strings2(b, "t").GroupByKey().Count(topology.Materialized()) },
			[]string{"KSTREAM-AGGREGATE-STATE-STORE-0000000002", "KSTREAM-AGGREGATE-0000000003"},
		},
		"count(Materialized.as)": {
			func(b *topology.Builder) { strings2(b, "t").GroupByKey().Count(topology.Store("s")) },
			[]string{"s", "KSTREAM-AGGREGATE-0000000001"},
		},
		"windowed count()": {
			func(b *topology.Builder) {
				strings2(b, "t").GroupByKey().Windowed(topology.Tumbling(time.Second)).Count()
			},
			[]string{"KSTREAM-AGGREGATE-STATE-STORE-0000000001", "KSTREAM-AGGREGATE-0000000002"},
		},
		"filter of a table": {
			func(b *topology.Builder) {
				table2(b, "t").Filter(func(string, string) bool { return true }).ToStream().To("o")
			},
			[]string{"KSTREAM-SOURCE-0000000001", "KTABLE-SOURCE-0000000002", "KTABLE-FILTER-0000000003", "KTABLE-TOSTREAM-0000000004"},
		},
		"filter of a table with Materialized.with": {
			func(b *topology.Builder) {
				table2(b, "t").Filter(func(string, string) bool { return true }, topology.Materialized()).ToStream().To("o")
			},
			[]string{"KTABLE-FILTER-0000000004", "KTABLE-TOSTREAM-0000000005"},
		},
		"join of tables with Materialized.with": {
			func(b *topology.Builder) { table2(b, "t").Join(table2(b, "u"), second, topology.Materialized()) },
			[]string{
				"KTABLE-MERGE-STATE-STORE-0000000006", "KTABLE-MERGE-0000000007", "KTABLE-JOINTHIS-0000000008", "KTABLE-JOINOTHER-0000000009",
				"t-STATE-STORE-0000000000", "u-STATE-STORE-0000000003",
			},
		},
		"named join of streams": {
			func(b *topology.Builder) {
				strings2(b, "t").OuterJoinStream(strings2(b, "u"), func(l, r *string) string { return or(l, "") + or(r, "") },
					topology.JoinWithin(time.Second), topology.Name("n"), topology.Store("s"))
			},
			[]string{
				"n-this-windowed", "n-other-windowed", "n-outer-this-join", "n-outer-other-join", "n-merge",
				"s-outer-this-join-store", "s-outer-other-join-store", "s-outer-shared-join-store",
			},
		},
		"named repartition": {
			func(b *topology.Builder) { strings2(b, "t").Repartition(topology.Name("n")).To("o") },
			[]string{"n-repartition-filter", "n-repartition-sink", "n-repartition-source", "KSTREAM-SINK-0000000004"},
		},
		"generated repartition": {
			func(b *topology.Builder) { strings2(b, "t").Repartition().To("o") },
			[]string{"KSTREAM-SINK-0000000002", "KSTREAM-FILTER-0000000003", "KSTREAM-SOURCE-0000000004", "KSTREAM-SINK-0000000005"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := topology.NewBuilder("app")
			test.build(b)
			plan, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			var have []string
			for n := range plan.Internal().Nodes {
				have = append(have, n)
			}
			for n := range plan.Stores() {
				have = append(have, n)
			}
			slices.Sort(have)
			for _, want := range test.want {
				if !slices.Contains(have, want) {
					t.Errorf("%s is missing from %s", want, strings.Join(have, ", "))
				}
			}
		})
	}
}

func TestOptimizations(t *testing.T) {
	build := func(opts ...topology.BuilderOption) *topology.Plan {
		b := topology.NewBuilder("app", opts...)
		customers := b.Table("customers", serde.String, serde.String, topology.Store("customers"))
		in := b.Stream("orders", serde.String, serde.String)
		byValue := in.SelectKey(func(_, v string) string { return v })
		byValue.GroupByKey().Count(topology.Store("counts"))
		byValue.Join(customers, second).To("joined")
		in.JoinStream(in, second, topology.JoinWithin(time.Second), topology.Store("self"))
		plan, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	want := []string{
		"app-KSTREAM-KEY-SELECT-0000000003-repartition", "app-counts-changelog", "app-counts-repartition", "app-customers-changelog",
		"app-self-other-join-store-changelog", "app-self-this-join-store-changelog",
	}
	if diff := cmp.Diff(want, build().InternalTopics()); diff != "" {
		t.Errorf("without optimizations: %s", diff)
	}
	want = []string{"app-counts-changelog", "app-counts-repartition", "app-self-this-join-store-changelog"}
	optimized := build(topology.Optimize(topology.AllOptimizations))
	if diff := cmp.Diff(want, optimized.InternalTopics()); diff != "" {
		t.Errorf("with all optimizations: %s", diff)
	}
	if spec := optimized.Stores()["customers"]; spec.SourceTopic != "customers" {
		t.Errorf("the table is restored from %q", spec.SourceTopic)
	}
	if build().Hash() == optimized.Hash() {
		t.Error("the optimized topology has the same hash")
	}
}

func TestPlanAccessors(t *testing.T) {
	b := topology.NewBuilder("app")
	b.GlobalTable("regions", serde.String, serde.String)
	b.Streams([]string{"b", "a"}, serde.String, serde.String).GroupBy(second).Count(topology.Store("c")).
		MapValues(number).ToStream().To("out")
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "regions"}, plan.Sources()); diff != "" {
		t.Errorf("sources: %s", diff)
	}
	if diff := cmp.Diff([]string{"out"}, plan.Sinks()); diff != "" {
		t.Errorf("sinks: %s", diff)
	}
	if got := plan.ApplicationID(); got != "app" {
		t.Errorf("application id %q", got)
	}
}
