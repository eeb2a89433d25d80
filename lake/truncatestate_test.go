package lake

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/keyed"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// landChanges lands changes from an offset to another, in one batch; the first batch's From is NoOffset.
func landChanges(t *testing.T, w sink.Writer, from int64, changes ...member) error {
	t.Helper()
	b := w.NewBatch()
	defer b.Release()
	for i := range changes {
		if err := b.Append(nil, &changes[i], meta(max(from, 0)+int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.Commit(ctx, b, []sink.Move{move(0, from, max(from, 0)+int64(len(changes)))})
	return err
}

// TestTruncateState empties a table of current state: what was deleted is forgotten as well, by the table and by every index of it, so that all changes count
// anew. With a sink that has it open, one that opens it, and one whose index of before lies in a folder.
func TestTruncateState(t *testing.T) {
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			store := object.NewMemory("t")
			s := func(more ...Option) sink.Sink { return membersOf(store, append(more, opts...)...) }
			folder := t.TempDir()
			kept, err := tryOpen[string, member](s(IndexDir(folder)), testEnv())
			if err != nil {
				t.Fatal(err)
			}
			all := []member{{"a", "x", "upsert", "one", 1}, {"b", "x", "upsert", "one", 2}, {"a", "x", "delete", "", 5}, {"c", "x", "delete", "", 6}}
			if err := landChanges(t, kept, sink.NoOffset, all...); err != nil {
				t.Fatal(err)
			}
			if err := kept.Close(); err != nil {
				t.Fatal(err)
			}
			open := openSink[string, member](t, s())
			wantState(t, store, map[string]string{"b/x": "one@0/2"})
			emptied := bound[member](t, s())
			if out, err := truncate(ctx, emptied, false); err != nil || !out.Changed || out.Rows != 1 || out.Partitions != 1 {
				t.Fatalf("a dry run says %+v, %v", out, err)
			}
			wantState(t, store, map[string]string{"b/x": "one@0/2"})
			if _, err := truncate(ctx, emptied, true); err != nil {
				t.Fatal(err)
			}
			wantState(t, store, nil)
			if err := landChanges(t, open, 4, member{"d", "x", "upsert", "zombie", 9}); !sink.IsFenced(err) {
				t.Fatalf("a batch that was made before landed: %v", err)
			}
			if out, err := truncate(ctx, emptied, true); err != nil || out.Changed {
				t.Fatalf("a second time: %+v, %v", out, err)
			}
			// Older than the deletions of before. The first lands by the sink that had the table open, the others by those that open it.
			if err := landChanges(t, open, sink.NoOffset, member{"a", "x", "upsert", "anew", 3}, member{"d", "x", "delete", "", 7}); err != nil {
				t.Fatal(err)
			}
			again := openSink[string, member](t, s(IndexDir(folder)))
			if err := landChanges(t, again, 2, member{"c", "x", "upsert", "anew", 4}, member{"d", "x", "upsert", "late", 6}); err != nil {
				t.Fatal(err)
			}
			if err := landChanges(t, openSink[string, member](t, s()), 4, member{"a", "x", "upsert", "newer", 4}); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"a/x": "newer@0/4", "c/x": "anew@0/4"}
			wantState(t, store, want)
			table, err := delta.Open(ctx, store, delta.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := table.Maintain(ctx); err != nil {
				t.Fatal(err)
			}
			if err := landChanges(t, openSink[string, member](t, s()), 5, member{"d", "x", "upsert", "late", 5}); err != nil {
				t.Fatal(err)
			}
			wantState(t, store, want)
			other := bound[member](t, membersOf(store, append(opts, CurrentState("status"))...))
			_, err = truncate(ctx, other, true)
			wantRefused(t, err, "tributary.currentState.keys")
		})
	}
}

