package playback

import (
	"time"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Names of the views' application, of its topics and stores.
const (
	ViewsID = "playback-views"

	SessionTopic = "streaming.playback_sessions"   // key session@start
	WatchTopic   = "streaming.playback_watch_time" // key title@hour
	ViewersTopic = "streaming.playback_viewers"    // key title@start of the window

	// SessionGap is how long a viewer may be silent before the next event begins another session.
	SessionGap = 30 * time.Minute
	// ViewersWindow is how far apart two events may be to count as at the same time: two heartbeats.
	ViewersWindow = time.Minute
	// Late is how late an event may come.
	Late = 24 * time.Hour
)

// Session is one stretch of viewing.
type Session struct {
	Session string    `json:"session"`
	Title   string    `json:"title"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Events  int64     `json:"events"`
	Watched int64     `json:"watched_ms"`
}

// Watch is what was watched of a title in an hour.
type Watch struct {
	Title   string    `json:"title"`
	Hour    time.Time `json:"hour"`
	Watched int64     `json:"watched_ms"`
}

// Viewers are the viewers of a title in one window.
type Viewers struct {
	Title   string    `json:"title"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Viewers int       `json:"viewers"`
}

// Views declares the downstream application. Events that a player has sent twice count once.
func Views(s Settings) (*topology.Plan, error) {
	b := topology.NewBuilder(ViewsID)
	events := b.Stream(s.Topic, serde.String, eventSerde, topology.Timestamps(eventTime)).
		DedupBy(func(e Event) string { return e.EventID }, Late, topology.Store("seen"))
	sessions(events)
	titles := events.GroupBy(func(_ string, e Event) string { return e.TitleID }, topology.Name("by-title"))
	watchTime(titles)
	viewers(titles)
	return b.Build()
}

func sessions(events *topology.Stream[string, Event]) {
	events.
		GroupByKey().
		Sessions(topology.Session(SessionGap).Grace(Late)).
		Aggregate(func() *Session { return nil }, addToSession, mergeSessions, topology.Store("sessions"), topology.ValueSerde(serde.JSON[*Session]())).
		ToStream().
		Map(func(w topology.Window[string], s *Session) (string, *Session) { return at(w.Key, w.Window.Start), s }).
		To(SessionTopic)
}

func addToSession(id string, e Event, s *Session) *Session {
	return mergeSessions(id, s, &Session{id, e.TitleID, e.EventTime, e.EventTime, 1, e.WatchedMS})
}

// mergeSessions returns another session: what a store was given must not change. A session that is merged into another is deleted:
// its key gets a null.
func mergeSessions(_ string, a, b *Session) *Session {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	out := *a
	if b.From.Before(out.From) {
		out.From = b.From
	}
	if b.To.After(out.To) {
		out.To = b.To
	}
	out.Events, out.Watched = a.Events+b.Events, a.Watched+b.Watched
	return &out
}

func watchTime(titles *topology.GroupedStream[string, Event]) {
	titles.
		Windowed(topology.Tumbling(time.Hour).Grace(Late)).
		Aggregate(func() int64 { return 0 }, func(_ string, e Event, sum int64) int64 { return sum + e.WatchedMS }, topology.Store("watch-time"), topology.ValueSerde(serde.Int64)).
		ToStream().
		Map(func(w topology.Window[string], sum int64) (string, Watch) {
			return at(w.Key, w.Window.Start), Watch{w.Key, time.UnixMilli(w.Window.Start).UTC(), sum}
		}, topology.ValueSerde(serde.JSON[Watch]())).
		To(WatchTopic)
}

func viewers(titles *topology.GroupedStream[string, Event]) {
	titles.
		Windowed(topology.Sliding(ViewersWindow).Grace(Late)).
		Aggregate(func() map[string]bool { return nil }, addViewer, topology.Store("viewers"), topology.ValueSerde(serde.JSON[map[string]bool]())).
		ToStream().
		Map(func(w topology.Window[string], seen map[string]bool) (string, Viewers) {
			return at(w.Key, w.Window.Start), Viewers{w.Key, time.UnixMilli(w.Window.Start).UTC(), time.UnixMilli(w.Window.End).UTC(), len(seen)}
		}, topology.ValueSerde(serde.JSON[Viewers]())).
		To(ViewersTopic)
}

// addViewer returns another set: what a store was given must not change.
func addViewer(_ string, e Event, seen map[string]bool) map[string]bool {
	out := make(map[string]bool, len(seen)+1)
	for s := range seen {
		out[s] = true
	}
	out[e.SessionID] = true
	return out
}

// at is the key of a window's result.
func at(key string, start int64) string {
	return key + "@" + time.UnixMilli(start).UTC().Format("2006-01-02T15:04:05.000Z")
}
