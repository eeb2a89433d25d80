package engine

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/internal/task"
)

// inputsOf notes what is asked of the inputs, and lets a worker run when an input is about to be paused.
type inputsOf struct {
	mu     sync.Mutex
	calls  []string
	worker func()
}

func (in *inputsOf) Pause(...fetch.Partition) {
	go in.worker()
	time.Sleep(20 * time.Millisecond) // it may only come behind
	in.note("pause")
}

func (in *inputsOf) Resume(...fetch.Partition) { in.note("resume") }

func (in *inputsOf) note(call string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.calls = append(in.calls, call)
}

// A worker that is done with what just came resumes the input after it was paused, not before: else it would stay paused for ever.
func TestPausedBeforeResumed(t *testing.T) {
	p := copies("pausing").Internal()
	tp := task.TopicPartition{Topic: "pausing-in"}
	e := &Engine{cfg: config{clock: time.Now}}
	r := e.newRunner(&taskSpec{id: task.ID{}, subs: p.Subtopologies, inputs: []task.TopicPartition{tp}}, 10)
	var err error
	r.task, err = task.New(task.Config{
		ApplicationID: "pausing", Subtopologies: p.Subtopologies, Inputs: r.spec.inputs, Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	in := &inputsOf{}
	in.worker = func() {
		defer close(done)
		r.inMu.Lock()
		r.inbox = nil // all of it is processed
		r.inMu.Unlock()
		r.afterSlice(in)
	}
	r.deliver(&fetch.Batch{Partition: fetch.Partition(tp), Records: []*kgo.Record{{Topic: tp.Topic, Value: []byte("long enough for a pause")}}, Next: 1}, in)
	<-done
	if !slices.Equal(in.calls, []string{"pause", "resume"}) {
		t.Errorf("asked for %v", in.calls)
	}
}
