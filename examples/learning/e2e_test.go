package learning

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/lake/jsonl"
	"github.com/tributary-io/tributary/lake/readers"
)

// TestEndToEndWithKill9 runs all products in a process of their own on a real Kafka, kills it twice in the middle of its work, and compares
// everything that has come out with what the generator says.
func TestEndToEndWithKill9(t *testing.T) {
	brokers := realkafka.Shared(t, 1).Addrs()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	s := serving{Brokers: brokers, Dir: t.TempDir(), Lake: filepath.Join(t.TempDir(), "lake")}
	producer := must(NewProducer(brokers))(t)
	defer producer.Close()
	if err := CreateTopics(ctx, producer.Client()); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Seed: 11, FirstDay: june, Days: 3, Learners: 40, Courses: 6, Events: 800}
	records, want := Generate(spec)
	newest, outlived := newestOf(records), 0 // deleted enrollments change no completion: checkBatch wants these, too
	for k := range want.Completed {
		key := EnrollmentKey(k.LearnerID, k.CourseID)
		if _, enrolled := want.Cohort[key]; !enrolled && newest[key] > 0 {
			outlived++
		}
	}
	if outlived == 0 {
		t.Fatal("nobody has completed lessons of a course whose enrollment was deleted later")
	}
	producer.Unchecked = true
	half := len(records) / 2
	if err := producer.Produce(ctx, records[:half]...); err != nil {
		t.Fatal(err)
	}

	app := must(child.Start("serve", s, filepath.Join(t.TempDir(), "log")))(t)
	defer app.Kill()
	defer func() {
		if t.Failed() {
			log := app.Log()
			t.Logf("%s", log[max(0, len(log)-6000):])
		}
	}()
	for _, enough := range []int64{1, 200} {
		eventually(t, "something has landed", func() bool { return landedRows(t, s.Lake) >= enough })
		app.Kill()
		if enough == 1 {
			if err := app.Restart(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := producer.Produce(ctx, records[half:]...); err != nil {
		t.Fatal(err)
	}
	// Nobody has landed the second half: the day is refused.
	asOf := time.Now().Add(time.Second)
	h := must(CheckHandoff(ctx, producer.Client(), s.Lake, asOf))(t)
	var incomplete *IncompleteError
	if _, err := RunCourseDay(ctx, s.Lake, june, h, asOf); !errors.As(err, &incomplete) {
		t.Fatalf("a day whose input has not landed: %v", err)
	}
	if err := app.Restart(); err != nil {
		t.Fatal(err)
	}
	go func() { // nothing will catch up with a product that has failed
		for app.Running() {
			time.Sleep(100 * time.Millisecond)
		}
		cancel()
	}()
	all := must(Products(s.Lake))(t)
	if err := s.setting().AwaitCaughtUp(ctx, all); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all has landed", func() bool {
		h = must(CheckHandoff(ctx, producer.Client(), s.Lake, asOf))(t)
		return h.Err() == nil
	})
	if err := app.Stop(4 * time.Minute); err != nil {
		t.Fatal(err)
	}
	cancel()
	checkLanding(t, s.Lake, want)
	checkCohortTable(t, s.Lake, want)
	checkTopics(t, producer.Client(), brokers, want)
	checkBatch(t, producer, brokers, s.Lake, spec, h, want)
}

func landedRows(t *testing.T, lake string) (n int64) {
	l, err := jsonl.Open(t.Context(), lake+"/"+RawProgress)
	if errors.Is(err, jsonl.ErrNoLanding) {
		return 0
	}
	for _, p := range must(must(l, err)(t).Partitions(t.Context()))(t) {
		n += must(l.Coverage(t.Context(), p))(t).Rows
	}
	return n
}

