package playback

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Generator makes the events of some hours of a streaming service. The same seed makes the same events.
type Generator struct {
	Seed     uint64
	Sessions int
	Start    time.Time     // of the first sessions
	Span     time.Duration // in which sessions start; six hours if zero
}

const (
	heartbeatEvery = 30 * time.Second
	titles         = 12
	// resent is how many events in a thousand a player sends twice, with the same id.
	resent = 20
)

// Events returns all events in the order in which they arrive: by time, a repeated one some seconds after the first.
func (g Generator) Events() []Event {
	r := rand.New(rand.NewPCG(g.Seed, 1))
	span := cmp.Or(g.Span, 6*time.Hour)
	type arrival struct {
		at time.Time
		e  Event
	}
	var all []arrival
	for s := range g.Sessions {
		for _, e := range g.session(r, s, span) {
			all = append(all, arrival{e.EventTime, e})
			if r.IntN(1000) < resent {
				all = append(all, arrival{e.EventTime.Add(time.Duration(1+r.IntN(10)) * time.Second), e})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return a.at.Compare(b.at) })
	out := make([]Event, len(all))
	for i := range all {
		out[i] = all[i].e
	}
	return out
}

// session is one viewer's: a start, heartbeats, a stop; some pause for longer than a session's gap and go on.
func (g Generator) session(r *rand.Rand, n int, span time.Duration) (out []Event) {
	session := fmt.Sprintf("s-%d-%06d", g.Seed, n)
	user, title := fmt.Sprintf("u-%05d", r.IntN(1+g.Sessions/2)), fmt.Sprintf("t-%02d", r.IntN(titles)*r.IntN(titles)/titles)
	at := g.Start.Add(time.Duration(r.Int64N(int64(span)/1e6)) * time.Millisecond)
	position := time.Duration(0)
	add := func(kind string, watched time.Duration) {
		at, position = at.Add(watched), position+watched
		out = append(out, Event{fmt.Sprintf("%s-%04d", session, len(out)), session, user, title, kind, at.UTC().Truncate(time.Millisecond), watched.Milliseconds(), position.Milliseconds()})
	}
	for part := range 1 + r.IntN(8)/7 {
		if part > 0 {
			at = at.Add(SessionGap + time.Duration(1+r.IntN(60))*time.Minute)
		}
		add(Started, 0)
		for range 1 + r.IntN(40) {
			add(Heartbeat, heartbeatEvery)
		}
		add(Stopped, time.Duration(r.Int64N(int64(heartbeatEvery)/1e6))*time.Millisecond)
	}
	return out
}

// Expected is what must come of a list of events.
type Expected struct {
	Records  int64 // on the topic, repeated ones too
	Events   int64 // different ones
	Sessions map[string]int
	Watched  map[TitleHour]int64 // milliseconds
	Peak     map[string]int      // the most viewers that any window of a title has had
}

// TitleHour is an hour of a title.
type TitleHour struct {
	Title string
	Hour  time.Time
}

// Expect computes what must come of the events, in another way than the topology does.
func Expect(events []Event) Expected {
	x := Expected{Records: int64(len(events)), Sessions: map[string]int{}, Watched: map[TitleHour]int64{}, Peak: map[string]int{}}
	bySession, byTitle := map[string][]Event{}, map[string][]Event{}
	seen := map[string]bool{}
	for _, e := range events {
		if seen[e.EventID] {
			continue
		}
		seen[e.EventID] = true
		bySession[e.SessionID] = append(bySession[e.SessionID], e)
		byTitle[e.TitleID] = append(byTitle[e.TitleID], e)
		x.Watched[TitleHour{e.TitleID, e.EventTime.Truncate(time.Hour)}] += e.WatchedMS
	}
	x.Events = int64(len(seen))
	byTime := func(a, b Event) int { return a.EventTime.Compare(b.EventTime) }
	for id, list := range bySession {
		slices.SortFunc(list, byTime)
		x.Sessions[id] = 1
		for i := 1; i < len(list); i++ {
			if list[i].EventTime.Sub(list[i-1].EventTime) > SessionGap {
				x.Sessions[id]++
			}
		}
	}
	for title, list := range byTitle {
		slices.SortFunc(list, byTime)
		from := 0
		viewers := map[string]int{}
		for _, e := range list {
			viewers[e.SessionID]++
			for ; list[from].EventTime.Before(e.EventTime.Add(-ViewersWindow)); from++ {
				if s := list[from].SessionID; viewers[s] == 1 {
					delete(viewers, s)
				} else {
					viewers[s]--
				}
			}
			x.Peak[title] = max(x.Peak[title], len(viewers))
		}
	}
	return x
}
