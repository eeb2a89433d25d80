package lake

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// truncate empties the table of a sink that reads the topic of part.
func truncate(ctx context.Context, s sink.Sink, execute bool) (sink.Truncation, error) {
	return s.(sink.Truncater).Truncate(ctx, testEnv(), []string{part(0).Topic}, execute)
}

// wantOffsets checks that a table has each offset of partition 0 below an end once.
func wantOffsets(t *testing.T, store object.Store, end int) {
	t.Helper()
	var got, want []string
	for _, row := range allRows(t, store) {
		got = append(got, fmt.Sprint(row[SourceOffset]))
	}
	for o := range end {
		want = append(want, fmt.Sprint(o))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the table has the offsets %v, want %d of them, each once", got, end)
	}
}

// TestTruncate empties a table under a sink in each form of progress: a dry run changes nothing, what was made before is fenced, everything
// lands anew, and none of it twice.
func TestTruncate(t *testing.T) {
	for name, opts := range map[string][]Option{"library": nil, "platform": {PlatformProgress()}} {
		t.Run(name, func(t *testing.T) {
			store := object.NewMemory("t")
			opts := append(opts, Store(store), SourceColumns())
			s := Delta("mem", opts...)
			if out, err := truncate(ctx, s, true); err != nil || out.Version != -1 || out.Changed {
				t.Fatalf("without a table: %+v, %v", out, err)
			}
			w := openSink[string, []byte](t, s)
			if err := landFrom(t, w, sink.NoOffset, 5); err != nil {
				t.Fatal(err)
			}
			out, err := truncate(ctx, s, false)
			if err != nil || !out.Changed || out.Rows != 5 || out.Files != 1 || out.Partitions != 1 || out.Version != 1 {
				t.Fatalf("a dry run says %+v, %v", out, err)
			}
			if n := logEntries(t, store); n != 2 {
				t.Fatalf("after a dry run the log has %d entries, want 2", n)
			}
			if out, err = truncate(ctx, s, true); err != nil || out.Version != 2 {
				t.Fatalf("truncated: %+v, %v", out, err)
			}
			if err := landFrom(t, w, 5, 7); !sink.IsFenced(err) {
				t.Fatalf("a batch that was made before landed: %v", err)
			}
			wantOffsets(t, store, 0)
			if out, err = truncate(ctx, s, true); err != nil || out.Changed || out.Version != 2 {
				t.Fatalf("a second time: %+v, %v", out, err)
			}
			again := openSink[string, []byte](t, Delta("mem", opts...))
			for _, w := range []sink.Writer{w, again} { // both believe to own the partition
				if from, err := w.Progress(ctx, []sink.Partition{part(0)}); err != nil || from[part(0)] != sink.NoOffset {
					t.Fatalf("the emptied table has progress %v, %v", from, err)
				}
			}
			if err := landFrom(t, again, sink.NoOffset, 3); err != nil {
				t.Fatal(err)
			}
			if err := landFrom(t, w, sink.NoOffset, 3); !sink.IsFenced(err) {
				t.Fatalf("the same rows landed twice: %v", err)
			}
			if err := landFrom(t, again, 3, 8); err != nil {
				t.Fatal(err)
			}
			wantOffsets(t, store, 8)
		})
	}
}

// TestTruncateHandedOver: the progress that a sink has left in the other form is forgotten, too, from either side.
func TestTruncateHandedOver(t *testing.T) {
	for name, emptied := range map[string][]Option{"library": nil, "platform": {PlatformProgress()}} {
		t.Run(name, func(t *testing.T) {
			store := object.NewMemory("t")
			library := openSink[string, []byte](t, Delta("mem", Store(store), SourceColumns()))
			platform := openSink[string, []byte](t, Delta("mem", Store(store), SourceColumns(), PlatformProgress()))
			for i, w := range []sink.Writer{library, platform, library} {
				if _, err := landUpTo(t, w, int64(3*i+3)); err != nil {
					t.Fatal(err)
				}
			}
			out, err := truncate(ctx, Delta("mem", append(emptied, Store(store))...), true)
			if err != nil || out.Rows != 9 || out.Partitions != 2 {
				t.Fatalf("truncated: %+v, %v", out, err)
			}
			for i, w := range []sink.Writer{platform, library, platform} {
				from, err := landUpTo(t, w, int64(2*i+2))
				if want := int64(2 * i); err != nil || max(from, 0) != want {
					t.Fatalf("sink %d began at %d (%v), want %d", i, from, err, want)
				}
			}
			wantOffsets(t, store, 6)
		})
	}
}

