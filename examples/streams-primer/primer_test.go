package primer

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/internal/realkafka"
)

func TestMain(m *testing.M) {
	MaybeVictim()
	realkafka.Main(m)
}

// What lessons without a play of their own print is what comes out in the harness.
func TestLessonsInTheHarness(t *testing.T) {
	for _, l := range Lessons {
		got, err := l.InHarness()
		if err != nil {
			t.Errorf("%s: %v", l.Name, err)
			continue
		}
		if l == &windowsLesson {
			got = sideBySide(got)
		} else if l.Play != nil {
			continue
		}
		if diff := cmp.Diff(l.Result, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", l.Name, diff)
		}
	}
}

func TestLessonsOnTheEmbeddedBroker(t *testing.T) {
	b, err := embedded.StartBroker(embedded.BrokerConfig{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	playAll(t, b.Addrs())
}

func TestLessonsOnKafka(t *testing.T) { playAll(t, realkafka.Shared(t, 1).Addrs()) }

func playAll(t *testing.T, brokers []string) {
	for _, l := range Lessons {
		t.Run(l.Name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			var progress, log bytes.Buffer
			got, err := Play(ctx, l, brokers, &progress, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
			if err != nil {
				t.Fatalf("%v\n%s", err, &log)
			}
			if diff := cmp.Diff(l.Result, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if l == &restoreLesson && progress.Len() == 0 {
				t.Error("nothing was shown of the restore")
			}
		})
	}
}

func TestFind(t *testing.T) {
	for _, l := range Lessons {
		if got, err := Find(l.Name); got != l || err != nil {
			t.Errorf("%s: %v", l.Name, err)
		}
	}
	if _, err := Find("nothing"); err == nil {
		t.Error("found a lesson that isn't there")
	}
}
