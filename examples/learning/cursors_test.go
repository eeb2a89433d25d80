package learning

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/engine/devbroker"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/jsonl"
	"github.com/tributary-io/tributary/lake/sink"
)

// platform is everything on an embedded broker.
type platform struct {
	Setting
	t        *testing.T
	lake     string
	producer *Producer
	products []Product
}

func startPlatform(t *testing.T) *platform {
	t.Helper()
	broker := must(devbroker.Start(devbroker.Config{}))(t)
	t.Cleanup(func() { broker.Close() })
	p := &platform{Setting: quiet(t, broker.Addrs()), t: t, lake: filepath.Join(t.TempDir(), "lake")}
	p.producer = must(NewProducer(p.Brokers))(t)
	t.Cleanup(p.producer.Close)
	p.products = must(Products(p.lake))(t)
	if err := CreateTopics(t.Context(), p.producer.Client()); err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs products until they have caught up.
func (p *platform) run(names ...string) {
	p.t.Helper()
	d := Demo{Setting: p.Setting}
	if err := d.runUntilCaughtUp(p.t.Context(), must(Pick(p.products, names...))(p.t)); err != nil {
		p.t.Fatal(err)
	}
}

// cursors are the committed offsets of all groups but one, and the landing's.
func (p *platform) cursors(but string) map[string]int64 {
	p.t.Helper()
	out := map[string]int64{}
	admin := kadm.NewClient(p.producer.Client())
	for _, product := range p.products {
		if product.Name == but {
			continue
		}
		for _, o := range must(admin.FetchOffsets(p.t.Context(), product.Plan.ApplicationID()))(p.t).Offsets().Sorted() {
			out[product.Name+" "+o.Topic+" "+string(rune('0'+o.Partition))] = o.At
		}
	}
	if but == "landing" {
		return out
	}
	l := must(jsonl.Open(p.t.Context(), p.lake+"/"+RawProgress))(p.t)
	for _, part := range must(l.Partitions(p.t.Context()))(p.t) {
		out["landing "+part.String()] = must(l.Next(p.t.Context(), part))(p.t)
	}
	return out
}

// Each product has a cursor of its own: whichever begins anew moves no other, and comes to the same result.
func TestRewindingOneProductMovesNoOther(t *testing.T) {
	p := startPlatform(t)
	records, want := Generate(smallSpec())
	p.producer.Unchecked = true
	if err := p.producer.Produce(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	p.run()
	for _, c := range []struct{ product, topic string }{
		{"activity", ActivityTopic}, {"activity-distinct", DistinctTopic}, {"cohort", EnrollmentDeadLetters}, {"quality", QualityTopic}, {"landing", ProgressDeadLetters},
	} {
		before, own := p.cursors(c.product), p.count(c.topic)
		if len(before) < 4*partitionsOfTopics || own == 0 {
			t.Fatalf("only %d cursors, and %d records in %s", len(before), own, c.topic)
		}
		p.rewind(c.product)
		p.run(c.product)
		if d := cmp.Diff(before, p.cursors(c.product)); d != "" {
			t.Errorf("%s has begun anew, and others' cursors have moved:\n%s", c.product, d)
		}
		if again := p.count(c.topic); again < 2*own || c.product != "quality" && again != 2*own { // the auditor's updates come as commits fall
			t.Errorf("%s: %d records in %s, and %d after it began anew", c.product, own, c.topic, again)
		}
	}
	if d := cmp.Diff(wantedState(want.Cohort), p.cohortTable()); d != "" {
		t.Errorf("the cohort's table has taken all changes again:\n%s", d)
	}
}

// rewind lets a stopped product begin anew, as CONSUMERS.md says.
func (p *platform) rewind(name string) {
	p.t.Helper()
	product := must(Pick(p.products, name))(p.t)[0]
	if name == "landing" {
		if err := os.Rename(p.lake+"/"+RawProgress, p.lake+"/moved-away"); err != nil {
			p.t.Fatal(err)
		}
	}
	report, err := engine.ResetApplication(p.t.Context(), product.Plan, engine.ResetOptions{
		Client: []kgo.Opt{kgo.SeedBrokers(p.Brokers...)}, StateDir: filepath.Join(p.Dir, "state", name), Execute: true, Lake: engine.KeepLake})
	if err != nil || !report.Done {
		p.t.Fatalf("%+v, %v", report, err)
	}
}

// count is how many records a topic has.
func (p *platform) count(topic string) (n int64) {
	p.t.Helper()
	err := readTopics(p.t.Context(), p.producer.Client(), []kgo.Opt{kgo.SeedBrokers(p.Brokers...)}, func(*kgo.Record) error {
		n++
		return nil
	}, topic)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// stateOf is the cohort that a table's rows make up.
func stateOf(rows []map[string]any) map[string]string {
	state := map[string]string{}
	for _, r := range rows {
		key := EnrollmentKey(fmt.Sprint(r["learner_id"]), fmt.Sprint(r["course_id"]))
		state[key] += fmt.Sprint(r["status"], " ", r["source_lsn"]) // a second row for a key would show
	}
	return state
}

// wantedState is the same of what the generator expects.
func wantedState(want map[string]Enrollment) map[string]string {
	state := map[string]string{}
	for key, e := range want {
		state[key] = fmt.Sprint(e.Status, " ", e.LSN)
	}
	return state
}

// cohortTable is the state that the cohort's table has.
func (p *platform) cohortTable() map[string]string {
	p.t.Helper()
	var rows []map[string]any
	for row, err := range lake.ReadRows(p.t.Context(), p.lake+"/"+CohortTable) {
		rows = append(rows, must(map[string]any(row), err)(p.t))
	}
	return stateOf(rows)
}

// The cohort's table has one row for each learner in each course; changes that come late, and are older than a row's deletion, bring nothing back.
func TestCohortTableIsCurrentState(t *testing.T) {
	p := startPlatform(t)
	records, want := Generate(smallSpec())
	p.producer.Unchecked = true
	check := func(when string) {
		t.Helper()
		p.run("cohort")
		if d := cmp.Diff(wantedState(want.Cohort), p.cohortTable()); d != "" {
			t.Errorf("%s:\n%s", when, d)
		}
	}
	if err := p.producer.Produce(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	check("once landed")
	var late []Record
	for key, lsn := range newestOf(records) {
		if _, there := want.Cohort[key]; !there { // deleted
			learner, course, _ := strings.Cut(key, keySeparator)
			late = append(late, Record{EnrollmentTopic, &key, with(validChange, map[string]any{"learner_id": learner, "course_id": course, "source_lsn": (lsn - 1).String()})})
		}
	}
	if len(late) == 0 {
		t.Fatal("nothing was deleted")
	}
	if err := p.producer.Produce(t.Context(), late...); err != nil {
		t.Fatal(err)
	}
	check("after late changes of what was deleted")
}

// newestOf finds the newest LSN of each key.
func newestOf(records []Record) map[string]LSN {
	newest := map[string]LSN{}
	for _, r := range records {
		if c, err := ParseEnrollment(r.Key, r.Value); r.Topic == EnrollmentTopic && err == nil {
			newest[*r.Key] = max(newest[*r.Key], c.LSN)
		}
	}
	return newest
}

// Completeness goes by manifests: rejects at the tail count, a recorded gap passes, and what is appended after the moment isn't asked for.
func TestHandoff(t *testing.T) {
	p := startPlatform(t)
	ctx := t.Context()
	anna := "anna"
	p.producer.Unchecked = true
	produce := func(values ...string) {
		t.Helper()
		for _, v := range values {
			if err := p.producer.Produce(ctx, Record{ProgressTopic, &anna, []byte(v)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(asOf time.Time) *Handoff {
		return must(CheckHandoff(ctx, p.producer.Client(), p.lake, asOf))(t)
	}
	later := time.Now().Add(time.Hour)
	if h := check(later); h.Err() != nil {
		t.Errorf("an empty topic is not complete: %v", h.Err())
	}
	produce(string(with(validBase, nil)), `bad`, `worse`)
	h := check(later)
	var incomplete *IncompleteError
	if !errors.As(h.Err(), &incomplete) {
		t.Fatalf("complete before anything has landed: %s", h)
	}
	if _, err := AwaitHandoff(ctx, p.producer.Client(), p.lake, later, time.Now().Add(-time.Second), time.Now); !errors.As(err, &incomplete) {
		t.Errorf("the deadline is over: %v", err)
	}
	p.run("landing")
	h = check(later)
	if h.Err() != nil {
		t.Fatal(h.Err())
	}
	for _, part := range h.Partitions {
		if part.Required == 3 && (part.Landed != 3 || part.Largest != 0 || part.Rejects != 2) {
			t.Errorf("%+v", part)
		}
	}
	time.Sleep(5 * time.Millisecond)
	asOf := time.Now()
	time.Sleep(5 * time.Millisecond)
	produce(string(with(validBase, nil)))
	if h := check(asOf); h.Err() != nil {
		t.Errorf("what came later is asked for: %v", h.Err())
	}
	if h := check(later); h.Err() == nil || !strings.Contains(h.Err().Error(), "has landed through offset 2 of 3") {
		t.Errorf("got %v", h.Err())
	}
	leaveOut(ctx, t, p)
	h = check(later)
	if h.Err() != nil || !strings.Contains(h.String(), "the disk burned") {
		t.Errorf("a recorded gap does not pass: %s", h)
	}
	if _, err := RunCourseDay(ctx, p.lake, june, h, time.Now()); err != nil {
		t.Error(err)
	}
}

// leaveOut records a gap over what has not landed.
func leaveOut(ctx context.Context, t *testing.T, p *platform) {
	t.Helper()
	l := must(jsonl.Open(ctx, p.lake+"/"+RawProgress))(t)
	var at sink.Partition
	for _, part := range must(l.Partitions(ctx))(t) {
		if must(l.Next(ctx, part))(t) == 3 {
			at = part
		}
	}
	must(jsonl.RecordGap(ctx, p.lake+"/"+RawProgress, at, 4, "the disk burned"))(t)
}

// A late event belongs to its day still, for three days.
func TestCourseDayRestates(t *testing.T) {
	p := startPlatform(t)
	ctx := t.Context()
	anna := "anna"
	event := func(id string, day int, lesson string, percent int) Record {
		return Record{ProgressTopic, &anna, with(validBase, map[string]any{"event_id": id, "event_time": june.AddDate(0, 0, day).Add(time.Hour).Format(time.RFC3339),
			"lesson_id": lesson, "progress_pct": percent})}
	}
	compute := func(day int, records ...Record) []CourseDay {
		t.Helper()
		if err := p.producer.Produce(ctx, records...); err != nil {
			t.Fatal(err)
		}
		p.run("landing")
		h := must(CheckHandoff(ctx, p.producer.Client(), p.lake, time.Now().Add(time.Hour)))(t)
		return must(RunCourseDay(ctx, p.lake, june.AddDate(0, 0, day), h, time.Now()))(t)
	}
	lessons := func(day int) int64 {
		d := must(ReadCourseDay(ctx, p.lake, june.AddDate(0, 0, day)))(t)
		if len(d.Rows) == 0 {
			return 0
		}
		return d.Rows[0].CompletedLessons
	}
	compute(0, event("1", 0, "a", 100), event("1", 0, "a", 100), event("2", 0, "a", 100), event("3", 0, "b", 99))
	if lessons(0) != 1 {
		t.Errorf("%d lessons", lessons(0))
	}
	compute(2, event("4", 0, "c", 100))
	if lessons(0) != 2 {
		t.Errorf("the late lesson is not in its day: %d", lessons(0))
	}
	compute(3, event("5", 0, "d", 100))
	if lessons(0) != 2 {
		t.Errorf("a day behind the window was restated: %d", lessons(0))
	}
}

// The producer refuses what the validator rejects.
func TestProducerValidates(t *testing.T) {
	p := startPlatform(t)
	anna := "anna"
	err := p.producer.Produce(t.Context(), Record{ProgressTopic, &anna, with(validBase, nil)}, Record{ProgressTopic, &anna, []byte("{}")}, Record{"other", nil, nil})
	var reason Rejection
	if !errors.As(err, &reason) || !strings.HasPrefix(string(reason), "missing:event_id") || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("got %v", err)
	}
	h := must(CheckHandoff(t.Context(), p.producer.Client(), p.lake, time.Now().Add(time.Hour)))(t)
	var written int64
	for _, part := range h.Partitions {
		written += part.Required
	}
	if written != 1 {
		t.Errorf("%d records were written", written)
	}
}