// TestTruncateWhateverHappens breaks every operation of an emptying in every way. Done again, the table is empty, and takes the input anew.
func TestTruncateWhateverHappens(t *testing.T) {
	for _, fault := range []object.Fault{object.Fail, object.LoseReply, object.Doubt, object.NoSpace, object.Crash, object.CrashAfter} {
		for n := 1; ; n++ {
			store := object.NewMemory("t")
			s := func(on object.Store) sink.Sink { return Delta("mem", Store(on), SourceColumns()) }
			w, err := tryOpen[string, []byte](s(store), testEnv())
			if err != nil {
				t.Fatal(err)
			}
			if err := landFrom(t, w, sink.NoOffset, 4); err != nil {
				t.Fatal(err)
			}
			stale := w.NewBatch()
			done, cancel := context.WithTimeout(ctx, time.Minute)
			faulty := &object.Faulty{Inner: store, OnCrash: cancel, Plan: func(c object.Call) object.Fault {
				if c.N == n {
					return fault
				}
				return object.NoFault
			}}
			_, err = truncate(done, s(faulty), true)
			cancel()
			over := faulty.Calls() < n
			if rows := len(allRows(t, store)); rows != 0 && rows != 4 || err == nil && rows != 0 {
				t.Fatalf("fault %d at operation %d (%v): the table has %d rows", fault, n, err, rows)
			}
			if _, err := truncate(ctx, s(store), true); err != nil {
				t.Fatalf("fault %d at operation %d, again: %v", fault, n, err)
			}
			if _, err := w.Commit(ctx, stale, []sink.Move{move(0, 4, 5)}); !sink.IsFenced(err) {
				t.Fatalf("fault %d at operation %d: a batch that was made before landed: %v", fault, n, err)
			}
			stale.Release()
			if from, err := landUpTo(t, w, 6); err != nil || from != sink.NoOffset {
				t.Fatalf("fault %d at operation %d: landing began at %d, %v", fault, n, from, err)
			}
			wantOffsets(t, store, 6)
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if over {
				break
			}
		}
	}
}