// TestTruncateStateBesideAHalfBuiltIndex empties a table twice. An open sink's building of its index anew comes to nothing in between: what deletions it
// has read by then are none of the table that is emptied again.
func TestTruncateStateBesideAHalfBuiltIndex(t *testing.T) {
	store := object.NewMemory("t")
	empty := func() {
		t.Helper()
		if _, err := truncate(ctx, bound[member](t, membersOf(store)), true); err != nil {
			t.Fatal(err)
		}
	}
	reads, broken := 0, 0
	faulty := &object.Faulty{Inner: store, Plan: func(c object.Call) object.Fault {
		if strings.HasPrefix(c.Name, keyed.DeletionsDir) && c.Op == object.OpGet {
			if reads++; reads == broken {
				return object.Fail
			}
		}
		return object.NoFault
	}}
	w := openSink[string, member](t, membersOf(faulty))
	if err := landChanges(t, w, sink.NoOffset, member{"d", "x", "upsert", "one", 9}); err != nil {
		t.Fatal(err)
	}
	empty()
	beside := openSink[string, member](t, membersOf(store))
	for i, key := range []string{"a", "b", "c"} { // each in a file of its own
		offerAll(t, beside, int64(i), member{key, "x", "delete", "", 9})
	}
	broken = reads + 3
	if err := landChanges(t, w, 3, member{"d", "x", "upsert", "one", 9}); !errors.Is(err, object.ErrFault) {
		t.Fatalf("the index was built: %v", err)
	}
	if inIndex, _ := rememberedBy(t, w); inIndex == 0 {
		t.Fatal("no deletion was read: the test shows nothing")
	}
	empty()
	anew := []member{{"a", "x", "upsert", "anew", 1}, {"b", "x", "upsert", "anew", 2}}
	if err := landChanges(t, w, sink.NoOffset, anew...); !sink.IsFenced(err) { // it has last seen what was landed beside it
		t.Fatal(err)
	}
	if err := landChanges(t, w, sink.NoOffset, anew...); err != nil {
		t.Fatal(err)
	}
	wantState(t, store, map[string]string{"a/x": "anew@0/1", "b/x": "anew@0/2"})
}

// TestTruncateStateWhateverHappens breaks every operation of an emptying in every way. Done again, the table is empty, and old deletions don't count.
func TestTruncateStateWhateverHappens(t *testing.T) {
	for _, fault := range []object.Fault{object.Fail, object.LoseReply, object.Doubt, object.Crash, object.CrashAfter} {
		for n, over := 1, false; !over; n++ {
			store := object.NewMemory("t")
			w, err := tryOpen[string, member](membersOf(store, DeletionVectors()), testEnv())
			if err != nil {
				t.Fatal(err)
			}
			if err := landChanges(t, w, sink.NoOffset, member{"a", "x", "upsert", "one", 1}, member{"b", "x", "delete", "", 5}); err != nil {
				t.Fatal(err)
			}
			done, cancel := context.WithTimeout(ctx, time.Minute)
			faulty := &object.Faulty{Inner: store, OnCrash: cancel, Plan: func(c object.Call) object.Fault {
				if c.N == n {
					return fault
				}
				return object.NoFault
			}}
			_, err = truncate(done, bound[member](t, membersOf(faulty, DeletionVectors())), true)
			cancel()
			over = faulty.Calls() < n
			if rows := len(allRows(t, store)); err == nil && rows != 0 {
				t.Fatalf("fault %d at operation %d: the table has %d rows", fault, n, rows)
			}
			if _, err := truncate(ctx, bound[member](t, membersOf(store, DeletionVectors())), true); err != nil {
				t.Fatalf("fault %d at operation %d, again: %v", fault, n, err)
			}
			if err := landChanges(t, w, 2, member{"c", "x", "upsert", "zombie", 9}); !sink.IsFenced(err) {
				t.Fatalf("fault %d at operation %d: a batch that was made before landed: %v", fault, n, err)
			}
			if err := landChanges(t, w, sink.NoOffset, member{"b", "x", "upsert", "anew", 3}); err != nil {
				t.Fatal(err)
			}
			wantState(t, store, map[string]string{"b/x": "anew@0/3"})
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