// checkLanding compares the landing, and what DuckDB counts in the files that manifests name.
func checkLanding(t *testing.T, lake string, want *Expected) {
	t.Helper()
	l := must(jsonl.Open(t.Context(), lake+"/"+RawProgress))(t)
	var rejects int64
	for _, p := range must(l.Partitions(t.Context()))(t) {
		rejects += must(l.Coverage(t.Context(), p))(t).Rejects
	}
	if got := landedRows(t, lake); got != want.Valid || rejects != sum(want.Rejected) {
		t.Errorf("%d rows and %d rejects have landed, want %d and %d", got, rejects, want.Valid, sum(want.Rejected))
	}
	var files []string
	for f, err := range l.Files(t.Context(), jsonl.Select{}) {
		files = append(files, filepath.Join(lake, RawProgress, must(f, err)(t).Name))
	}
	var duck struct{ Rows, Offsets, Events int64 }
	readers.Open(t).Python(t, lake, fmt.Sprintf(`
import json
row = duckdb.connect().execute("""select count(*), count(distinct (_kafka_partition, _kafka_offset)), count(distinct value.event_id)
  from read_json(?, format='newline_delimited')""", [json.loads(%q)]).fetchone()
out = {"Rows": row[0], "Offsets": row[1], "Events": row[2]}
`, must(json.Marshal(files))(t)), &duck)
	if duck.Rows != want.Valid || duck.Offsets != want.Valid || duck.Events != want.Distinct {
		t.Errorf("DuckDB counts %+v, want %d rows of %d events", duck, want.Valid, want.Distinct)
	}
}

// checkCohortTable compares the cohort with what DuckDB reads of its Delta table.
func checkCohortTable(t *testing.T, lake string, want *Expected) {
	t.Helper()
	var rows []map[string]any
	for _, r := range readers.Open(t).DuckDB(t, filepath.Join(lake, CohortTable), "select learner_id, course_id, status, source_lsn from t").Rows {
		rows = append(rows, r)
	}
	if d := cmp.Diff(wantedState(want.Cohort), stateOf(rows)); d != "" {
		t.Errorf("the cohort's table:\n%s", d)
	}
}

// checkTopics compares what the products have written, as others see it.
func checkTopics(t *testing.T, client *kgo.Client, brokers []string, want *Expected) {
	t.Helper()
	rejected := map[string]map[string]int64{ProgressDeadLetters: {}, EnrollmentDeadLetters: {}}
	counted, late := map[string]int64{}, map[string]int64{}
	cohort, seats, hours := map[string]Enrollment{}, map[string]int64{}, map[string]Quality{}
	opts := []kgo.Opt{kgo.SeedBrokers(brokers...)}
	err := readTopics(t.Context(), client, opts, func(r *kgo.Record) error {
		switch key := string(r.Key); r.Topic {
		case ProgressDeadLetters, EnrollmentDeadLetters:
			rejected[r.Topic][string(r.Headers[len(r.Headers)-1].Value)]++
		case ActivityTopic, DistinctTopic:
			var w ActivityWindow
			if err := json.Unmarshal(r.Value, &w); err != nil {
				return err
			}
			counted[r.Topic] += w.Events
		case ActivityLateTopic, DistinctLateTopic:
			late[r.Topic]++
		case CurrentTopic:
			var e Enrollment
			delete(cohort, key)
			if r.Value != nil {
				err := json.Unmarshal(r.Value, &e)
				cohort[key] = e
				return err
			}
		case SeatsTopic:
			seats[key] = int64(binary.BigEndian.Uint64(r.Value))
		case QualityTopic:
			var q Quality
			err := json.Unmarshal(r.Value, &q)
			hours[key] = q
			return err
		}
		return nil
	}, ProgressDeadLetters, EnrollmentDeadLetters, ActivityTopic, ActivityLateTopic, DistinctTopic, DistinctLateTopic, CurrentTopic, SeatsTopic, QualityTopic)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(seats, func(course string, n int64) bool { return n == 0 && course != "" })
	var quality Quality
	for _, q := range hours {
		quality.Records, quality.Valid, quality.Duplicates, quality.Mismatches = quality.Records+q.Records, quality.Valid+q.Valid, quality.Duplicates+q.Duplicates, quality.Mismatches+q.Mismatches
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"progress dead letters", rejected[ProgressDeadLetters], want.Rejected},
		{"enrollment dead letters", rejected[EnrollmentDeadLetters], want.RejectedChanges},
		{"activity", counted[ActivityTopic], want.Valid - want.Late - want.Tail},
		{"activity without duplicates", counted[DistinctTopic], want.Distinct - want.Late - want.Tail},
		{"late", late, map[string]int64{ActivityLateTopic: want.Late, DistinctLateTopic: want.Late}},
		{"cohort", cohort, want.Cohort},
		{"seats", seats, want.Seats},
		{"quality", quality, Quality{Records: want.Progress, Valid: want.Valid, Duplicates: want.Valid - want.Distinct, Mismatches: want.Rejected[string(KeyMismatch)]}},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s:\n%s", c.what, d)
		}
	}
}

