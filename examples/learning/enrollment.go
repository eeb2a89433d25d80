package learning

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
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
type LSN uint64

// ParseLSN reads an LSN.
func ParseLSN(s string) (LSN, error) {
	high, low, ok := strings.Cut(s, "/")
	if !ok || len(high) > 8 || len(low) > 8 {
		return 0, fmt.Errorf("%q is no LSN: it has two halves of one to eight hex digits, as in 0/16B3748", s)
	}
	h, err := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if err := errors.Join(err, err2); err != nil {
		return 0, fmt.Errorf("%q is no LSN: %w", s, err)
	}
	return LSN(h<<32 | l), nil
}

func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint32(l>>32), uint32(l)) }

// Change is a valid record of EnrollmentTopic.
type Change struct {
	EventID   string
	EventTime time.Time // UTC
	LearnerID string
	CourseID  string
	Op        string // Upsert or Delete
	Status    string // empty for a Delete
	LSN       LSN
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
