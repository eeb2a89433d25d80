package lake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-io/tributary/internal/sinktest"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

// stateInput is the input of tests with faults: changes of few keys from several partitions, in no order, no two of them with the same order.
type stateInput struct {
	seed uint64
	opts []Option
}

func (s *stateInput) change(n int32, o int64) *member {
	r := rand.New(rand.NewPCG(s.seed, uint64(n)<<32|uint64(o)))
	m := &member{fmt.Sprint("l", r.IntN(7)), fmt.Sprint("c", r.IntN(2)), "upsert", fmt.Sprint(n, "-", o), LSN(r.Uint32N(1<<16)<<10 + uint32(n)<<8 + uint32(o))}
	if r.IntN(4) == 0 {
		m.Op = "delete"
	}
	return m
}

// want is the state after all offsets of all partitions up to a number.
func (s *stateInput) want(partitions int32, until int64) map[string]string {
	newest := map[string]*member{}
	for n := range partitions {
		for o := range until {
			m := s.change(n, o)
			key := m.Learner + "/" + m.Course
			if old := newest[key]; o%4 != 3 && (old == nil || m.At > old.At) {
				newest[key] = m
			}
		}
	}
	out := map[string]string{}
	for key, m := range newest {
		if m.Op != "delete" {
			out[key] = fmt.Sprint(m.Status, "@", m.At)
		}
	}
	return out
}