// checkBatch computes the days, compares them, and reconciles them.
func checkBatch(t *testing.T, producer *Producer, brokers []string, lake string, spec Spec, h *Handoff, want *Expected) {
	t.Helper()
	got := map[CourseDayKey]int64{}
	var late, repeated int64
	for n := range spec.Days {
		day := spec.FirstDay.AddDate(0, 0, n)
		days := must(RunCourseDay(t.Context(), lake, day, h, time.Now()))(t)
		if len(days) != RestatedDays || days[RestatedDays-1].Day != day.Format(time.DateOnly) {
			t.Errorf("a run for %s has computed %d days", day, len(days))
		}
		for _, r := range must(ReadCourseDay(t.Context(), lake, day))(t).Rows {
			got[r.CourseDayKey] = r.CompletedLessons
		}
		r := must(Reconcile(t.Context(), producer.Client(), []kgo.Opt{kgo.SeedBrokers(brokers...)}, lake, day))(t)
		if r.Unexplained() != 0 || r.Quarantined != sum(want.Rejected) {
			t.Errorf("%s", r)
		}
		for _, c := range r.Courses {
			late, repeated = late+c.Late, repeated+c.Repeated
		}
	}
	if late != want.Late || repeated != want.Valid-want.Distinct {
		t.Errorf("%d late and %d repeated events explain the differences, want %d and %d", late, repeated, want.Late, want.Valid-want.Distinct)
	}
	wantRows := map[CourseDayKey]int64{}
	tailDay := spec.FirstDay.AddDate(0, 0, spec.Days).Format(time.DateOnly)
	for k, lessons := range want.Completed {
		if k.Day != tailDay {
			wantRows[k] = int64(len(lessons))
		}
	}
	if d := cmp.Diff(wantRows, got); d != "" {
		t.Error(d)
	}
}

// An acknowledged write survives the loss of one broker of three, and so does one that is made while it is gone.
func TestAcknowledgedWritesSurviveABroker(t *testing.T) {
	cluster := realkafka.Start(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	producer := must(NewProducer(cluster.Addrs()))(t)
	defer producer.Close()
	if err := CreateTopics(ctx, producer.Client()); err != nil {
		t.Fatal(err)
	}
	records, _ := Generate(Spec{Seed: 3, FirstDay: june, Days: 1, Learners: 30, Courses: 4, Events: 300})
	producer.Unchecked = true
	half := len(records) / 2
	if err := producer.Produce(ctx, records[:half]...); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Kill9(2); err != nil {
		t.Fatal(err)
	}
	if err := producer.Produce(ctx, records[half:]...); err != nil {
		t.Fatalf("with two of three brokers: %v", err)
	}
	var want, got []string
	for _, r := range records {
		want = append(want, r.Topic+" "+keyText(r.Key)+" "+string(r.Value))
	}
	opts := []kgo.Opt{kgo.SeedBrokers(cluster.Addrs()...)}
	err := readTopics(ctx, producer.Client(), opts, func(r *kgo.Record) error {
		var key *string
		if r.Key != nil {
			k := string(r.Key)
			key = &k
		}
		got = append(got, r.Topic+" "+keyText(key)+" "+string(r.Value))
		return nil
	}, ProgressTopic, EnrollmentTopic)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what was acknowledged and what is there:\n%s", d)
	}
}
