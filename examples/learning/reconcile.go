package learning

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/processors"
)

// Reconciliation compares a day of the activity tile with the batch's, course by course, and says where each difference comes from.
type Reconciliation struct {
	Day     string
	Courses []CourseDifference
	// Quarantined records are in neither: the validator has rejected them. They have no course, and no day.
	Quarantined int64
}

// CourseDifference explains: Batch = Tile + Late + Open - Repeated + Unexplained.
type CourseDifference struct {
	CourseID    string
	Batch       int64 // event ids that course_day has counted
	Tile        int64 // events in closed windows
	Late        int64 // records that came after their window had closed: the tile has dropped them, the landing has them
	Open        int64 // records in windows that are not closed yet
	Repeated    int64 // records beyond the first of an event id: the tile has counted them
	Unexplained int64 // must be 0
}

// Unexplained sums up what nothing accounts for.
func (r *Reconciliation) Unexplained() (n int64) {
	for _, c := range r.Courses {
		n += max(c.Unexplained, -c.Unexplained)
	}
	return n
}

// String is a table.
func (r *Reconciliation) String() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\tbatch\t= tile\t+ late\t+ open\t- repeated\t+ unexplained\t\n", r.Day)
	for _, c := range r.Courses {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", c.CourseID, c.Batch, c.Tile, c.Late, c.Open, c.Repeated, c.Unexplained)
	}
	w.Flush()
	fmt.Fprintf(&out, "in neither: %d quarantined records of all days\n", r.Quarantined)
	return out.String()
}

// windowKey is a window of a course.
type windowKey struct {
	course string
	start  int64 // ms
}

// tileWindows is what a tile has said of some days.
type tileWindows struct {
	counted map[windowKey]int64
	late    map[windowKey]int64
}

