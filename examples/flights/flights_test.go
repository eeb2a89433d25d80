package flights_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/examples/flights"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// expected holds what DuckDB computed over the same rows: see testdata/README.md.
type expected struct {
	Departures int `json:"departures"`
	PlaneJoin  struct {
		LeftRows  int   `json:"left_rows"`
		InnerRows int   `json:"inner_rows"`
		SeatsSum  int64 `json:"seats_sum"`
	} `json:"plane_join"`
	AirportJoin struct {
		DestUnknown int `json:"dest_unknown"`
	} `json:"airport_join"`
	Hourly []hourly `json:"hourly"`
}

// hourly is one window: [origin, start in ms, departures, sum of delays].
type hourly struct {
	origin            string
	start             int64
	departures, delay int64
}

func (h *hourly) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&h.origin, &h.start, &h.departures, &h.delay})
}

func readExpected(t *testing.T) expected {
	t.Helper()
	text, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var e expected
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

type window struct {
	Origin string
	Start  int64
}

func TestMonthOfDepartures(t *testing.T) {
	plan, err := flights.Topology(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := topologytest.New(t, plan)
	pipeMonth(t, d)
	want := readExpected(t)

	rows := topologytest.LakeRows[flights.Enriched](d, "departures")
	joined, unknown, seats := 0, 0, int64(0)
	for _, r := range rows {
		if r.Value.Seats != nil {
			joined++
			seats += int64(*r.Value.Seats)
		}
		if r.Value.DestName == nil {
			unknown++
		}
	}
	if len(rows) != want.Departures || joined != want.PlaneJoin.InnerRows || seats != want.PlaneJoin.SeatsSum || unknown != want.AirportJoin.DestUnknown {
		t.Errorf("%d rows, %d with a plane over %d seats, %d to unknown airports; want %d, %d over %d, %d", len(rows), joined, seats, unknown,
			want.Departures, want.PlaneJoin.InnerRows, want.PlaneJoin.SeatsSum, want.AirportJoin.DestUnknown)
	}
	compareHours(t, d, want.Hourly)
}

// compareHours compares the closed hours that landed, together with those that are still open in the store, with all of DuckDB's.
func compareHours(t *testing.T, d *topologytest.Driver, want []hourly) {
	t.Helper()
	got := map[window]flights.Hour{}
	closed := topologytest.LakeRows[flights.HourRow](d, "hourly")
	for _, r := range closed {
		w := window{r.Value.Origin, r.Value.Hour.UnixMilli()}
		if _, twice := got[w]; twice {
			t.Errorf("hour %v landed twice", w)
		}
		got[w] = flights.Hour{Departures: r.Value.Departures, DelayMinutes: r.Value.DelayMinutes}
	}
	store, err := topologytest.TimestampedWindow(d, flights.HourlyStore, 0, serde.String, serde.JSON[flights.Hour]())
	if err != nil {
		t.Fatal(err)
	}
	open := 0
	for e, err := range store.All(state.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		w := window{e.Key, e.Start}
		if landed, ok := got[w]; ok {
			if landed != e.Value {
				t.Errorf("hour %v landed as %+v, the store has %+v", w, landed, e.Value)
			}
			continue
		}
		got[w] = e.Value
		open++
	}
	model := map[window]flights.Hour{}
	for _, h := range want {
		model[window{h.origin, h.start}] = flights.Hour{Departures: h.departures, DelayMinutes: h.delay}
	}
	if diff := cmp.Diff(model, got); diff != "" {
		t.Errorf("hours (-DuckDB +here):\n%s", diff)
	}
	// Two days of grace keep two days of hours open.
	if open == 0 || len(closed) < len(want)*9/10 {
		t.Errorf("%d hours landed, %d are open", len(closed), open)
	}
}

// pipeMonth writes the tables, then the month's departures in the order of the file.
func pipeMonth(t *testing.T, d *topologytest.Driver) {
	t.Helper()
	planes, err := flights.Planes()
	if err != nil {
		t.Fatal(err)
	}
	airports, err := flights.Airports()
	if err != nil {
		t.Fatal(err)
	}
	departures, err := flights.Departures()
	if err != nil {
		t.Fatal(err)
	}
	newYear := time.Date(2013, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	planeIn := topologytest.Input(d, flights.PlaneTopic, serde.String, serde.JSON[flights.Plane]())
	for _, p := range planes {
		planeIn.Pipe(p.TailNum, p, newYear)
	}
	airportIn := topologytest.Input(d, flights.AirportTopic, serde.String, serde.JSON[flights.Airport]())
	for _, a := range airports {
		airportIn.Pipe(a.FAA, a, newYear)
	}
	departureIn := topologytest.Input(d, flights.DepartureTopic, serde.String, serde.JSON[flights.Departure]())
	for _, dep := range departures {
		departureIn.Pipe(dep.TailNum, dep, dep.Scheduled.UnixMilli())
	}
}
