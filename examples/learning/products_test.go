package learning

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology/topologytest"
)

var june = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

func smallSpec() Spec {
	return Spec{Seed: 5, FirstDay: june, Days: 2, Learners: 15, Courses: 5, Events: 250}
}

// harness runs a product on simulated topics.
func harness(t *testing.T, name string) *topologytest.Driver {
	t.Helper()
	all, err := Products(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	picked, err := Pick(all, name)
	if err != nil {
		t.Fatal(err)
	}
	return topologytest.New(t, picked[0].Plan, topologytest.Partitions(partitionsOfTopics), topologytest.ErrorHandlers(picked[0].Handlers))
}

// pipe writes records that the topic's product reads. The topic's time is a minute later than that of the record before.
func pipe(t *testing.T, d *topologytest.Driver, topic string, records []Record) {
	t.Helper()
	ms := june.AddDate(0, 1, 0).UnixMilli()
	for _, r := range records {
		if r.Topic != topic {
			continue
		}
		ms += 1000
		out := topologytest.Record{Topic: r.Topic, Partition: -1, Value: r.Value, Timestamp: ms}
		if r.Key != nil {
			out.Key = []byte(*r.Key)
		} else {
			out.Partition = 0
		}
		d.Pipe(out)
	}
}

// reasons counts dead letters by the reason in their headers.
func reasons(t *testing.T, d *topologytest.Driver, topic string) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	for _, r := range d.Read(topic) {
		last := r.Headers[len(r.Headers)-1]
		if last.Key != ReasonHeader {
			t.Fatalf("a dead letter with %s last", last.Key)
		}
		got[string(last.Value)]++
	}
	return got
}

func TestLandingKeepsWhatIsValidAndDeadLettersTheRest(t *testing.T) {
	d := harness(t, "landing")
	records, want := Generate(smallSpec())
	pipe(t, d, ProgressTopic, records)
	rows := topologytest.LakeRows[[]byte](d, "raw-progress")
	if int64(len(rows)) != want.Valid {
		t.Errorf("%d rows, want %d: repetitions belong into the raw landing", len(rows), want.Valid)
	}
	if diff := cmp.Diff(want.Rejected, reasons(t, d, ProgressDeadLetters)); diff != "" {
		t.Error(diff)
	}
}

// The dead letter has the original bytes; the partition goes on behind it.
func TestDeadLettersKeepBytes(t *testing.T) {
	d := harness(t, "landing")
	anna := "anna"
	bad := []byte("{\"event_id\": \xff ")
	pipe(t, d, ProgressTopic, []Record{{ProgressTopic, &anna, bad}, {ProgressTopic, &anna, with(validBase, nil)}})
	letters := d.Read(ProgressDeadLetters)
	if len(letters) != 1 || string(letters[0].Value) != string(bad) || string(letters[0].Key) != anna {
		t.Errorf("%+v", letters)
	}
	if n := len(topologytest.LakeRows[[]byte](d, "raw-progress")); n != 1 {
		t.Errorf("%d rows behind it", n)
	}
}

func events(t *testing.T, d *topologytest.Driver, topic string) (n int64, windows map[windowKey]bool) {
	t.Helper()
	windows = map[windowKey]bool{}
	out := topologytest.Output(d, topic, serde.String, serde.JSON[ActivityWindow]())
	for _, m := range out.Read() {
		k := windowKey{m.Key, m.Value.Start.UnixMilli()}
		if windows[k] || m.Value.End.Sub(m.Value.Start) != ActivityWindowSize {
			t.Errorf("window %+v comes out twice, or is no window", m.Value)
		}
		windows[k] = true
		n += m.Value.Events
	}
	return n, windows
}

func TestTilesCountClosedWindows(t *testing.T) {
	records, want := Generate(smallSpec())
	if want.Late == 0 || want.Valid == want.Distinct {
		t.Fatal("the input has no late or repeated events")
	}
	for _, c := range []struct {
		product, topic, late string
		want                 int64
	}{
		{"activity", ActivityTopic, ActivityLateTopic, want.Valid - want.Late - want.Tail},
		{"activity-distinct", DistinctTopic, DistinctLateTopic, want.Distinct - want.Late - want.Tail},
	} {
		t.Run(c.product, func(t *testing.T) {
			d := harness(t, c.product)
			pipe(t, d, ProgressTopic, records)
			if n, _ := events(t, d, c.topic); n != c.want {
				t.Errorf("%d events in closed windows, want %d", n, c.want)
			}
			if n := len(d.Read(c.late)); int64(n) != want.Late {
				t.Errorf("%d late events, want %d", n, want.Late)
			}
			if n := d.Dropped()[processors.DroppedProcessing]; n != sum(want.Rejected) {
				t.Errorf("%d rejected, want %d", n, sum(want.Rejected))
			}
		})
	}
}

// A record that is rejected moves no clock: with its topic's time it would be taken for later than all events behind it, so that it, and they with
// it, would be taken up after all others.
func TestRejectedRecordsMoveNoClock(t *testing.T) {
	const brokers, partition = 1_800_000_000_000, 1_780_000_000_000
	anna := "anna"
	for name, c := range map[string]struct {
		value                   []byte
		partitionTime, expected int64
	}{
		"valid":                      {with(validBase, nil), partition, june.Add(12 * time.Hour).UnixMilli()},
		"rejected":                   {[]byte("bad"), partition, partition},
		"rejected, before any event": {[]byte("bad"), processors.NoTimestamp, 0},
	} {
		r := &processors.Record[*string, []byte]{Key: &anna, Value: c.value, Timestamp: brokers}
		if got, err := progressTime(r, nil, c.partitionTime); err != nil || got != c.expected {
			t.Errorf("%s: %d, %v, want %d", name, got, err, c.expected)
		}
	}
}

