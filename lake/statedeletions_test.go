package lake

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/keyed"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// rememberedBy counts the deletions that a writer's index and the table's files hold.
func rememberedBy(t *testing.T, w sink.Writer) (inIndex, inFiles int) {
	t.Helper()
	x := w.(*writer).index
	err := x.x.Each(func(_ keyed.Hash, e keyed.Entry) bool {
		if e.Deleted {
			inIndex++
		}
		return true
	})
	for _, id := range x.deletions.ids() {
		s, readErr := keyed.ReadSegment(ctx, x.store, id)
		if readErr != nil {
			t.Fatal(readErr)
		}
		inFiles += len(s.Entries)
	}
	if err != nil {
		t.Fatal(err)
	}
	return inIndex, inFiles
}

// TestDeletionsAreForgotten deletes many more rows than are remembered. What is forgotten doesn't come back with a late change, whoever asks: the instance that
// forgot it, one beside it, one that starts anew, and one that declares no bound. What isn't, and what has a row, is as ever.
func TestDeletionsAreForgotten(t *testing.T) {
	const bound, most = 8, 10
	for how, opts := range modes {
		t.Run(how, func(t *testing.T) {
			store := object.NewMemory("t")
			opts = append(opts[:len(opts):len(opts)], RememberDeletions(bound))
			var log strings.Builder
			env := testEnv()
			env.Logger = textLogger(&log)
			dir := t.TempDir()
			w, err := tryOpen[string, member](membersOf(store, append(opts[:len(opts):len(opts)], IndexDir(dir))...), env)
			if err != nil {
				t.Fatal(err)
			}
			beside := openSink[string, member](t, membersOf(store, opts...))
			offerAll(t, w, 0, member{"old", "x", "upsert", "old", 5}, member{"gone", "x", "upsert", "gone", 6})
			const rows = 60
			for i := range int64(rows) {
				offerAll(t, w, 2+i, member{fmt.Sprint("l", i), "x", "delete", "", LSN(100 + i)})
			}
			at := int64(2 + rows)
			horizon := w.(*writer).index.deletions.horizon
			if horizon < 100+rows-most-1 || horizon >= 100+rows {
				t.Fatalf("the horizon is %d", horizon)
			}
			want := map[string]string{"old/x": "old@0/5", "gone/x": "gone@0/6"}
			late := func(w sink.Writer, who string) {
				t.Helper()
				forgotten, known := member{"l3", "x", "upsert", "late", 99}, member{fmt.Sprint("l", rows-1), "x", "upsert", "late", 100 + rows - 2}
				offerAll(t, w, at, forgotten, known, member{"never", "x", "upsert", "below", 42}, member{"l4", "x", "delete", "", 98})
				at += 4
				wantState(t, store, want)
				if inIndex, inFiles := rememberedBy(t, w); inIndex > most || inFiles > most || inIndex == 0 {
					t.Errorf("%s: %d deletions in the index and %d in files, want at most %d", who, inIndex, inFiles, most)
				}
				info, err := showHistory(store)
				if err != nil || info["numChangesBeyondHorizon"] != "2" || info["numLateChanges"] != "2" {
					t.Errorf("%s: the commit says %v, %v", who, info, err)
				}
			}
			late(w, "the same instance")
			if got := log.String(); !strings.Contains(got, "changes=2 olderThan=0/"+strings.ToUpper(fmt.Sprintf("%x", horizon))) || !strings.Contains(got, "forgot the oldest deletions") {
				t.Errorf("the log doesn't tell of the horizon: %s", got)
			}
			late(beside, "another instance")
			late(openSink[string, member](t, membersOf(store)), "an instance without a bound")
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			w = openSink[string, member](t, membersOf(store, append(opts[:len(opts):len(opts)], IndexDir(dir))...))
			late(w, "an index in a folder")
			// A key with a row is known, whatever its order; once it is deleted its deletion is below the horizon, too.
			offerAll(t, w, at, member{"old", "x", "upsert", "newer", 7}, member{"gone", "x", "delete", "", 8}, member{"gone", "x", "upsert", "late", 9})
			offerAll(t, w, at+3, member{"gone", "x", "upsert", "late", 9}, member{"l3", "x", "upsert", "back", LSN(horizon)}, member{"new", "x", "upsert", "new", 1000})
			wantState(t, store, map[string]string{"old/x": "newer@0/7", "l3/x": fmt.Sprint("back@", LSN(horizon)), "new/x": "new@0/3E8"})
		})
	}
}

// showHistory returns the metrics of the newest commit.
func showHistory(store object.Store) (map[string]string, error) {
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		return nil, err
	}
	for e, err := range table.History(ctx) {
		return e.Info.OperationMetrics, err
	}
	return nil, nil
}

// TestDeletionsThatCameBackCountForNothing deletes rows again and again that come back each time: what their rows stand for is no reason to forget others.
func TestDeletionsThatCameBackCountForNothing(t *testing.T) {
	store := object.NewMemory("t")
	w := openSink[string, member](t, membersOf(store, RememberDeletions(4)))
	offerAll(t, w, 0, member{"kept", "x", "delete", "", 1})
	for i := range int64(40) {
		offerAll(t, w, 1+2*i, member{fmt.Sprint("l", i), "x", "delete", "", LSN(10 * (i + 1))})
		offerAll(t, w, 2+2*i, member{fmt.Sprint("l", i), "x", "upsert", "back", LSN(10*(i+1) + 1)})
	}
	if h := w.(*writer).index.deletions.horizon; h != 0 {
		t.Errorf("the horizon is %d, though only one key has no row", h)
	}
	if _, inFiles := rememberedBy(t, w); inFiles > 5 {
		t.Errorf("%d deletions in files", inFiles)
	}
	offerAll(t, w, 81, member{"kept", "x", "upsert", "back", 2})
	if got := stateOf(t, store)["kept/x"]; got != "back@0/2" {
		t.Errorf("kept/x is %q", got)
	}
}
