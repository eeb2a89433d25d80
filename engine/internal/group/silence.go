package group

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// silence follows how long the group's coordinator hasn't taken a sign of life of a member. Run's goroutine tells it; others may look at heard.
type silence struct {
	group   string
	log     *slog.Logger
	session time.Duration // after so long the coordinator has given the member's place up
	unheard func(since time.Time, cause error)

	heard  atomic.Int64 // when it last took one, Unix ns; 0 before
	began  time.Time    // of the failures since then; zero if there are none
	warned time.Time
	pause  time.Duration // until the next warning
	told   bool          // that the session is over
}

// The pauses between warnings about a coordinator that isn't heard, which double.
const (
	firstWarnings = time.Second
	lastWarnings  = 30 * time.Second
)

// answers notes that the coordinator took a sign of life.
func (s *silence) answers() {
	now := time.Now()
	s.heard.Store(now.UnixNano())
	if s.began.IsZero() {
		return
	}
	s.log.Info("the group's coordinator answers again", "group", s.group, "after", now.Sub(s.began).Round(time.Millisecond))
	s.began = time.Time{}
	if s.told {
		s.told = false
		s.unheard(time.Time{}, nil)
	}
}

// fails notes that it didn't.
func (s *silence) fails(cause error) {
	now := time.Now()
	if s.began.IsZero() {
		s.began, s.warned, s.pause = now, time.Time{}, firstWarnings/2
	}
	if s.warned.IsZero() || now.Sub(s.warned) >= s.pause {
		s.warned, s.pause = now, min(2*s.pause, lastWarnings)
		s.log.Warn("the group's coordinator was not heard, or refused; trying again", "group", s.group, "error", cause,
			"for", now.Sub(s.began).Round(time.Millisecond), "next_warning_in", s.pause)
	}
	heard := s.heard.Load()
	if since := time.Unix(0, heard); heard != 0 && !s.told && now.Sub(since) >= s.session {
		s.told = true
		s.unheard(since, cause)
	}
}
