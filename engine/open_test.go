package engine

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// withoutBrokers is an engine that can open the stores of a task: of counts, or of the plan given.
func withoutBrokers(t *testing.T, plans ...*topology.Plan) (*Engine, *taskSpec) {
	t.Helper()
	e, err := New(cmp.Or(append(plans, counts("waits"))...), Brokers("nowhere:1"), StateDir(t.TempDir()), Logger(testLog(t, "e")))
	if err != nil {
		t.Fatal(err)
	}
	e.resources = state.NewResources(state.ResourceOptions{})
	t.Cleanup(func() {
		if err := e.resources.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, sub := range e.plan.Subtopologies {
		if len(sub.Stores) > 0 {
			return e, &taskSpec{id: task.ID{Subtopology: sub.ID}, subs: []*plan.Subtopology{sub}}
		}
	}
	t.Fatal("no sub-topology has stores")
	return nil, nil
}

// A removal that a kill -9 interrupted leaves some files of a database: it is set aside, and the task begins with an empty one.
func TestHalfRemovedStateIsSetAside(t *testing.T) {
	e, spec := withoutBrokers(t)
	for _, pattern := range []string{"MANIFEST*", "OPTIONS*", "*.log", "marker*"} {
		r := e.newRunner(spec, 0)
		if err := e.openStores(t.Context(), r); err != nil {
			t.Fatalf("before %s: %v", pattern, err)
		}
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(e.taskDir(spec.id), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, name := range files {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := e.newRunner(spec, 0)
	if err := e.openStores(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}

// A task whose predecessor still has its state waits for it, for longer than brokers may be away, and until it is shut itself.
func TestOpeningWaitsForThePredecessor(t *testing.T) {
	t.Parallel()
	e, spec := withoutBrokers(t)
	before := e.newRunner(spec, 0)
	if err := e.openStores(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	after := e.newRunner(spec, 0)
	ctx := after.context(t.Context())
	opened := make(chan error, 1)
	go func() { opened <- e.openStores(ctx, after) }()
	select {
	case err := <-opened:
		t.Fatalf("the state was open, and opening it again gave %v", err)
	case <-time.After(7 * time.Second):
	}
	if err := before.close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	last := e.newRunner(spec, 0)
	go func() { opened <- e.openStores(last.context(t.Context()), last) }()
	time.Sleep(20 * time.Millisecond)
	if err := last.shut(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; !errors.Is(err, context.Canceled) {
		t.Errorf("shut while it waited: %v", err)
	}
	if err := after.close(); err != nil {
		t.Error(err)
	}
}

// While too few brokers are up for the replicas of internal topics, a start waits.
func TestStartWaitsForReplicas(t *testing.T) {
	t.Parallel()
	a := newApp(t, brokertest.Embedded(t), "replicas")
	a.create("in", 1)
	a.create("out", 1)
	fault := a.c.Embedded.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: kerr.InvalidReplicationFactor, Count: 2})
	defer fault.Remove()
	i := a.start(counts(a.name), "i1")
	i.await(t, "runs", func(s Stats) bool { return s.State == Running })
	if fault.Hits() == 0 {
		t.Error("no topic was refused")
	}
}