// TestStateWhateverHappens is TestEveryRowOnceWhateverHappens for current state: two instances over a store that fails, loses replies, and lets
// processes die at any operation, while others change metadata and compact. The table ends as the input's newest changes.
func TestStateWhateverHappens(t *testing.T) {
	for seed := range uint64(16) {
		synctest.Test(t, func(t *testing.T) { changeUnderFaults(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// instance lands the changes on a store, which fails by a plan.
func (s *stateInput) instance(t *testing.T, r *rand.Rand, store object.Store, plan *func(object.Call) object.Fault) *sinktest.Instance {
	i := failingInstance(t, r)
	i.Input = input(func(b sink.Batch, n int32, o int64) error {
		return b.Append(nil, s.change(n, o), &sink.Meta{Topic: "orders", Partition: n, Offset: o})
	})
	i.Open = func(ctx context.Context) (sink.Writer, error) {
		faulty := &object.Faulty{Inner: store, Plan: *plan}
		return openIn[member](ctx, membersOf(faulty, append(weatherOptions(), s.opts...)...))
	}
	return i
}

func changeUnderFaults(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	store := object.NewMemory("t")
	plan := faultPlan(seed)
	changes := &stateInput{seed: seed}
	if seed%2 == 1 {
		changes.opts = append(changes.opts, DeletionVectors())
	}
	if seed%4 >= 2 {
		changes.opts = append(changes.opts, PartitionBy("course"))
	}
	weather(t, r, store, [2]*sinktest.Instance{changes.instance(t, r, store, &plan), changes.instance(t, r, store, &plan)}, &plan, func() { compact(t, store) })
	wantState(t, store, changes.want(inputPartitions, inputRows))
}

// changeSome lands changes from the table's progress on, a random number at a time, until an offset.
func changeSome(dir string, until int64) error {
	input := stateInput{seed: 5}
	s := Delta(dir, CurrentState("learner", "course"), OrderBy("lsn"), DeleteWhere("op", "delete"), DeletionVectors(), IndexDir(dir+"-index"),
		Properties(map[string]string{"delta.checkpointInterval": "5"}))
	return advance[member](s, until, func(b sink.Batch, o int64) error {
		if o%4 == 3 {
			return nil
		}
		return b.Append(nil, input.change(0, o), meta(o))
	})
}

// TestStateKill9 kills a process that changes a table again and again, at any moment, and with it its index in a folder of its own.
func TestStateKill9(t *testing.T) {
	dir, store := localStore(t)
	sinktest.KillLoop(t, 8, childStateVariable, dir, 150*time.Millisecond, 400*time.Millisecond, func() bool { return landedIn(dir) > 0 })
	until := landedIn(dir) + 100
	if err := changeSome(dir, until); err != nil {
		t.Fatal(err)
	}
	want := (&stateInput{seed: 5}).want(1, until)
	wantState(t, store, want)
	if d := readers.Open(t).DeltaRS(t, dir); d.Count != int64(len(want)) {
		t.Errorf("delta-rs finds %d rows, want %d", d.Count, len(want))
	}
}

// TestStateReadByOthers lets delta-rs and DuckDB read tables of both kinds, and delta-rs compact, vacuum and checkpoint them between batches.
func TestStateReadByOthers(t *testing.T) {
	r := readers.Open(t)
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			dir, store := localStore(t)
			opts = append([]Option{CurrentState("learner", "course"), OrderBy("lsn"), DeleteWhere("op", "delete")}, opts...)
			w := openSink[string, member](t, Delta(dir, opts...))
			input := stateInput{seed: 9}
			var at int64
			more := func(n int64) {
				b := w.NewBatch()
				defer b.Release()
				from := at
				if from == 0 {
					from = sink.NoOffset
				}
				for range n {
					if at%4 != 3 {
						if err := b.Append(nil, input.change(0, at), meta(at)); err != nil {
							t.Fatal(err)
						}
					}
					at++
				}
				if _, err := w.Commit(ctx, b, []sink.Move{move(0, from, at)}); err != nil {
					t.Fatal(err)
				}
			}
			check := func(when string) {
				t.Helper()
				want := input.want(1, at)
				wantState(t, store, want)
				const query = "select learner || '/' || course as k, status || '@' || lsn as v from t"
				for who, rows := range map[string][]readers.Row{"delta-rs": r.DeltaRS(t, dir, readers.Query(query)).Rows, "DuckDB": r.DuckDB(t, dir, query).Rows} {
					got := map[string]string{}
					for _, row := range rows {
						got[fmt.Sprint(row["k"])] += fmt.Sprint(row["v"])
					}
					if !maps.Equal(got, want) {
						t.Errorf("%s: %s finds %v, want %v", when, who, got, want)
					}
				}
			}
			more(20)
			more(15)
			more(10)
			check("after our commits")
			var did []string
			r.Python(t, dir, `
out = []
for name, do in [("compact", lambda dt: dt.optimize.compact()), ("checkpoint", lambda dt: dt.create_checkpoint()),
                 ("vacuum", lambda dt: dt.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False))]:
    try:
        do(deltalake.DeltaTable(table))
        out.append(name)
    except Exception as e:
        out.append(name + ": " + str(e))
`, &did)
			t.Logf("delta-rs: %s", strings.Join(did, "; "))
			check("after upkeep by delta-rs")
			more(30)
			check("after more commits")
			// What a new process reads includes what was deleted, which the vacuum must not have taken.
			w = openSink[string, member](t, Delta(dir, opts...))
			more(50)
			check("after a restart")
		})
	}
}

// TestStateOpensWhileFilesGo compacts a table and deletes its old files while a sink that opens it is about to read them, or one that has it open.
func TestStateOpensWhileFilesGo(t *testing.T) {
	store := object.NewMemory("t")
	var during func()
	faulty := &object.Faulty{Inner: store, Plan: func(c object.Call) object.Fault {
		if do := during; do != nil && strings.HasSuffix(c.Name, ".parquet") {
			during = nil
			do()
		}
		return object.NoFault
	}}
	w := openSink[string, member](t, membersOf(store))
	offerAll(t, w, 0, member{"a", "x", "upsert", "one", 1}, member{"b", "x", "upsert", "one", 2})
	offerAll(t, w, 2, member{"a", "x", "upsert", "two", 3})
	compactAndDelete := func() {
		old := filesOf(t, store)
		compact(t, store)
		for _, f := range old {
			if err := store.Delete(ctx, f.Path); err != nil {
				t.Fatal(err)
			}
		}
	}
	during = compactAndDelete
	late := openSink[string, member](t, membersOf(faulty))
	if during != nil {
		t.Fatal("the files were not looked at")
	}
	offerAll(t, w, 3, member{"b", "x", "upsert", "two", 4})
	during = compactAndDelete
	offerAll(t, late, 4, member{"c", "x", "upsert", "one", 5}, member{"b", "x", "upsert", "late", 3})
	wantState(t, store, map[string]string{"a/x": "two@0/3", "b/x": "two@0/4", "c/x": "one@0/5"})
}

// TestStateFileIsLost deletes a file that the table has: that is an error, not a reason to wait for another version.
func TestStateFileIsLost(t *testing.T) {
	store := object.NewMemory("t")
	w := openSink[string, member](t, membersOf(store))
	other := openSink[string, member](t, membersOf(store))
	offerAll(t, w, 0, member{"a", "x", "upsert", "one", 1})
	if err := store.Delete(ctx, filesOf(t, store)[0].Path); err != nil {
		t.Fatal(err)
	}
	b := other.NewBatch()
	defer b.Release()
	if err := b.Append(nil, &member{"a", "x", "upsert", "two", 2}, meta(1)); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := other.Commit(soon, b, []sink.Move{move(0, 1, 2)}); !errors.Is(err, object.ErrNotFound) || soon.Err() != nil {
		t.Errorf("a file is lost: %v", err)
	}
	if _, err := tryOpen[string, member](membersOf(store), testEnv()); !errors.Is(err, object.ErrNotFound) {
		t.Errorf("a file is lost: %v", err)
	}
}
