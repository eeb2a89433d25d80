package topology_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// line is the position of its caller, so many lines further down.
func line(down int) string {
	_, _, n, _ := runtime.Caller(1)
	return fmt.Sprintf("positions_test.go:%d: ", n+down)
}

func problems(t *testing.T, b *topology.Builder) []topology.Problem {
	t.Helper()
	_, err := b.Build()
	var built *topology.BuildError
	if !errors.As(err, &built) {
		t.Fatalf("Build: %v", err)
	}
	return built.Problems
}

func wantProblems(t *testing.T, b *topology.Builder, want ...string) {
	t.Helper()
	got := problems(t, b)
	if len(got) != len(want) {
		t.Fatalf("%d problems, want %d: %v", len(got), len(want), got)
	}
	for i, p := range got {
		if !strings.HasPrefix(p.Error(), want[i]) {
			t.Errorf("problem %q\ndoesn't begin with %q", p, want[i])
		}
	}
}

func TestProblemsSayWhichCall(t *testing.T) {
	b := topology.NewBuilder("app")
	s := strings2(b, "t")
	at := line(1)
	s.Filter(nil)
	windows := line(1)
	s.GroupByKey().Windowed(topology.Tumbling(0)).Count(topology.Name("zero"))
	sink := line(1)
	s.To("not a topic")
	stores := line(1)
	s.Process(passValues, topology.Stores("nope"))
	node := line(1)
	b.AddProcessor("p", passValues, []string{"nobody"})
	store := line(1)
	short := topology.WindowStore("w", serde.String, serde.String, time.Second, time.Minute)
	b.AddStateStore(short)
	wantProblems(t, b, at, windows, store, sink, stores, node)
}

func TestUnknownSerdesAreToldOnce(t *testing.T) {
	b := topology.NewBuilder("app")
	s := strings2(b, "t").MapValues(func(v string) order { return order{v} })
	first := line(1)
	s.To("x")
	s.GroupBy(func(k string, _ order) string { return k }).Count()
	wantProblems(t, b, first)
	b = topology.NewBuilder("app")
	s = strings2(b, "t").MapValues(func(v string) order { return order{v} })
	s.To("x")
	s.To("y")
	p := problems(t, b)
	if len(p) != 1 || !strings.Contains(p[0].Error(), "(needed by positions_test.go:") {
		t.Errorf("two sinks of one unknown serde: %v", p)
	}
	b = topology.NewBuilder("app")
	keys := b.Stream("t", serde.String, serde.String).SelectKey(func(_, v string) order { return order{v} }).GroupByKey()
	first = line(1)
	keys.Windowed(topology.Tumbling(time.Minute)).Count().ToStream().To("x")
	wantProblems(t, b, first)
}

func TestSerdeOfAnotherTypeIsToldOnce(t *testing.T) {
	b := topology.NewBuilder("app")
	first := line(1)
	strings2(b, "t").MapValues(func(v string) order { return order{v} }, topology.ValueSerde(serde.JSON[*order]())).To("x")
	wantProblems(t, b, first)
}

func TestNilSerdeIsToldOnce(t *testing.T) {
	b := topology.NewBuilder("app")
	first := line(1)
	b.Stream[string, string]("t", nil, serde.String).To("x")
	wantProblems(t, b, first)
}

func TestNegativeGapIsToldOnce(t *testing.T) {
	b := topology.NewBuilder("app")
	s := strings2(b, "t").GroupByKey()
	first := line(1)
	s.Sessions(topology.Session(-time.Second)).Count()
	wantProblems(t, b, first)
}
