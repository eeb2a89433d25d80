package topologytest_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// failing is a test that notes its failure, and where it would be shown.
type failing struct {
	testing.TB
	helpers map[string]bool
	message string
	at      string
}

func (f *failing) Helper() { f.helpers[function(2).Function] = true }

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	for skip := 2; ; skip++ {
		if frame := function(skip); !f.helpers[frame.Function] {
			f.at = frame.Function
			break
		}
	}
	panic(f)
}

func function(skip int) runtime.Frame {
	pcs := make([]uintptr, 1)
	runtime.Callers(skip+1, pcs)
	frame, _ := runtime.CallersFrames(pcs).Next()
	return frame
}

func failure(t *testing.T, plan *topology.Plan, do func(d *topologytest.Driver)) (f *failing) {
	f = &failing{TB: t, helpers: map[string]bool{}}
	defer func() {
		if p := recover(); p != nil && p != any(f) {
			panic(p)
		}
	}()
	d := topologytest.New(f, plan)
	do(d)
	t.Error("nothing failed")
	return f
}

func copying(t *testing.T, build func(s *topology.Stream[string, string])) *topology.Plan {
	t.Helper()
	b := topology.NewBuilder("copy")
	build(b.Stream("in", serde.String, serde.String))
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestFailuresAreAtTheTestsLine(t *testing.T) {
	plan := copying(t, func(s *topology.Stream[string, string]) {
		s.TryMapValues(func(_, _ string) (string, error) { return "", errors.New("no") }).To("out")
	})
	text := func(d *topologytest.Driver, topic string) *topologytest.InputTopic[string, string] {
		return topologytest.Input(d, topic, serde.String, serde.String)
	}
	for name, do := range map[string]func(d *topologytest.Driver){
		"Pipe":    func(d *topologytest.Driver) { text(d, "in").Pipe("k", "v", 1) },
		"Send":    func(d *topologytest.Driver) { text(d, "other").Send(topologytest.Message[string, string]{}) },
		"null":    func(d *topologytest.Driver) { text(d, "other").PipeNull("k", 1) },
		"Read":    func(d *topologytest.Driver) { d.Read("oo") },
		"Output":  func(d *topologytest.Driver) { topologytest.Output(d, "oo", serde.String, serde.String).Read() },
		"lake":    func(d *topologytest.Driver) { topologytest.LakeRows[string](d, "none") },
		"store":   func(d *topologytest.Driver) { _, _ = topologytest.KeyValue(d, "none", 0, serde.String, serde.String) },
		"held":    func(d *topologytest.Driver) { _, _ = d.Held("none") },
		"handles": func(d *topologytest.Driver) { _, _ = d.Stores("none", 0) },
	} {
		f := failure(t, plan, do)
		if !strings.Contains(f.at, "topologytest_test.TestFailuresAreAtTheTestsLine") {
			t.Errorf("%s: %q is shown at %s", name, f.message, f.at)
		}
	}
}

func TestUnknownTopicsAreNoEmptyOnes(t *testing.T) {
	f := failure(t, copying(t, func(s *topology.Stream[string, string]) { s.To("out") }), func(d *topologytest.Driver) { d.Read("oo") })
	if !strings.Contains(f.message, `no topic "oo": it has [in out]`) {
		t.Errorf("message %q", f.message)
	}
	chosen := copying(t, func(s *topology.Stream[string, string]) { s.ToDynamic(func(_, v string) string { return v }) })
	if got := topologytest.New(t, chosen).Read("oo"); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	handlers := topologytest.ErrorHandlers(processors.Handlers{Processing: processors.DeadLetterOnError("dead")})
	if got := topologytest.New(t, chosen, handlers).Read("dead"); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestPlanThatWasNotBuilt(t *testing.T) {
	if _, err := topologytest.Open(nil); err == nil || !strings.Contains(err.Error(), "look at the error of Build") {
		t.Errorf("error %v", err)
	}
}

func TestProcessorThatIsNil(t *testing.T) {
	plan := copying(t, func(s *topology.Stream[string, string]) {
		s.Process(func() processors.Processor[string, string, string, string] { return nil }, topology.Name("mine"))
	})
	if _, err := topologytest.Open(plan); err == nil || !strings.Contains(err.Error(), "node mine: the function that makes the processor has returned nil") {
		t.Errorf("error %v", err)
	}
}
