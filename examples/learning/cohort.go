package learning

import (
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Names of the cohort. The stores can be asked over HTTP.
const (
	CohortTable       = "curated/cohort" // below the lake: a Delta table with a row for each learner in each course
	CohortApplication = "learning-enrollment-cohort"
	CohortStore       = "cohort" // Enrollment by EnrollmentKey, deleted ones too
	SeatsStore        = "seats"  // active enrollments by course
)

// Enrollment is the current state of a learner in a course.
type Enrollment struct {
	LearnerID string    `json:"learner_id"`
	CourseID  string    `json:"course_id"`
	Status    string    `json:"status,omitempty"`
	Deleted   bool      `json:"deleted,omitempty"`
	LSN       LSN       `json:"source_lsn"` // as a number
	ChangedAt time.Time `json:"changed_at"`
}

// Cohort keeps the current state of each learner in each course. Only a newer source_lsn is applied; a deleted one stays in the store with its
// LSN, so that a late old change doesn't bring it back. The table in the lake does the same with the same changes, by its own account.
func Cohort(place string) (*topology.Plan, error) {
	b := topology.NewBuilder(CohortApplication)
	changes := b.Stream(EnrollmentTopic, textKey, serde.Bytes, topology.Timestamps(topicTime)).
		Process(newChangeReader, topology.Name("valid"))
	changes.ToLake(lake.Delta(place+"/"+CohortTable,
		lake.CurrentState("learner_id", "course_id"), lake.OrderBy("source_lsn"), lake.DeleteWhere("op", Delete)),
		topology.Name("cohort-table"), topology.KeySerde(serde.String), topology.ValueSerde(serde.JSON[Change]()))
	current := changes.
		GroupByKey(topology.Name("by-learner-and-course"), topology.KeySerde(serde.String), topology.ValueSerde(serde.JSON[Change]())).
		Aggregate(func() Enrollment { return Enrollment{} }, newest, topology.Store(CohortStore), topology.ValueSerde(serde.JSON[Enrollment]()))
	// The first change of a row has the aggregate's initial value as its old one, as in Kafka Streams: that is nobody's seat.
	active := current.Filter(func(_ string, e Enrollment) bool { return e.LearnerID != "" && !e.Deleted }, topology.Name("active"))
	active.ToStream().To(CurrentTopic, topology.KeySerde(serde.String), topology.ValueSerde(serde.JSON[Enrollment]()))
	active.
		GroupBy(func(_ string, e Enrollment) (string, string) { return e.CourseID, e.LearnerID }, topology.Name("by-course"), topology.KeySerde(serde.String), topology.ValueSerde(serde.String)).
		Count(topology.Store(SeatsStore)).
		ToStream().To(SeatsTopic)
	return b.Build()
}

// newest applies a change if it is newer than what is known.
func newest(_ string, c Change, e Enrollment) Enrollment {
	if c.LSN <= e.LSN && e.LearnerID != "" {
		return e
	}
	return Enrollment{LearnerID: c.LearnerID, CourseID: c.CourseID, Status: c.Status, Deleted: c.Op == Delete, LSN: c.LSN, ChangedAt: c.EventTime}
}

// changeReader turns bytes into changes under their proper key. What it rejects is an error of the record.
type changeReader struct {
	ctx processors.ProcessorContext[string, Change]
}

func newChangeReader() processors.Processor[*string, []byte, string, Change] { return &changeReader{} }

func (v *changeReader) Init(ctx processors.ProcessorContext[string, Change]) error {
	v.ctx = ctx
	return nil
}

func (v *changeReader) Process(r *processors.Record[*string, []byte]) error {
	c, err := ParseEnrollment(r.Key, r.Value)
	if err != nil {
		return err
	}
	out := processors.WithKey(r, EnrollmentKey(c.LearnerID, c.CourseID))
	changed := processors.WithValue(&out, c)
	return v.ctx.Forward(&changed)
}

func (v *changeReader) Close() error { return nil }