// An event at the edge of its window's lateness counts, and one behind it is late.
func TestLateness(t *testing.T) {
	d := harness(t, "activity")
	n := 0
	at := func(offset time.Duration) Record {
		n++
		key := "anna"
		return Record{ProgressTopic, &key, with(validBase, map[string]any{"event_id": n, "event_time": june.Add(offset).Format(time.RFC3339)})}
	}
	pipe(t, d, ProgressTopic, []Record{
		at(time.Minute), at(15*time.Minute - time.Second), at(4 * time.Minute), // the first window is open until 00:15
		at(15 * time.Minute), at(4 * time.Minute), // and closed from then on
		at(time.Hour),
	})
	got, _ := events(t, d, ActivityTopic)
	late := topologytest.Output(d, ActivityLateTopic, serde.String, serde.JSON[LateEvent]()).Read()
	if got != 4 || len(late) != 1 || late[0].Value.EventID != "5" {
		t.Errorf("%d events, late ones %+v", got, late)
	}
}

func TestCohortIsTheNewestOfEachRow(t *testing.T) {
	d := harness(t, "cohort")
	records, want := Generate(smallSpec())
	pipe(t, d, EnrollmentTopic, records)
	got := map[string]Enrollment{}
	for _, m := range topologytest.Output(d, CurrentTopic, serde.String, serde.JSON[Enrollment]()).Read() {
		if m.ValueNull {
			delete(got, m.Key)
			continue
		}
		got[m.Key] = m.Value
	}
	if diff := cmp.Diff(want.Cohort, got); diff != "" {
		t.Error(diff)
	}
	seats := map[string]int64{}
	for _, m := range topologytest.Output(d, SeatsTopic, serde.String, serde.Int64).Read() {
		seats[m.Key] = m.Value
	}
	maps.DeleteFunc(seats, func(course string, n int64) bool { return n == 0 && course != "" })
	if diff := cmp.Diff(want.Seats, seats); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want.RejectedChanges, reasons(t, d, EnrollmentDeadLetters)); diff != "" {
		t.Error(diff)
	}
}

// A late old change doesn't bring a deleted row back, nor does a record of the same LSN; also not after the state was restored.
func TestDeletedStaysDeleted(t *testing.T) {
	d := harness(t, "cohort")
	key := EnrollmentKey("anna", "go")
	change := func(op, lsn string) Record {
		c := map[string]any{"op": op, "source_lsn": lsn}
		if op == Delete {
			c["status"] = nil
		}
		return Record{EnrollmentTopic, &key, with(validChange, c)}
	}
	pipe(t, d, EnrollmentTopic, []Record{change(Upsert, "0/FFFFFFFE"), change(Delete, "1/0"), change(Upsert, "0/FFFFFFFF"), change(Upsert, "1/0")})
	if err := d.Restart(); err != nil {
		t.Fatal(err)
	}
	pipe(t, d, EnrollmentTopic, []Record{change(Upsert, "0/FFFFFFFF")})
	out := topologytest.Output(d, CurrentTopic, serde.String, serde.JSON[Enrollment]()).Read()
	if len(out) == 0 || !out[len(out)-1].ValueNull {
		t.Fatalf("%+v", out)
	}
	pipe(t, d, EnrollmentTopic, []Record{change(Upsert, "1/1")})
	out = topologytest.Output(d, CurrentTopic, serde.String, serde.JSON[Enrollment]()).Read()
	if len(out) != 1 || out[0].Value.LSN != 1<<32+1 {
		t.Errorf("a newer change: %+v", out)
	}
}

func TestAuditorCounts(t *testing.T) {
	d := harness(t, "quality")
	records, want := Generate(smallSpec())
	pipe(t, d, ProgressTopic, records)
	hours := map[string]Quality{}
	for _, m := range topologytest.Output(d, QualityTopic, serde.String, serde.JSON[Quality]()).Read() {
		hours[m.Key] = m.Value
	}
	var got Quality
	rejected := map[string]int64{}
	for _, q := range hours {
		got.Records, got.Valid, got.Distinct, got.Duplicates, got.Mismatches = got.Records+q.Records, got.Valid+q.Valid, got.Distinct+q.Distinct, got.Duplicates+q.Duplicates, got.Mismatches+q.Mismatches
		for reason, n := range q.Rejected {
			rejected[reason] += n
		}
	}
	wantAll := Quality{Records: want.Progress, Valid: want.Valid, Distinct: want.Distinct, Duplicates: want.Valid - want.Distinct, Mismatches: want.Rejected[string(KeyMismatch)]}
	if diff := cmp.Diff(wantAll, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want.Rejected, rejected); diff != "" {
		t.Error(diff)
	}
}

func TestGeneratorIsSeeded(t *testing.T) {
	a, _ := Generate(smallSpec())
	b, _ := Generate(smallSpec())
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}
