package learning

import (
	"time"

	"github.com/tributary-io/tributary/lake"
)

// EnrollmentEvent is the event type of EnrollmentTopic.
const EnrollmentEvent = "enrollment_changed"

// The operations of a change.
const (
	Upsert = "upsert"
	Delete = "delete"
)

// enrollmentFields are what an enrollment record must have; status and source_lsn have reasons of their own.
var enrollmentFields = []string{"event_id", "event_type", "event_version", "event_time", "learner_id", "course_id", "op"}

// keySeparator is between the parts of an enrollment's key.
const keySeparator = "\x1f"

// EnrollmentKey is the key of EnrollmentTopic.
func EnrollmentKey(learner, course string) string { return learner + keySeparator + course }

// LSN is a position in the source's log. It is written as two hex halves, such as 0/16B3748, and compared as a number.
type LSN = lake.LSN

// ParseLSN reads an LSN.
func ParseLSN(s string) (LSN, error) { return lake.ParseLSN(s) }

// Change is a valid record of EnrollmentTopic, and a row of CohortTable.
type Change struct {
	EventID   string    `lake:"event_id"`
	EventTime time.Time `lake:"changed_at"` // UTC
	LearnerID string    `lake:"learner_id"`
	CourseID  string    `lake:"course_id"`
	Op        string    `lake:"op"`     // Upsert or Delete
	Status    string    `lake:"status"` // empty for a Delete
	LSN       LSN       `lake:"source_lsn"`
}

// ParseEnrollment is the validator of enrollment records.
func ParseEnrollment(key *string, value []byte) (Change, error) {
	e, err := open(value)
	if err != nil {
		return Change{}, err
	}
	if err := e.lacks(enrollmentFields); err != nil {
		return Change{}, err
	}
	if !e.is(EnrollmentEvent) {
		return Change{}, UnsupportedType
	}
	learner, isText := e.text("learner_id")
	course, isText2 := e.text("course_id")
	if key != nil && (!isText || !isText2 || EnrollmentKey(learner, course) != *key) {
		return Change{}, KeyMismatch
	}
	at, err := e.eventTime()
	if err != nil {
		return Change{}, err
	}
	c := Change{EventID: e.id("event_id"), EventTime: at, LearnerID: e.id("learner_id"), CourseID: e.id("course_id")}
	return c, c.readChange(e)
}

// readChange reads what was changed.
func (c *Change) readChange(e envelope) (err error) {
	c.Op, _ = e.text("op")
	if c.Op != Upsert && c.Op != Delete {
		return BadOp
	}
	if e.null("source_lsn") {
		return MissingLSN
	}
	text, _ := e.text("source_lsn")
	if c.LSN, err = ParseLSN(text); err != nil {
		return BadLSN
	}
	switch {
	case c.Op == Delete && !e.null("status"):
		return DeleteWithStatus
	case c.Op == Upsert && e.null("status"):
		return NoStatus
	case c.Op == Upsert:
		c.Status = e.id("status")
	}
	return nil
}
