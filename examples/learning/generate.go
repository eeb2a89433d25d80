package learning

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Spec says what to generate. The same spec gives the same records, always.
type Spec struct {
	Seed     uint64
	FirstDay time.Time // midnight, UTC
	Days     int
	Learners int
	Courses  int
	Events   int // progress records a day before faults are added
}

// Expected is what must come out of the generated records, found without any of the products.
type Expected struct {
	Progress, Enrollment int64 // records written
	Valid                int64 // progress records that the validator takes, repetitions included
	Distinct             int64 // valid event ids
	Late                 int64 // valid records that come after their window has closed
	Tail                 int64 // valid records at the very end, whose windows stay open
	Rejected             map[string]int64
	RejectedChanges      map[string]int64
	Completed            map[CourseDayKey]map[string]bool // distinct completed lessons, by learner, course and day
	Cohort               map[string]Enrollment            // current state by key, deleted ones left out
	Seats                map[string]int64
}

// CourseDayKey is what course_day counts by.
type CourseDayKey struct {
	Day       string `json:"day"` // YYYY-MM-DD, of event time in UTC
	CourseID  string `json:"course_id"`
	LearnerID string `json:"learner_id"`
}

// lateBy is how far behind the generated late events are: so far that their window has closed wherever they are counted.
const lateBy = 6 * time.Hour

// generator makes records and notes what must become of them.
type generator struct {
	spec Spec
	r    *rand.Rand
	n    int
	out  []Record
	want *Expected
	seen map[string]bool // valid event ids
	lsn  LSN
	last map[string]Change // newest change by key
}

// Generate makes the records of a spec, in the order of producing: progress of days, with repetitions, late events and bad records among it,
// and changes of enrollments, some of them out of order.
func Generate(spec Spec) ([]Record, *Expected) {
	g := &generator{spec: spec, r: rand.New(rand.NewPCG(spec.Seed, 9)), seen: map[string]bool{}, lsn: 0xFFFFFF00, last: map[string]Change{},
		want: &Expected{Rejected: map[string]int64{}, RejectedChanges: map[string]int64{}, Completed: map[CourseDayKey]map[string]bool{}, Cohort: map[string]Enrollment{}, Seats: map[string]int64{}}}
	for d := range spec.Days {
		g.day(spec.FirstDay.AddDate(0, 0, d))
	}
	g.tail(spec.FirstDay.AddDate(0, 0, spec.Days).Add(time.Hour))
	g.settle()
	return g.out, g.want
}

func (g *generator) id(prefix string) string {
	g.n++
	return fmt.Sprintf("%s-%06d", prefix, g.n)
}

func (g *generator) learner() string { return fmt.Sprintf("learner-%03d", g.r.IntN(g.spec.Learners)) }
func (g *generator) course() string  { return fmt.Sprintf("course-%02d", g.r.IntN(g.spec.Courses)) }

// day makes a day: event time goes on from record to record.
func (g *generator) day(midnight time.Time) {
	step := 24 * time.Hour / time.Duration(g.spec.Events)
	for i := range g.spec.Events {
		at := midnight.Add(time.Duration(i)*step + step/2)
		e := g.event(at, g.course())
		g.progress(e)
		switch p := g.r.IntN(100); {
		case p < 4:
			g.progress(e) // the producer sends it again
		case p < 7:
			g.rejected(at, p)
		case p < 9 && at.Sub(g.spec.FirstDay) > lateBy+time.Hour:
			late := g.event(at.Add(-lateBy), e["course_id"].(string)) // its course, so that its partition has come as far
			g.want.Late++
			g.progress(late)
		}
		if g.r.IntN(4) == 0 {
			g.change(at)
		}
	}
}

// tail makes one event of each course behind everything, which closes the windows of the days.
func (g *generator) tail(at time.Time) {
	for c := range g.spec.Courses {
		g.want.Tail++
		g.progress(g.event(at, fmt.Sprintf("course-%02d", c)))
	}
}

// event makes a valid one.
func (g *generator) event(at time.Time, course string) map[string]any {
	percent := g.r.IntN(11) * 10
	return map[string]any{
		"event_id": g.id("p"), "event_type": ProgressEvent, "event_version": 1, "event_time": g.zoned(at), "learner_id": g.learner(),
		"course_id": course, "lesson_id": fmt.Sprintf("lesson-%02d", g.r.IntN(12)), "progress_pct": percent, "producer": "player/2.1", "device": "tablet",
	}
}

// zoned writes a time in one of several zones.
func (g *generator) zoned(at time.Time) string {
	zones := []*time.Location{time.UTC, time.FixedZone("", 2*3600), time.FixedZone("", -5*3600)}
	return at.In(zones[g.r.IntN(len(zones))]).Format("2006-01-02T15:04:05.000Z07:00")
}

func text(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // can't be: maps of texts and numbers
	}
	return data
}