// Reconcile compares a day. The batch must have run, and the tile must have taken up what the batch has (see Setting.AwaitCaughtUp): a tile
// that is behind has windows that nothing explains.
func Reconcile(ctx context.Context, client *kgo.Client, opts []kgo.Opt, lake string, day time.Time) (*Reconciliation, error) {
	batch, err := ReadCourseDay(ctx, lake, day)
	if err != nil {
		return nil, err
	}
	tile, err := readTile(ctx, client, opts, ActivityTopic, ActivityLateTopic)
	if err != nil {
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	raw, streamTimes, err := rawWindows(ctx, lake, day, batch.Through)
	if err != nil {
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	r := &Reconciliation{Day: batch.Day}
	h, err := CheckHandoff(ctx, client, lake, batch.AsOf)
	if err != nil {
		return nil, err
	}
	for _, p := range h.Partitions {
		r.Quarantined += p.Rejects
	}
	courses := map[string]*CourseDifference{}
	for _, e := range batch.Events {
		courses[e.CourseID] = &CourseDifference{CourseID: e.CourseID, Batch: e.Events, Repeated: e.Repeated}
	}
	tile.explain(midnight(day), raw, streamTimes, courses)
	for _, c := range courses {
		c.Unexplained = c.Batch - (c.Tile + c.Late + c.Open - c.Repeated)
		r.Courses = append(r.Courses, *c)
	}
	slices.SortFunc(r.Courses, func(a, b CourseDifference) int { return cmp.Compare(a.CourseID, b.CourseID) })
	return r, nil
}

// explain distributes the tile's windows of a day over its courses, and the raw records of windows that the tile may still hold open.
func (t *tileWindows) explain(day time.Time, raw map[windowKey]int64, streamTimes map[int32]int64, courses map[string]*CourseDifference) {
	from, to := day.UnixMilli(), day.AddDate(0, 0, 1).UnixMilli()
	of := func(k windowKey) *CourseDifference {
		if k.start < from || k.start >= to {
			return nil
		}
		c := courses[k.course]
		if c == nil { // the tile has a course that the batch hasn't: all of it is unexplained
			c = &CourseDifference{CourseID: k.course}
			courses[k.course] = c
		}
		return c
	}
	for k, n := range t.counted {
		if c := of(k); c != nil {
			c.Tile += n
		}
	}
	for k, n := range t.late {
		if c := of(k); c != nil {
			c.Late += n
		}
	}
	for k, n := range raw {
		_, emitted := t.counted[k]
		partition := processors.PartitionOf([]byte(k.course), partitionsOfTopics)
		if c := of(k); c != nil && !emitted && !closed(k.start, streamTimes[partition]) {
			c.Open += n - t.late[k]
		}
	}
}

// rawWindows counts the landed records of a day by window, repetitions included, and tells how far event time has come in each partition of
// the tile: its windows are closed by that.
func rawWindows(ctx context.Context, lake string, day time.Time, through []int64) (raw map[windowKey]int64, streamTimes map[int32]int64, err error) {
	raw, streamTimes = map[windowKey]int64{}, map[int32]int64{}
	const farAhead = 3 // days
	for e, err := range landedBefore(ctx, lake, midnight(day), midnight(day).AddDate(0, 0, farAhead), through) {
		if err != nil {
			return nil, nil, err
		}
		ms := e.EventTime.UnixMilli()
		partition := processors.PartitionOf([]byte(e.CourseID), partitionsOfTopics)
		streamTimes[partition] = max(streamTimes[partition], ms)
		if e.EventDate == day.Format(time.DateOnly) {
			raw[windowKey{e.CourseID, windowStart(ms)}]++
		}
	}
	return raw, streamTimes, nil
}

// readTile reads a tile's topics to their ends.
func readTile(ctx context.Context, client *kgo.Client, opts []kgo.Opt, windows, late string) (*tileWindows, error) {
	t := &tileWindows{counted: map[windowKey]int64{}, late: map[windowKey]int64{}}
	err := readTopics(ctx, client, opts, func(r *kgo.Record) error {
		if r.Topic == late {
			var e LateEvent
			if err := json.Unmarshal(r.Value, &e); err != nil {
				return err
			}
			t.late[windowKey{e.CourseID, windowStart(e.At.UnixMilli())}]++
			return nil
		}
		var w ActivityWindow
		if err := json.Unmarshal(r.Value, &w); err != nil {
			return err
		}
		k := windowKey{w.CourseID, w.Start.UnixMilli()}
		if _, twice := t.counted[k]; twice {
			return fmt.Errorf("window %s of %s has come out twice", w.Start, w.CourseID)
		}
		t.counted[k] = w.Events
		return nil
	}, windows, late)
	return t, err
}

// readTopics hands all committed records of topics to f, up to the ends that they have now.
func readTopics(ctx context.Context, client *kgo.Client, opts []kgo.Opt, f func(*kgo.Record) error, topics ...string) error {
	ends, err := kadm.NewClient(client).ListCommittedOffsets(ctx, topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("end offsets: %w", err)
	}
	open := map[string]map[int32]int64{}
	left := 0
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			if open[o.Topic] == nil {
				open[o.Topic] = map[int32]int64{}
			}
			open[o.Topic][o.Partition] = o.Offset
			left++
		}
	})
	if left == 0 {
		return nil
	}
	// Control records are kept, since the last record of a partition usually is one.
	reader, err := kgo.NewClient(append(slices.Clone(opts), kgo.ConsumeTopics(topics...), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		return err
	}
	defer reader.Close()
	for left > 0 {
		fetches := reader.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return fmt.Errorf("read %s: %w", errs[0].Topic, errs[0].Err)
		}
		for _, r := range fetches.Records() {
			if r.Offset < open[r.Topic][r.Partition] && !r.Attrs.IsControl() {
				if err := f(r); err != nil {
					return fmt.Errorf("%s-%d offset %d: %w", r.Topic, r.Partition, r.Offset, err)
				}
			}
			if end, ok := open[r.Topic][r.Partition]; ok && r.Offset+1 >= end {
				delete(open[r.Topic], r.Partition)
				left--
			}
		}
	}
	return nil
}
