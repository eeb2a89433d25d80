package plan

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// stub stands for every supplier: plans never call them.
type stub struct{}

func (stub) New(processors.Runtime, []processors.Child) (processors.Instance, error) {
	return processors.Instance{}, errors.New("not made in this test")
}

func (stub) NewSource(processors.Runtime, []processors.Child) (processors.Source, error) {
	return nil, errors.New("not made in this test")
}

// table is a lake sink that is never opened.
type table string

func (t table) String() string                      { return string(t) }
func (table) Bind(reflect.Type, reflect.Type) error { return nil }
func (table) Open(context.Context, sink.Env) (sink.Writer, error) {
	return nil, errors.New("not opened in this test")
}

func source(name string, topics ...string) Source {
	return Source{Name: name, Topics: topics, Supplier: stub{}}
}

func lakeSink(name string) LakeSink {
	return LakeSink{
		Name: name, Sink: table("delta:/" + name), Direct: stub{},
		Staged: func(string) (processors.Supplier, processors.SourceSupplier, processors.Supplier, error) {
			return stub{}, stub{}, stub{}, nil
		},
	}
}

func kv(name string) *state.Spec {
	return &state.Spec{Name: name, Kind: state.TimestampedKeyValue, Logged: true}
}

func mustBuild(t *testing.T, b *Builder) *Plan {
	t.Helper()
	p, err := b.Build("app")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// problems builds and returns what is wrong.
func problems(t *testing.T, b *Builder) []Problem {
	t.Helper()
	_, err := b.Build("app")
	var built *BuildError
	if !errors.As(err, &built) {
		t.Fatalf("Build: %v, want a *BuildError", err)
	}
	return built.Problems
}

func wantProblem(t *testing.T, ps []Problem, i int, kind ProblemKind, node, part string) {
	t.Helper()
	if i >= len(ps) {
		t.Fatalf("there are %d problems, want one more about %q", len(ps), part)
	}
	if p := ps[i]; p.Kind != kind || p.Node != node || !strings.Contains(p.Error(), part) {
		t.Errorf("problem %d is %v at %q: %v; want %v at %q with %q", i, p.Kind, p.Node, p, kind, node, part)
	}
}
