package playcount

import (
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

type Play struct {
	EventID string `json:"event_id"`
	Title   string `json:"title"`
}

type Minute struct {
	Title string    `json:"title"`
	Start time.Time `json:"start"`
	Plays int64     `json:"plays"`
}

// Topology counts each play once, however often its producer sent it, in the minute in which it happened.
func Topology(lakePlace string) (*topology.Plan, error) {
	b := topology.NewBuilder("play-count")
	plays := b.Stream("plays", serde.String, serde.JSON[Play]())

	plays.
		DedupBy(func(p Play) string { return p.EventID }, 24*time.Hour, topology.Store("seen")).
		GroupBy(func(_ string, p Play) string { return p.Title }, topology.Name("by-title")).
		Windowed(topology.Tumbling(time.Minute).Grace(10*time.Second)).
		Count(topology.Store("plays-per-minute")).
		EmitFinal(topology.Name("closed-minutes")).
		ToStream().
		Map(minute, topology.ValueSerde(serde.JSON[Minute]())).
		ToLake(lake.Delta(lakePlace+"/plays_per_minute"), topology.Name("plays-per-minute"))

	return b.Build()
}

func minute(w topology.Window[string], plays int64) (string, Minute) {
	return w.Key, Minute{Title: w.Key, Start: time.UnixMilli(w.Window.Start).UTC(), Plays: plays}
}
