package flights

import (
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Names of the application, its topics, tables and stores.
const (
	ApplicationID = "flights"

	DepartureTopic = "flights.departures" // keyed by tail number
	PlaneTopic     = "flights.planes"     // keyed by tail number
	AirportTopic   = "flights.airports"   // keyed by FAA code

	DepartureTable = "raw/flights__departures"
	HourlyTable    = "curated/flights__hourly"

	HourlyStore = "hourly"
)

// Grace is how late a departure may be for its hour. The latest in the data is a day behind.
const Grace = 48 * time.Hour

// Enriched is a row of raw/flights__departures: a departure with what is known of its plane and destination.
type Enriched struct {
	Departure
	Model        *string `json:"model" lake:"model,comment=The plane's model; null for a plane that isn't in the table."`
	Seats        *int32  `json:"seats" lake:"seats,comment=The plane's seats."`
	Manufacturer *string `json:"manufacturer" lake:"manufacturer,comment=Who built the plane."`
	DestName     *string `json:"dest_name" lake:"dest_name,comment=The destination's name; null for an airport that isn't in the table."`
}

// Hour adds up the departures of one hour.
type Hour struct {
	Departures   int64 `json:"departures"`
	DelayMinutes int64 `json:"delay_minutes"`
}

// HourRow is a row of curated/flights__hourly: one closed hour of one airport.
type HourRow struct {
	Origin       string    `json:"origin" lake:"origin,comment=FAA code of the airport."`
	Hour         time.Time `json:"hour" lake:"hour,comment=The hour's start."`
	Departures   int64     `json:"departures" lake:"departures,comment=Flights that left in the hour."`
	DelayMinutes int64     `json:"delay_minutes" lake:"delay_minutes,comment=The sum of their delays; early departures count negative."`
	MeanDelay    float64   `json:"mean_delay" lake:"mean_delay,comment=Delay of a departure on average, in minutes."`
}

// Topology declares the application. Its tables go below the folder or URL lakePlace.
func Topology(lakePlace string) (*topology.Plan, error) {
	b := topology.NewBuilder(ApplicationID)
	departures := b.Stream(DepartureTopic, serde.String, serde.JSON[Departure](), topology.Timestamps(departed))
	planes := b.Table(PlaneTopic, serde.String, serde.JSON[Plane](), topology.Store("planes"))
	airports := b.GlobalTable(AirportTopic, serde.String, serde.JSON[Airport](), topology.Store("airports"))

	enriched := departures.
		LeftJoin(planes, withPlane, topology.Name("with-plane")).
		LeftJoinGlobal(airports, func(_ string, e Enriched) string { return e.Dest }, withAirport, topology.Name("with-airport"),
			topology.ValueSerde(serde.JSON[Enriched]()))
	enriched.ToLake(lake.Delta(lakePlace+"/"+DepartureTable, lake.SourceColumns()), topology.Name("departures"))

	enriched.
		GroupBy(func(_ string, e Enriched) string { return e.Origin }, topology.Name("by-origin")).
		Windowed(topology.Tumbling(time.Hour).Grace(Grace)).
		Aggregate(func() Hour { return Hour{} }, addUp, topology.Store(HourlyStore), topology.ValueSerde(serde.JSON[Hour]())).
		EmitFinal(topology.Name("closed-hours")).
		ToStream().
		Map(hourRow, topology.ValueSerde(serde.JSON[HourRow]())).
		ToLake(lake.Delta(lakePlace+"/"+HourlyTable), topology.Name("hourly"))
	return b.Build()
}

var departed processors.TimestampExtractor[string, Departure] = func(r *processors.Record[string, Departure], _ *processors.RawRecord, _ int64) (int64, error) {
	return r.Value.Departed.UnixMilli(), nil
}

func withPlane(d Departure, p *Plane) Enriched {
	e := Enriched{Departure: d}
	if p != nil {
		e.Model, e.Seats, e.Manufacturer = &p.Model, &p.Seats, &p.Manufacturer
	}
	return e
}

func withAirport(e Enriched, a *Airport) Enriched {
	if a != nil {
		e.DestName = &a.Name
	}
	return e
}

func addUp(_ string, e Enriched, h Hour) Hour {
	return Hour{Departures: h.Departures + 1, DelayMinutes: h.DelayMinutes + e.DelayMinutes}
}

func hourRow(w topology.Window[string], h Hour) (string, HourRow) {
	return w.Key, HourRow{
		Origin: w.Key, Hour: time.UnixMilli(w.Window.Start).UTC(), Departures: h.Departures, DelayMinutes: h.DelayMinutes,
		MeanDelay: float64(h.DelayMinutes) / float64(h.Departures),
	}
}
