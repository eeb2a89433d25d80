package lake

import (
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// land lands rows of partition 0 from where the table is up to to, and returns where it began.
func landUpTo(t *testing.T, w sink.Writer, to int64) (from int64, err error) {
	t.Helper()
	p := part(0)
	progress, err := w.Progress(ctx, []sink.Partition{p})
	if err != nil {
		t.Fatal(err)
	}
	from = progress[p]
	return from, landFrom(t, w, from, to)
}

func landFrom(t *testing.T, w sink.Writer, from, to int64) error {
	t.Helper()
	b := w.NewBatch()
	defer b.Release()
	key, value := "k", []byte("v")
	for o := max(0, from); o < to; o++ {
		if err := b.Append(&key, &value, meta(o)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.Commit(ctx, b, []sink.Move{{Partition: part(0), From: from, To: to}})
	return err
}

// TestHandOver hands a table from the library's form of progress to the platform's, and back. Each sink goes on where the other ended,
// and the one that was left behind is fenced.
func TestHandOver(t *testing.T) {
	store := object.NewMemory("t")
	library := openSink[string, []byte](t, Delta("mem", Store(store), SourceColumns()))
	platform := openSink[string, []byte](t, Delta("mem", Store(store), SourceColumns(), PlatformProgress()))
	step := func(name string, w sink.Writer, want, to int64) {
		t.Helper()
		from, err := landUpTo(t, w, to)
		if err != nil || from != want {
			t.Fatalf("%s began at %d (%v), want %d", name, from, err, want)
		}
	}
	step("library", library, sink.NoOffset, 3)
	step("platform", platform, 3, 5)
	if err := landFrom(t, library, 3, 6); !sink.IsFenced(err) {
		t.Fatalf("the sink that was left behind landed rows: %v", err)
	}
	step("platform again", platform, 5, 6)
	if err := landFrom(t, platform, 6, 7); err != nil { // without reading the progress in between, as an engine does
		t.Fatal(err)
	}
	step("library", library, 7, 9)
	if err := landFrom(t, platform, 7, 9); !sink.IsFenced(err) {
		t.Fatalf("the sink that was left behind landed rows: %v", err)
	}
	step("platform", platform, 9, 10)

	seen := map[any]bool{}
	for _, row := range allRows(t, store) {
		if seen[row[SourceOffset]] {
			t.Errorf("offset %v landed twice", row[SourceOffset])
		}
		seen[row[SourceOffset]] = true
	}
	if len(seen) != 10 {
		t.Errorf("%d offsets landed, want 10", len(seen))
	}
}

// TestHandOverFromTheFirstOffset: the platform's form has no version before the first record.
func TestHandOverFromTheFirstOffset(t *testing.T) {
	store := object.NewMemory("t")
	platform := openSink[string, []byte](t, Delta("mem", Store(store), SourceColumns(), PlatformProgress()))
	library := openSink[string, []byte](t, Delta("mem", Store(store), SourceColumns()))
	if from, err := landUpTo(t, platform, 1); err != nil || from != sink.NoOffset {
		t.Fatalf("began at %d: %v", from, err)
	}
	if from, err := landUpTo(t, library, 2); err != nil || from != 1 {
		t.Fatalf("began at %d: %v", from, err)
	}
}

func TestRunColumns(t *testing.T) {
	store := object.NewMemory("t")
	now := time.Date(2026, 6, 1, 12, 0, 0, 123_000, time.UTC)
	env := testEnv()
	env.Now = func() time.Time { now = now.Add(time.Second); return now }
	w, err := tryOpen[string, []byte](Delta("mem", Store(store), SourceColumns(), RunColumns("stream:g")), env)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := landFrom(t, w, sink.NoOffset, 2); err != nil {
		t.Fatal(err)
	}
	rows := allRows(t, store)
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		at, _ := row[CreatedAt].(time.Time)
		if row[RunID] != "stream:g" || at.Before(now.Add(-time.Hour)) || at.After(now) || row[ModifiedAt] != row[CreatedAt] || row[CreatedAt] != rows[0][CreatedAt] {
			t.Errorf("row %v", row)
		}
	}
	info, err := showStore(ctx, store, "mem", 1)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(info.History[0].Sources); !strings.Contains(text, `"run":"stream:g"`) {
		t.Errorf("the commit does not name the run: %s", text)
	}
}
