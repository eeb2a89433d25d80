package land

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/internal/verify"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
)

// TestReset lets one of two streams land anew: a dry run first, refusals while an instance runs, a reset that dies between the table and the
// offsets, and then everything once more, each record once. The other stream goes on behind what it has.
func TestReset(t *testing.T) { testReset(t, newWorld(t, nil, "")) }

func TestResetOnKafka(t *testing.T) { testReset(t, newWorld(t, realkafka.Shared(t, 1).Addrs(), "")) }

func testReset(t *testing.T, w *world) {
	again, other := testStream(t, "ods.reset.again", small), testStream(t, "ods.reset.other", small)
	w.cfg.Streams, w.cfg.Group = []Stream{again, other}, "reset-land"
	w.cfg.Engine = []engine.Option{engine.SessionTimeout(6 * time.Second), engine.RebalanceTimeout(10 * time.Second)}
	first, err := Open(t.Context(), w.cfg) // makes topics and subjects
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	id := w.id(t, &again)
	w.emit(t, again.Topic, smallValue(id, 0), smallValue(id, 1), []byte("bad"), smallValue(id, 3))
	w.emit(t, other.Topic, smallValue(id, 0), smallValue(id, 1))
	_, stop := w.start(t)
	eventually(t, "landed", func() bool { return len(w.rows(t, &again)) == 3 && len(w.rows(t, &other)) == 2 })
	one := w.cfg
	one.Streams = []Stream{again}
	if _, err := Reset(t.Context(), one, engine.TruncateLake, true); !errors.As(err, new(*engine.ResetRefusedError)) || !strings.Contains(err.Error(), "has member") {
		t.Fatalf("a reset while an instance runs: %v", err)
	}
	stop()
	if _, err := Reset(t.Context(), one, engine.RefuseLake, true); !errors.As(err, new(*engine.ResetRefusedError)) || !strings.Contains(err.Error(), "emptied") {
		t.Fatalf("a reset that doesn't say what becomes of the table: %v", err)
	}
	report, err := Reset(t.Context(), one, engine.TruncateLake, false)
	if err != nil || report.Done || !strings.Contains(report.String(), "3 rows in") || !strings.Contains(report.String(), "partitions of "+again.Topic+" from group reset-land") {
		t.Fatalf("dry run: %v\n%v", err, report)
	}
	if n := len(w.rows(t, &again)); n != 3 {
		t.Fatalf("after a dry run there are %d rows", n)
	}

	// A reset that died behind its first step: nothing lands before it was done again.
	table := lake.Delta(w.cfg.TablePlace(&again), lake.PlatformProgress()).(sink.Truncater)
	if _, err := table.Truncate(t.Context(), sink.Env{ApplicationID: w.cfg.Group, Name: "land-" + again.Topic}, []string{again.Topic}, true); err != nil {
		t.Fatal(err)
	}
	halfway, err := Open(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	var progress *engine.LakeProgressError
	if err := halfway.RunUntilLanded(t.Context()); !errors.As(err, &progress) || len(w.rows(t, &again)) != 0 {
		t.Fatalf("an instance on a reset that is half done: %v", err)
	}
	halfway.Close()

	eventually(t, "reset, once the dead instance's session has ended", func() bool {
		report, err = Reset(t.Context(), one, engine.TruncateLake, true)
		return !errors.As(err, new(*engine.ResetRefusedError))
	})
	if err != nil || !report.Done {
		t.Fatalf("reset: %v\n%v", err, report)
	}
	if report, err = Reset(t.Context(), one, engine.TruncateLake, true); err != nil || len(report.Offsets) != 0 {
		t.Fatalf("a second time: %v\n%v", err, report)
	}
	w.emit(t, again.Topic, smallValue(id, 4))
	w.emit(t, other.Topic, smallValue(id, 2))
	w.run(t, func() bool { return len(w.rows(t, &again)) == 4 && len(w.rows(t, &other)) == 3 })
	for s, want := range map[*Stream]int64{&again: 5, &other: 3} {
		r, err := verify.Table(t.Context(), verify.Config{Table: w.cfg.TablePlace(s), Topic: s.Topic, DeadLetters: s.DeadLetters, Client: []kgo.Opt{kgo.SeedBrokers(w.cfg.Brokers...)}})
		if err != nil || !r.OK() || r.Records != want || r.Waiting != 0 {
			t.Errorf("verify %s: %+v, %v", s.Topic, r, err)
		}
	}
}

// run lands until something holds, and all that was sent has landed.
func (w *world) run(t *testing.T, ok func() bool) {
	t.Helper()
	s, err := Open(t.Context(), w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.RunUntilLanded(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !ok() {
		t.Error("what was awaited doesn't hold when all has landed")
	}
}
