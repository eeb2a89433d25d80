package engine

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/internal/task"
)

// pauses notes which inputs are paused.
type pauses struct{ calls []string }

func (p *pauses) Pause(parts ...fetch.Partition) { p.calls = append(p.calls, "pause "+parts[0].Topic) }
func (p *pauses) Resume(parts ...fetch.Partition) {
	p.calls = append(p.calls, "resume "+parts[0].Topic)
}

// intakeOf makes a runner with two inputs that are known to have ten records each.
func intakeOf(limit int64, share int) *runner {
	e := &Engine{cfg: config{clock: time.Now}, intake: newIntake(limit)}
	r := e.newRunner(&taskSpec{inputs: []task.TopicPartition{{Topic: "a"}, {Topic: "b"}}}, share)
	for _, tp := range r.spec.inputs {
		r.ends[tp] = 10
	}
	r.inMu.Lock()
	r.tellIntake()
	r.inMu.Unlock()
	return r
}

func fetched(topic string, bytes int, next int64) *fetch.Batch {
	value := make([]byte, bytes-recordOverhead)
	return &fetch.Batch{Partition: fetch.Partition{Topic: topic}, Records: []*kgo.Record{{Topic: topic, Offset: next - 1, Value: value}}, Next: next, Stable: 10}
}

// returnsBefore tells whether await returns without being told to, nor after intakeLook.
func returnsBefore(in *intake) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if in.enough() {
		in.await(ctx) // must not wait for longer than its context
		return false
	}
	in.await(context.Background())
	return true
}

// Polling ends while there is enough, but goes on for an input that is behind and has nothing.
func TestIntakeIsFullUnlessAnInputLacks(t *testing.T) {
	r, p := intakeOf(1000, 500), &pauses{}
	if !returnsBefore(r.intake) {
		t.Fatal("nothing is polled although nothing is there")
	}
	r.deliver(fetched("a", 600, 10), p)
	if !returnsBefore(r.intake) {
		t.Fatal("nothing is polled although b lacks records")
	}
	r.deliver(fetched("b", 400, 8), p)
	if returnsBefore(r.intake) {
		t.Fatal("more is polled although there is enough of both")
	}
	if len(p.calls) > 0 {
		t.Fatalf("asked for %v although the limit is not exceeded", p.calls)
	}
}

// An input is paused once it has more than its share and the intake more than its limit, and not before.
func TestIntakePausesOnlyBeyondItsLimit(t *testing.T) {
	r, p := intakeOf(1000, 400), &pauses{}
	r.deliver(fetched("a", 500, 5), p)
	if len(p.calls) > 0 {
		t.Fatalf("asked for %v below the limit", p.calls)
	}
	r.deliver(fetched("a", 600, 7), p)
	if !slices.Equal(p.calls, []string{"pause a"}) {
		t.Fatalf("asked for %v beyond the limit", p.calls)
	}
	r.deliver(fetched("b", 300, 7), p)
	if !slices.Equal(p.calls, []string{"pause a"}) {
		t.Fatalf("asked for %v of an input within its share", p.calls)
	}
}

// What a runner that is shut has had is not counted any more; nor is its hunger.
func TestIntakeForgetsRunnersThatAreShut(t *testing.T) {
	r, p := intakeOf(1000, 500), &pauses{}
	r.deliver(fetched("a", 600, 10), p)
	if got, hungry := r.intake.bytes.Load(), r.intake.hungry.Load(); got != 600 || hungry != 1 {
		t.Fatalf("%d bytes, %d hungry", got, hungry)
	}
	if err := r.shut(); err != nil {
		t.Fatal(err)
	}
	if got, hungry := r.intake.bytes.Load(), r.intake.hungry.Load(); got != 0 || hungry != 0 {
		t.Fatalf("%d bytes, %d hungry after the runner was shut", got, hungry)
	}
}

// Who waits is woken by hunger, and looks for itself after a while.
func TestIntakeWakes(t *testing.T) {
	in := newIntake(100)
	in.bytes.Store(90)
	woken := make(chan struct{})
	go func() {
		in.await(context.Background()) // ends by itself if the wake comes too early
		close(woken)
	}()
	in.hungry.Add(1)
	in.changed()
	<-woken
}
