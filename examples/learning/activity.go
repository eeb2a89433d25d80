package learning

import (
	"time"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Names of the tiles.
const (
	ActivityApplication = "learning-course-activity"
	DistinctApplication = "learning-distinct-activity"
)

// The tiles' windows, how late an event may be for its window, and how long the distinct tile remembers event ids.
const (
	ActivityWindowSize = 5 * time.Minute
	ActivityLateness   = 10 * time.Minute
	DistinctWithin     = 24 * time.Hour
)

// Activity adds up a window.
type Activity struct {
	Events    int64 `json:"events"`
	Completed int64 `json:"completed"` // events with a progress of 100
}

// ActivityWindow is a value of ActivityTopic: one closed window of one course. Start is inclusive, End exclusive.
type ActivityWindow struct {
	CourseID string    `json:"course_id"`
	Start    time.Time `json:"window_start"`
	End      time.Time `json:"window_end"`
	Activity
}

// LateEvent is a value of ActivityLateTopic.
type LateEvent struct {
	EventID  string    `json:"event_id"`
	CourseID string    `json:"course_id"`
	At       time.Time `json:"event_time"`
}

// ActivityTile counts the events of each course in windows of five minutes. Each window comes out once, when it is closed. It does not
// deduplicate: an event that was sent twice counts twice, and reconciliation says how many did.
func ActivityTile() (*topology.Plan, error) {
	b := topology.NewBuilder(ActivityApplication)
	tile(validEvents(b), ActivityTopic, ActivityLateTopic)
	return b.Build()
}

// DistinctTile is the tile that counts each event id once.
func DistinctTile() (*topology.Plan, error) {
	b := topology.NewBuilder(DistinctApplication)
	distinct := validEvents(b).DedupBy(func(p Progress) string { return p.EventID }, DistinctWithin, topology.Store("seen-events"), topology.RepartitionByID(), topology.Name("by-event"), topology.KeySerde(textKey), topology.ValueSerde(serde.JSON[Progress]()))
	tile(distinct, DistinctTopic, DistinctLateTopic)
	return b.Build()
}

// validEvents are the topic's events that the validator takes.
func validEvents(b *topology.Builder) *topology.Stream[*string, Progress] {
	return b.Stream(ProgressTopic, textKey, serde.Bytes, topology.Timestamps(progressTime)).
		Process(newValidator, topology.Name("valid"))
}

// tile declares the windows, and beside them where late events go: the window counts and drops them, the topic says which they were.
func tile(events *topology.Stream[*string, Progress], to, late string) {
	judged := events.
		SelectKey(func(_ *string, p Progress) string { return p.CourseID }).
		Repartition(topology.Name("by-course"), topology.KeySerde(serde.String), topology.ValueSerde(serde.JSON[Progress]())).
		ProcessValues(func() processors.FixedKeyProcessor[string, Progress, judgedEvent] { return &lateness{} }, topology.Name("lateness")).
		Split(topology.Name("late-"))
	judged.Branch(func(_ string, j judgedEvent) bool { return j.Late }, topology.Name("yes")).
		MapValues(func(j judgedEvent) LateEvent { return LateEvent{j.EventID, j.CourseID, j.EventTime} }, topology.ValueSerde(serde.JSON[LateEvent]())).
		To(late)
	judged.Default(topology.Name("no")).
		GroupByKey().
		Windowed(topology.Tumbling(ActivityWindowSize).Grace(ActivityLateness)).
		Aggregate(func() Activity { return Activity{} }, addActivity, topology.Store("activity"), topology.KeySerde(serde.String), topology.ValueSerde(serde.JSON[Activity]())).
		EmitFinal(topology.Name("closed-windows")).
		ToStream().
		Map(activityWindow, topology.KeySerde(serde.String), topology.ValueSerde(serde.JSON[ActivityWindow]())).
		To(to)
}

func addActivity(_ string, j judgedEvent, a Activity) Activity {
	a.Events++
	if j.Percent == 100 {
		a.Completed++
	}
	return a
}

func activityWindow(w topology.Window[string], a Activity) (string, ActivityWindow) {
	return w.Key, ActivityWindow{w.Key, time.UnixMilli(w.Window.Start).UTC(), time.UnixMilli(w.Window.End).UTC(), a}
}

// judgedEvent is an event of which is known whether its window is still open.
type judgedEvent struct {
	Progress
	Late bool
}

// lateness tells late events by the rule of the windows behind it. It is the only way into them, in one task with them, so that both see the
// same stream time.
type lateness struct {
	ctx processors.FixedKeyContext[string, judgedEvent]
}

func (l *lateness) Init(ctx processors.FixedKeyContext[string, judgedEvent]) error {
	l.ctx = ctx
	return nil
}

func (l *lateness) Process(r *processors.Record[string, Progress]) error {
	out := processors.WithValue(r, judgedEvent{r.Value, closed(r.Timestamp, l.ctx.StreamTimeMs())})
	return l.ctx.Forward(&out)
}

func (l *lateness) Close() error { return nil }

// windowStart is the start of the window of a time, both in ms.
func windowStart(ms int64) int64 { return ms - ms%ActivityWindowSize.Milliseconds() }

// closed tells whether the window of a time is closed when the stream has come to another, both in ms.
func closed(ms, streamTime int64) bool {
	return windowStart(ms)+ActivityWindowSize.Milliseconds()+ActivityLateness.Milliseconds() <= streamTime
}

// validator turns bytes into events. What it rejects is an error of the record.
type validator struct {
	ctx processors.ProcessorContext[*string, Progress]
}

func newValidator() processors.Processor[*string, []byte, *string, Progress] { return &validator{} }

func (v *validator) Init(ctx processors.ProcessorContext[*string, Progress]) error {
	v.ctx = ctx
	return nil
}

func (v *validator) Process(r *processors.Record[*string, []byte]) error {
	p, err := ParseProgress(r.Key, r.Value)
	if err != nil {
		return err
	}
	out := processors.WithValue(r, p)
	return v.ctx.Forward(&out)
}

func (v *validator) Close() error { return nil }
