package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// counts answers for the user's topics.
func counts(m map[string]int32) func(string) (int32, bool) {
	return func(topic string) (int32, bool) {
		n, ok := m[topic]
		return n, ok
	}
}

// through adds a repartition topic, written below parent and read by a source of the same name.
func through(b *Builder, topic string, partitions int32, parent string) string {
	b.AddInternalTopic(topic, RepartitionTopic, partitions)
	b.AddSink(topic+"-sink", topic, stub{}, parent)
	b.AddSource(source(topic+"-source", topic))
	return topic + "-source"
}

func TestPartitionsFollowInputs(t *testing.T) {
	b := NewBuilder()
	b.AddSource(source("a", "ta"))
	b.AddSource(source("b", "tb"))
	b.AddProcessor("merge", stub{}, "a", "b")
	first := through(b, "r1", 0, "merge")
	b.AddProcessor("agg", stub{}, first)
	b.AddStore(kv("s"), "agg")
	second := through(b, "r2", 0, "agg")
	through(b, "r3", 5, second)
	p := mustBuild(t, b)
	got, err := p.Partitions(counts(map[string]int32{"ta": 2, "tb": 7}), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int32{"app-r1": 7, "app-r2": 7, "app-r3": 5, "app-s-changelog": 7}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPartitionsOfCopartitionedTopics(t *testing.T) {
	tests := []struct {
		name    string
		r1, r2  int32 // asked for
		joined  string
		want    map[string]int32
		problem string
	}{
		{name: "the user's topic decides", joined: "tb", want: map[string]int32{"app-r1": 3, "app-r2": 4}},
		{name: "the larger of two repartitions", joined: "r2", want: map[string]int32{"app-r1": 4, "app-r2": 4}},
		{name: "the one that was asked for", r2: 6, joined: "r2", want: map[string]int32{"app-r1": 6, "app-r2": 6}},
		{name: "asked for against the user's topic", r1: 9, joined: "tb", problem: "app-r1 has 9, tb has 3"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := NewBuilder()
			b.AddSource(source("a", "ta"))
			b.AddSource(source("b", "tb"))
			b.AddSource(source("c", "tc"))
			r1 := through(b, "r1", test.r1, "a")
			r2 := through(b, "r2", test.r2, "c")
			side := map[string]string{"tb": "b", "r2": r2}[test.joined]
			b.AddProcessor("join", stub{}, r1, side)
			b.Copartition(r1, side)
			got, err := mustBuild(t, b).Partitions(counts(map[string]int32{"ta": 2, "tb": 3, "tc": 4}), nil)
			var bad *CopartitionError
			if test.problem != "" {
				if !errors.As(err, &bad) || !strings.Contains(err.Error(), test.problem) {
					t.Fatalf("error %v, want %q", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAllCopartitionedGroupsAreTold(t *testing.T) {
	b := NewBuilder()
	for _, name := range []string{"a", "b", "c", "d"} {
		b.AddSource(source(name, "t"+name))
	}
	b.AddProcessor("ab", stub{}, "a", "b")
	b.AddProcessor("cd", stub{}, "c", "d")
	b.Copartition("a", "b")
	b.Copartition("c", "d")
	_, err := mustBuild(t, b).Partitions(counts(map[string]int32{"ta": 1, "tb": 2, "tc": 3, "td": 4}), nil)
	want := "topics that are joined must have the same number of partitions: ta has 1, tb has 2; tc has 3, td has 4"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestCopartitionIsTransitive(t *testing.T) {
	b := NewBuilder()
	for _, name := range []string{"a", "b", "c", "x"} {
		b.AddSource(source(name, "t"+name))
	}
	b.Copartition("a", "b")
	b.Copartition("b", "c")
	b.Copartition("x", "x")
	p := mustBuild(t, b)
	if diff := cmp.Diff([][]string{{"ta", "tb", "tc"}}, p.CopartitionGroups); diff != "" {
		t.Error(diff)
	}
}

func TestTopicsThatAskForDifferentNumbersAreFoundAtBuild(t *testing.T) {
	b := NewBuilder()
	b.AddSource(source("a", "ta"))
	r1, r2 := through(b, "r1", 2, "a"), through(b, "r2", 3, "a")
	b.Copartition(r1, r2)
	wantProblem(t, problems(t, b), 0, TopologyProblem, "", "r1: 2, r2: 3")
}

func TestMissingTopics(t *testing.T) {
	b := NewBuilder()
	b.AddSource(source("a", "ta"))
	b.AddSource(source("b", "tb"))
	b.AddSource(Source{Name: "p", Pattern: "p.*", Supplier: stub{}})
	through(b, "r", 0, "p")
	p := mustBuild(t, b)

	var missing *MissingTopicsError
	_, err := p.Partitions(counts(nil), nil)
	if !errors.As(err, &missing) || fmt.Sprint(missing.Topics) != "[ta tb]" {
		t.Errorf("error %v", err)
	}
	user := map[string]int32{"ta": 1, "tb": 1, "p1": 8}
	_, err = p.Partitions(counts(user), nil)
	if !errors.As(err, &missing) || fmt.Sprint(missing.Undetermined) != "[app-r]" {
		t.Errorf("error %v", err)
	}
	got, err := p.Partitions(counts(user), map[string][]string{"p": {"p1"}})
	if err != nil || got["app-r"] != 8 {
		t.Errorf("got %v, %v", got, err)
	}
}
