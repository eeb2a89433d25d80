package playback

import (
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
)

// Kinds of events.
const (
	Started   = "started"
	Heartbeat = "heartbeat" // each 30 seconds while something plays
	Stopped   = "stopped"
)

// Event is what a player sends.
type Event struct {
	EventID   string    `json:"event_id"`   // unique; the same when a player sends it again
	SessionID string    `json:"session_id"` // the key
	UserID    string    `json:"user_id"`
	TitleID   string    `json:"title_id"`
	Kind      string    `json:"kind"`
	EventTime time.Time `json:"event_time"`
	WatchedMS int64     `json:"watched_ms"` // since the event before
	Position  int64     `json:"position_ms"`
}

// Landed is a row of the landing table.
type Landed struct {
	EventID   string    `lake:"event_id,comment=Unique; the same when a player sends it again."`
	SessionID string    `lake:"session_id"`
	UserID    string    `lake:"user_id,ods.pii=true"`
	TitleID   string    `lake:"title_id"`
	Kind      string    `lake:"kind,comment=started heartbeat or stopped."`
	EventTime time.Time `lake:"event_time"`
	WatchedMS int64     `lake:"watched_ms,comment=Milliseconds watched since the session's event before."`
	Position  int64     `lake:"position_ms"`
	EventDate lake.Date `lake:"event_date,comment=Of event_time in UTC."`
	EventHour int32     `lake:"event_hour,comment=Of event_time in UTC."`
}

// landed makes a row of an event.
func landed(e Event) Landed {
	at := e.EventTime.UTC()
	days := at.Unix() / 86400
	if at.Unix() < days*86400 { // before 1970
		days--
	}
	return Landed{e.EventID, e.SessionID, e.UserID, e.TitleID, e.Kind, at, e.WatchedMS, e.Position, lake.Date(days), int32(at.Hour())}
}

var eventSerde = serde.JSON[Event]()

var eventTime processors.TimestampExtractor[string, Event] = func(r *processors.Record[string, Event], _ *processors.RawRecord, _ int64) (int64, error) {
	return r.Value.EventTime.UnixMilli(), nil
}