// TestTruncateBesideWriters empties a table again and again while an instance that nobody has stopped lands. An emptying that is overtaken all
// the time is given up. What is there in the end is what landed since the last one, each row once.
func TestTruncateBesideWriters(t *testing.T) {
	store := object.NewMemory("t")
	s := Delta("mem", Store(store), SourceColumns())
	w := openSink[string, []byte](t, s)
	ended := make(chan error, 1)
	go func() {
		for range 100 {
			progress, err := w.Progress(ctx, []sink.Partition{part(0)})
			if err == nil {
				from := progress[part(0)]
				err = landFrom(t, w, from, max(from, 0)+3)
			}
			if err != nil && !sink.IsFenced(err) {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	for range 10 {
		if _, err := truncate(ctx, s, true); err != nil {
			wantRefused(t, err, "others write it")
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	progress, err := w.Progress(ctx, []sink.Partition{part(0)})
	if err != nil {
		t.Fatal(err)
	}
	wantOffsets(t, store, int(max(progress[part(0)], 0)))
}

func TestTruncateRefused(t *testing.T) {
	refused := func(s sink.Sink, words ...string) {
		t.Helper()
		for _, execute := range []bool{false, true} {
			_, err := truncate(ctx, s, execute)
			wantRefused(t, err, words...)
		}
	}
	store := object.NewMemory("t")
	s := Delta("mem", Store(store), SourceColumns())
	w := openSink[string, []byte](t, s)
	if err := landFrom(t, w, sink.NoOffset, 2); err != nil {
		t.Fatal(err)
	}
	other := testEnv()
	other.Name = "another"
	second, err := tryOpen[string, []byte](Delta("mem", Store(store), SourceColumns()), other)
	if err != nil {
		t.Fatal(err)
	}
	if err := landFrom(t, second, sink.NoOffset, 2); err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	refused(s, "others land in it", "app/another/orders@")
	appends := object.NewMemory("appends")
	s = Delta("mem", Store(appends), Properties(map[string]string{"delta.appendOnly": "true"}))
	if err := landFrom(t, openSink[string, []byte](t, s), sink.NoOffset, 2); err != nil {
		t.Fatal(err)
	}
	refused(s, "delta.appendOnly")
	state := object.NewMemory("state")
	openSink[string, member](t, membersOf(state))
	refused(bound[member](t, Delta("mem", Store(state))), "current state")
	refused(bound[member](t, membersOf(appends)), "not current state")
	broken := &object.Faulty{Inner: store, Plan: func(object.Call) object.Fault { return object.Fail }}
	if _, err := truncate(ctx, Delta("mem", Store(broken)), true); !errors.Is(err, object.ErrFault) {
		t.Errorf("a store that is down: %v", err)
	}
}

// bound binds a sink without opening its table.
func bound[V any](t *testing.T, s sink.Sink) sink.Sink {
	t.Helper()
	if err := s.Bind(reflect.TypeFor[string](), reflect.TypeFor[V]()); err != nil {
		t.Fatal(err)
	}
	return s
}

// truncated lets others read a table that was emptied and landed anew: rows, history, progress, also of the version before.
func (m *matrix) truncated(t *testing.T) {
	dir, _ := localStore(t)
	s := Delta(dir, Properties(map[string]string{"delta.checkpointInterval": "4"}))
	w := openSink[string, matrixRow](t, s)
	land(t, w, 0, matrixRows(0, 7)...)
	land(t, w, 7, matrixRows(7, 2)...)
	if _, err := truncate(ctx, s, true); err != nil {
		t.Fatal(err)
	}
	if empty := m.agree(t, dir, "select count(*) as n from t"); empty[0].Int(t, "n") != 0 {
		t.Errorf("the emptied table has %v rows", empty[0])
	}
	m.metadata(t, dir, 0, sink.NoOffset)
	if _, err := w.Progress(ctx, []sink.Partition{part(0)}); err != nil { // as an engine does before it goes on
		t.Fatal(err)
	}
	for i := range int64(3) { // behind a checkpoint, too
		land(t, w, 2*i, matrixRows(2*i, 2)...)
	}
	m.checkRows(t, dir, 6)
	m.metadata(t, dir, 6, 6)
}

// TestCheckpointKeepsForgottenProgress: a checkpoint and a checksum carry the version that stands for none.
func TestCheckpointKeepsForgottenProgress(t *testing.T) {
	store := object.NewMemory("t")
	s := Delta("mem", Store(store), SourceColumns())
	if err := landFrom(t, openSink[string, []byte](t, s), sink.NoOffset, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := truncate(ctx, s, true); err != nil {
		t.Fatal(err)
	}
	table, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Maintain(ctx); err != nil {
		t.Fatal(err)
	}
	w := openSink[string, []byte](t, Delta("mem", Store(store), SourceColumns()))
	if from, err := landUpTo(t, w, 4); err != nil || from != sink.NoOffset {
		t.Fatalf("landing began at %d, %v", from, err)
	}
	info, err := showStore(ctx, store, "mem", 9)
	if err != nil || len(info.History) < 3 || !strings.Contains(fmt.Sprint(info.History), "TRUNCATE") {
		t.Errorf("history %+v, %v", info, err)
	}
	wantOffsets(t, store, 4)
}
