package learning

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-io/tributary/lake/jsonl"
	"github.com/tributary-io/tributary/lake/object"
)

// CourseDays is where the batch writes, below the lake: one file for each day.
const CourseDays = "curated/course_day"

// RestatedDays is how many days a run computes: its own, and those before it, to which late events have come meanwhile.
const RestatedDays = 3

// CourseDay is the batch's result for a day of event time.
type CourseDay struct {
	Day      string    `json:"day"` // YYYY-MM-DD, UTC
	AsOf     time.Time `json:"as_of"`
	Computed time.Time `json:"computed"`
	// Through are the offsets, by partition, before which all that has landed is in it. A run with the same offsets gives the same.
	Through []int64        `json:"through"`
	Events  []CourseEvents `json:"events"`
	Rows    []CourseDayRow `json:"rows"`
}

// CourseEvents counts the day's events of a course.
type CourseEvents struct {
	CourseID string `json:"course_id"`
	Events   int64  `json:"events"`   // event ids
	Repeated int64  `json:"repeated"` // records beyond the first of each event id
}

// CourseDayRow says how many different lessons a learner has completed in a course on a day: those with a progress of 100.
type CourseDayRow struct {
	CourseDayKey
	CompletedLessons int64 `json:"completed_lessons"`
}

// RunCourseDay computes a day and restates the two before it, from the files that the landing's manifests name. It refuses, with an
// *IncompleteError, where the handoff says that the day isn't there. Each day's file is replaced as a whole.
func RunCourseDay(ctx context.Context, lake string, day time.Time, h *Handoff, now time.Time) ([]CourseDay, error) {
	if err := h.Err(); err != nil {
		return nil, err
	}
	first := midnight(day).AddDate(0, 0, 1-RestatedDays)
	days, err := computeDays(ctx, lake, first, midnight(day), h)
	if err != nil {
		return nil, fmt.Errorf("course_day %s: %w", day.Format(time.DateOnly), err)
	}
	store, err := object.Open(ctx, lake+"/"+CourseDays)
	if err != nil {
		return nil, err
	}
	for i := range days {
		days[i].AsOf, days[i].Computed = h.AsOf.UTC(), now.UTC()
		text, err := json.MarshalIndent(&days[i], "", " ")
		if err != nil {
			return nil, err
		}
		if err := store.Put(ctx, courseDayName(days[i].Day), append(text, '\n')); err != nil {
			return nil, fmt.Errorf("course_day %s: %w", days[i].Day, err)
		}
	}
	return days, nil
}

func courseDayName(day string) string { return "day=" + day + ".json" }

// ReadCourseDay reads what the last run has said of a day.
func ReadCourseDay(ctx context.Context, lake string, day time.Time) (*CourseDay, error) {
	store, err := object.Open(ctx, lake+"/"+CourseDays)
	if err != nil {
		return nil, err
	}
	text, err := store.Get(ctx, courseDayName(day.Format(time.DateOnly)))
	if errors.Is(err, object.ErrNotFound) {
		return nil, fmt.Errorf("course_day has no %s: run it first: %w", day.Format(time.DateOnly), err)
	}
	if err != nil {
		return nil, err
	}
	d := &CourseDay{}
	return d, json.Unmarshal(text, d)
}

// dayWork gathers a day.
type dayWork struct {
	seen     map[string]bool // event ids
	events   map[string]*CourseEvents
	complete map[CourseDayKey]map[string]bool // lessons
}

// computeDays reads the rows of the days below the handoff's offsets.
func computeDays(ctx context.Context, lake string, first, last time.Time, h *Handoff) ([]CourseDay, error) {
	work := map[string]*dayWork{}
	for row, err := range landedBefore(ctx, lake, first, last, through(h)) {
		if err != nil {
			return nil, err
		}
		w := work[row.EventDate]
		if w == nil {
			w = &dayWork{map[string]bool{}, map[string]*CourseEvents{}, map[CourseDayKey]map[string]bool{}}
			work[row.EventDate] = w
		}
		w.add(row.Progress)
	}
	var out []CourseDay
	for d := first; !d.After(last); d = d.AddDate(0, 0, 1) {
		day := CourseDay{Day: d.Format(time.DateOnly), Through: through(h), Events: []CourseEvents{}, Rows: []CourseDayRow{}}
		if w := work[day.Day]; w != nil {
			w.result(&day)
		}
		out = append(out, day)
	}
	return out, nil
}

func through(h *Handoff) []int64 {
	out := make([]int64, len(h.Partitions))
	for i, p := range h.Partitions {
		out[i] = p.Required
	}
	return out
}

func (w *dayWork) add(p Progress) {
	e := w.events[p.CourseID]
	if e == nil {
		e = &CourseEvents{CourseID: p.CourseID}
		w.events[p.CourseID] = e
	}
	if w.seen[p.EventID] {
		e.Repeated++
		return
	}
	w.seen[p.EventID] = true
	e.Events++
	if p.Percent != 100 {
		return
	}
	k := CourseDayKey{p.EventTime.Format(time.DateOnly), p.CourseID, p.LearnerID}
	if w.complete[k] == nil {
		w.complete[k] = map[string]bool{}
	}
	w.complete[k][p.LessonID] = true
}

func (w *dayWork) result(day *CourseDay) {
	for _, e := range w.events {
		day.Events = append(day.Events, *e)
	}
	slices.SortFunc(day.Events, func(a, b CourseEvents) int { return cmp.Compare(a.CourseID, b.CourseID) })
	for k, lessons := range w.complete {
		day.Rows = append(day.Rows, CourseDayRow{k, int64(len(lessons))})
	}
	slices.SortFunc(day.Rows, func(a, b CourseDayRow) int {
		return cmp.Or(cmp.Compare(a.CourseID, b.CourseID), cmp.Compare(a.LearnerID, b.LearnerID))
	})
}

// landedEvent is a row of the landing.
type landedEvent struct {
	Progress
	EventDate string
}

// landedBefore yields the landed events of some days, below an offset of each partition.
func landedBefore(ctx context.Context, lake string, first, last time.Time, through []int64) func(func(landedEvent, error) bool) {
	return func(yield func(landedEvent, error) bool) {
		l, err := jsonl.Open(ctx, lake+"/"+RawProgress)
		if err != nil {
			yield(landedEvent{}, err)
			return
		}
		what := jsonl.Select{Topic: ProgressTopic, FirstDate: first.Format(time.DateOnly), LastDate: last.Format(time.DateOnly)}
		for row, err := range l.Rows(ctx, what) {
			if err != nil {
				yield(landedEvent{}, err)
				return
			}
			if int(row.Partition) >= len(through) || row.Offset >= through[row.Partition] {
				continue
			}
			p, err := ParseProgress(nil, row.Value)
			if err != nil {
				err = fmt.Errorf("partition %d offset %d has landed, but is not valid: %w", row.Partition, row.Offset, err)
			}
			if !yield(landedEvent{p, row.EventDate}, err) || err != nil {
				return
			}
		}
	}
}
