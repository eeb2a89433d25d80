package engine

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/plan"
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
