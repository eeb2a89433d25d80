package learning

import "time"

// ProgressEvent is the event type of ProgressTopic.
const ProgressEvent = "lesson_progress"

// progressFields are what a progress record must have, in the order in which missing ones are named.
var progressFields = []string{"event_id", "event_type", "event_version", "event_time", "learner_id", "course_id", "lesson_id", "progress_pct", "producer"}

// Progress is a valid record of ProgressTopic: a learner has come so far in a lesson.
type Progress struct {
	EventID   string    `json:"event_id"`
	EventTime time.Time `json:"event_time"` // UTC
	LearnerID string    `json:"learner_id"`
	CourseID  string    `json:"course_id"`
	LessonID  string    `json:"lesson_id"`
	Percent   int       `json:"progress_pct"`
	Producer  string    `json:"producer"`
}

// ParseProgress is the validator of progress records, for the producer, the tiles, the auditor and the landing. A record that is not valid
// gives a Rejection. A null key is no mismatch.
func ParseProgress(key *string, value []byte) (Progress, error) {
	e, err := open(value)
	if err != nil {
		return Progress{}, err
	}
	if err := e.lacks(progressFields); err != nil {
		return Progress{}, err
	}
	if !e.is(ProgressEvent) {
		return Progress{}, UnsupportedType
	}
	learner, isText := e.text("learner_id")
	if key != nil && (!isText || learner != *key) {
		return Progress{}, KeyMismatch
	}
	at, err := e.eventTime()
	if err != nil {
		return Progress{}, err
	}
	percent, err := e.percent("progress_pct")
	if err != nil {
		return Progress{}, err
	}
	return Progress{EventID: e.id("event_id"), EventTime: at, LearnerID: e.id("learner_id"), CourseID: e.id("course_id"),
		LessonID: e.id("lesson_id"), Percent: percent, Producer: e.id("producer")}, nil
}
