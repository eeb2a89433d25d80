package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/internal/topicrights"
	"github.com/tributary-io/tributary/processors"
)

// Each refusal costs the work of a transaction. Where brokers say that letters can be written, and refuse them all the same, they are tried ever less often,
// until it has gone well for a while.
func TestLettersThatAreRefusedAgainAreTriedLessOften(t *testing.T) {
	now := time.UnixMilli(0)
	e := &Engine{plan: &plan.Plan{}}
	e.cfg.parks, e.cfg.clock = true, func() time.Time { return now }
	letters := &letterTopic{}
	e.closed.topics = map[string]*letterTopic{"dead": letters}
	refuse := func() time.Duration {
		t.Helper()
		if !e.closeLetters(&txn.ProduceError{Topic: "dead", Err: kerr.TopicAuthorizationFailed}, nil) || letters.err == nil {
			t.Fatal("the topic isn't closed")
		}
		pause := letters.next.Sub(now)
		now, letters.err = letters.next, nil // brokers say that it can be written
		return pause
	}
	for want := firstRetry; want < longestRetry; want *= 2 {
		if pause := refuse(); pause != want {
			t.Errorf("tried again after %v, want %v", pause, want)
		}
	}
	now = now.Add(3 * longestRetry)
	if pause := refuse(); pause != firstRetry {
		t.Errorf("after a time that went well it is tried again after %v", pause)
	}
}

// A letter that was written already needs no topic that can be written.
func TestWrittenLettersNeedNoTopic(t *testing.T) {
	now, why := time.UnixMilli(0), errors.New("closed")
	e := &Engine{}
	e.cfg.parks, e.cfg.clock = true, func() time.Time { return now }
	e.closed.topics = map[string]*letterTopic{"dead": {err: why, next: now.Add(time.Second)}}
	r := &runner{spec: &taskSpec{lake: true}}
	r.deadFloor = map[task.TopicPartition]int64{{Topic: "in", Partition: 1}: 5}
	c := &collector{e: e, r: r, asking: t.Context()}
	send := func(offset int64) error {
		return c.Send(&task.Out{Topic: "dead", Partition: -1, About: &processors.ErrorContext{Topic: "in", Partition: 1, Offset: offset}})
	}
	if err := send(4); err != nil {
		t.Errorf("one that was written: %v", err)
	}
	if err := send(5); !errors.Is(err, why) {
		t.Errorf("the next: %v", err)
	}
}

// While one worker asks the brokers about a topic, the others don't wait for the answer: it stays closed for them.
func TestOneWorkerAsksWhetherLettersCanBeWritten(t *testing.T) {
	now, why := time.UnixMilli(0), errors.New("closed")
	c := &closedLetters{topics: map[string]*letterTopic{"dead": {err: why, next: now}}}
	if ask, err := c.look("dead", now); !ask || err != nil {
		t.Fatalf("the first asks: %v, %v", ask, err)
	}
	if ask, err := c.look("dead", now.Add(askingLetters-1)); ask || err != why {
		t.Errorf("the next asks: %v, %v", ask, err)
	}
	if err := c.answered("dead", topicrights.ErrNoTopic, now); !errors.Is(err, topicrights.ErrNoTopic) {
		t.Errorf("after a refusal: %v", err)
	}
	if ask, err := c.look("dead", now); ask || !errors.Is(err, topicrights.ErrNoTopic) {
		t.Errorf("before the next try: %v, %v", ask, err)
	}
	if ask, _ := c.look("dead", now.Add(firstRetry)); !ask {
		t.Error("nobody asks again")
	}
	if err := c.answered("dead", nil, now); err != nil {
		t.Error(err)
	}
	if ask, err := c.look("dead", now); ask || err != nil {
		t.Errorf("once it can be written: %v, %v", ask, err)
	}
}