// progress writes a valid event, with a null key here and there.
func (g *generator) progress(e map[string]any) {
	key := e["learner_id"].(string)
	r := Record{ProgressTopic, &key, text(e)}
	if g.r.IntN(50) == 0 {
		r.Key = nil
	}
	g.out = append(g.out, r)
	g.want.Progress++
	g.want.Valid++
	id := e["event_id"].(string)
	if g.seen[id] {
		return
	}
	g.seen[id] = true
	g.want.Distinct++
	if e["progress_pct"] == 100 {
		at, _ := time.Parse("2006-01-02T15:04:05.000Z07:00", e["event_time"].(string))
		k := CourseDayKey{at.UTC().Format(time.DateOnly), e["course_id"].(string), key}
		if g.want.Completed[k] == nil {
			g.want.Completed[k] = map[string]bool{}
		}
		g.want.Completed[k][e["lesson_id"].(string)] = true
	}
}

// rejected writes a bad record: each kind in turn.
func (g *generator) rejected(at time.Time, _ int) {
	e := g.event(at, g.course())
	key := e["learner_id"].(string)
	kinds := []struct {
		reason string
		spoil  func()
		raw    string
	}{
		{reason: "unparseable", raw: `{"event_id": "p-`},
		{reason: "not_an_object", raw: `["p", 1]`},
		{reason: "missing:event_time,lesson_id", spoil: func() { delete(e, "lesson_id"); e["event_time"] = nil }},
		{reason: "unsupported_type_or_version", spoil: func() { e["event_version"] = "1" }},
		{reason: "key_payload_mismatch", spoil: func() { key = "learner-of-another-name" }},
		{reason: "bad_event_time", spoil: func() { e["event_time"] = 1780315200 }},
		{reason: "event_time_without_zone", spoil: func() { e["event_time"] = at.Format("2006-01-02T15:04:05") }},
		{reason: "bad_progress_pct", spoil: func() { e["progress_pct"] = json.RawMessage("40.0") }},
	}
	var total int64
	for _, n := range g.want.Rejected {
		total += n
	}
	k := kinds[total%int64(len(kinds))]
	value := []byte(k.raw)
	if k.spoil != nil {
		k.spoil()
		value = text(e)
	}
	g.out = append(g.out, Record{ProgressTopic, &key, value})
	g.want.Progress++
	g.want.Rejected[k.reason]++
}

// change writes a change of an enrollment; now and then an older one behind it, or a bad one.
func (g *generator) change(at time.Time) {
	c := Change{EventTime: at, LearnerID: g.learner(), CourseID: g.course(), Op: Upsert, Status: []string{"active", "paused", "completed"}[g.r.IntN(3)]}
	g.lsn += LSN(1 + g.r.IntN(100))
	if g.r.IntN(4) == 0 {
		c.Op, c.Status = Delete, ""
	}
	older := g.r.IntN(5) == 0
	c.LSN = g.lsn
	g.enrollment(c)
	if older { // the same row's past arrives late; after a delete it must not come back
		c.Op, c.Status, c.LSN = Upsert, "active", g.lsn-1
		g.enrollment(c)
	}
	if g.r.IntN(12) == 0 {
		g.rejectedChange(c)
	}
}

func (c *Change) fields(id string) map[string]any {
	e := map[string]any{"event_id": id, "event_type": EnrollmentEvent, "event_version": 1, "event_time": c.EventTime.Format(time.RFC3339Nano),
		"learner_id": c.LearnerID, "course_id": c.CourseID, "op": c.Op, "status": nil, "source_lsn": c.LSN.String()}
	if c.Status != "" {
		e["status"] = c.Status
	}
	return e
}

func (g *generator) enrollment(c Change) {
	key := EnrollmentKey(c.LearnerID, c.CourseID)
	g.out = append(g.out, Record{EnrollmentTopic, &key, text(c.fields(g.id("e")))})
	g.want.Enrollment++
	if old, ok := g.last[key]; !ok || c.LSN > old.LSN {
		g.last[key] = c
	}
}

func (g *generator) rejectedChange(c Change) {
	key := EnrollmentKey(c.LearnerID, c.CourseID)
	c.Op, c.Status, c.LSN = Upsert, "active", g.lsn+1
	e := c.fields(g.id("e"))
	spoil := []struct {
		reason string
		spoil  func()
	}{
		{"bad_op", func() { e["op"] = "merge" }},
		{"missing_lsn", func() { delete(e, "source_lsn") }},
		{"delete_with_status", func() { e["op"] = Delete }},
		{"upsert_without_status", func() { e["status"] = nil }},
	}[g.r.IntN(4)]
	spoil.spoil()
	g.out = append(g.out, Record{EnrollmentTopic, &key, text(e)})
	g.want.Enrollment++
	g.want.RejectedChanges[spoil.reason]++
}

// settle finds the current state.
func (g *generator) settle() {
	for _, key := range slices.Sorted(maps.Keys(g.last)) {
		if c := g.last[key]; c.Op == Upsert {
			g.want.Cohort[key] = Enrollment{LearnerID: c.LearnerID, CourseID: c.CourseID, Status: c.Status, LSN: c.LSN, ChangedAt: c.EventTime.UTC()}
			g.want.Seats[c.CourseID]++
		}
	}
}
