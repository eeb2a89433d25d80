package group

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/engine/internal/offsets"
)

// A member that is thrown out joins again at once; where it is unknown each time that it joins, it pauses in between.
func TestWhoIsUnknownWhileItJoinsPauses(t *testing.T) {
	roll, worker := &roll{}, &worker{held: map[assign.TaskID]bool{}}
	classic := NewClassic(Config{Logger: slog.New(slog.DiscardHandler)}, roll)
	streams := NewStreams(StreamsConfig{Logger: slog.New(slog.DiscardHandler)}, worker)
	for name, m := range map[string]struct {
		*place
		refused func(error) error
		losses  func() int
	}{
		"classic": {classic.place, classic.refused, func() int { return len(roll.lost) }},
		"streams": {streams.place, streams.refused, func() int { return len(worker.losses()) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				m.current.Store(&offsets.Member{ID: "m"})
				began, tries := time.Now(), 0
				err := m.keep(ctx, func(context.Context) error {
					if tries++; tries == 2 && time.Since(began) > 0 {
						t.Error("a member that was thrown out paused before it joined")
					}
					if tries > 1000 {
						cancel()
					}
					return m.refused(kerr.UnknownMemberID)
				})
				if err != nil {
					t.Error(err)
				}
				if tries > 20 {
					t.Errorf("joined %d times in %v", tries, time.Since(began))
				}
				if n := m.losses(); n != 1 {
					t.Errorf("lost its place %d times", n)
				}
			})
		})
	}
}

// A coordinator that is silent is said at its beginning, now and then, and at its end; the handler hears once that the session is over.
func TestSilenceIsSaidAtItsBeginningAndItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		roll := &roll{}
		p := newPlace("g", 10*time.Second, roll, slog.New(slog.NewTextHandler(&log, nil)))
		if !p.Heard().IsZero() {
			t.Errorf("heard at %v before the first answer", p.Heard())
		}
		p.silence.answers()
		heard := time.Now()
		for range 120 { // of half a second
			time.Sleep(500 * time.Millisecond)
			p.silence.fails(kerr.CoordinatorNotAvailable)
		}
		if got := p.Heard(); !got.Equal(heard) || len(roll.unheard) != 1 || !roll.unheard[0].Equal(heard) {
			t.Errorf("heard at %v, told %v; want %v, told once", got, roll.unheard, heard)
		}
		p.silence.answers()
		p.silence.answers()
		if len(roll.unheard) != 2 || !roll.unheard[1].IsZero() {
			t.Errorf("told %v: want the end last", roll.unheard)
		}
		if warnings, ends := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "answers again"); warnings < 2 || warnings > 8 || ends != 1 {
			t.Errorf("%d warnings in a minute, %d ends:\n%s", warnings, ends, &log)
		}
	})
}
