package shop

import "time"

// The windows of the demonstration, and how far apart in event time the engine reads partitions by default.
const (
	Skew        = 10 * time.Second
	WindowSize  = 5 * time.Minute
	WindowGrace = 10 * time.Minute
)

// Totals describes the rows of a table.
type Totals struct {
	Rows             int64
	Cents            int64 // sum of amounts
	NullCoupons      int64
	MinTime, MaxTime int64 // of event times, in ms since 1970
	BySteps          [steps]int64
}

func (t *Totals) add(e *Event) {
	if t.Rows == 0 {
		t.MinTime, t.MaxTime = e.Time, e.Time
	}
	t.Rows++
	t.Cents += e.Cents
	if e.Coupon == "" {
		t.NullCoupons++
	}
	t.MinTime, t.MaxTime = min(t.MinTime, e.Time), max(t.MaxTime, e.Time)
	t.BySteps[e.Step]++
}

// Model is what the demonstration's topology must make of the stream: the reference, on one thread, with plain maps.
//
// All but Windows holds however the partitions interleave. Which records are late for their window depends on the order in which
// the aggregating tasks see them; Windows takes the order of arrival over all partitions, and spreads the regions over Partitions
// tasks (replace it before the first event for another number). In any other order still holds: a window's records in time and late
// together are WindowRow.Count + LateCount, so what has landed of a window is at most that, and what has landed of all, what was
// late and what is still open add up to Enriched.Rows.
type Model struct {
	Records     [Partitions]int64 // produced, by partition
	Quarantined int64             // undecodable, of all flaws
	ByFlaw      [flawKinds]int64
	Raw         Totals            // decodable records, repetitions too
	RawRows     [Partitions]int64 // the same by partition
	Duplicates  int64             // repetitions dropped
	Distinct    int64             // events that are left
	Unjoined    int64             // of these, without a customer
	Enriched    Totals            // and with one
	ByRegion    map[string]*Totals
	Windows     *Windows
	// Strict is the same with less grace, by Skew: each window holds at least that much if the partitions are read up to Skew apart.
	Strict *Windows

	spec   Spec
	seen   map[[16]byte]struct{}
	region map[int]string // by customer; absent: not in the table
}

// NewModel makes a model for days with the spec's Orders and Seed. The customers are read before the first event.
func NewModel(spec Spec) *Model {
	m := &Model{
		ByRegion: make(map[string]*Totals), Windows: NewWindows(WindowSize, WindowGrace, Partitions),
		Strict: NewWindows(WindowSize, WindowGrace-Skew, Partitions),
		spec:   spec, seen: make(map[[16]byte]struct{}), region: make(map[int]string),
	}
	for number := range spec.Customers() {
		if region, ok := spec.RegionOf(number); ok {
			m.region[number] = region
		}
	}
	return m
}

// AddDay takes a day's events. Days are added in their order.
func (m *Model) AddDay(date time.Time) {
	spec := m.spec
	spec.Date = date
	for e := range spec.Events() {
		m.Add(e)
	}
}

// Add takes one event.
func (m *Model) Add(e *Event) {
	m.Records[e.Partition]++
	if e.Flaw != Sound {
		m.Quarantined++
		m.ByFlaw[e.Flaw]++
		return
	}
	m.Raw.add(e)
	m.RawRows[e.Partition]++
	if _, ok := m.seen[e.ID]; ok {
		m.Duplicates++
		return
	}
	m.seen[e.ID] = struct{}{}
	m.Distinct++
	region, ok := m.region[e.Customer]
	if !ok {
		m.Unjoined++
		return
	}
	m.Enriched.add(e)
	byRegion := m.ByRegion[region]
	if byRegion == nil {
		byRegion = &Totals{}
		m.ByRegion[region] = byRegion
	}
	byRegion.add(e)
	m.Windows.Add(region, e.Time, e.Cents)
	m.Strict.Add(region, e.Time, e.Cents)
}
