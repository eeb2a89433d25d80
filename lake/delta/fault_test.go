package delta

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/object"
	"pgregory.net/rapid"
)

// noSleep makes retries cost nothing, and the grace time after a context's end one try.
func noSleep(ctx context.Context, _ time.Duration) error {
	if ctx.Value(settling{}) != nil {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// process runs the sink on a store that breaks as plan says. A crash ends the context, as it would end the process.
func process(inner object.Store, now func() time.Time, goal int64, plan func(object.Call) object.Fault) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	return sinkRun(ctx, &object.Faulty{Inner: inner, Plan: plan, OnCrash: cancel}, now, goal)
}

// TestUnknownOutcomes fails the put of a version in doubt in every way and sees that it lands exactly once.
func TestUnknownOutcomes(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []object.Fault // of the puts of versions, in their order
		gets   []object.Fault // of the reads of versions after the first put
	}{
		{"lost reply", []object.Fault{object.LoseReply}, nil},
		{"nothing happened", []object.Fault{object.Doubt}, nil},
		{"three times in doubt", []object.Fault{object.Doubt, object.Doubt, object.LoseReply}, nil},
		{"can't read back at once", []object.Fault{object.LoseReply}, []object.Fault{object.Fail, object.Fail}},
		{"fails after doubt", []object.Fault{object.Doubt, object.Fail, object.NoSpace}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := object.NewMemory("t")
			mustCreate(t, inner, Spec{}, Options{})
			puts, gets := 0, 0
			faulty := &object.Faulty{Inner: inner, Plan: func(call object.Call) object.Fault {
				switch {
				case call.Op == object.OpPutIfAbsent:
					if puts++; puts <= len(c.faults) {
						return c.faults[puts-1]
					}
				case call.Op == object.OpGet && puts > 0:
					if gets++; gets <= len(c.gets) {
						return c.gets[gets-1]
					}
				}
				return object.NoFault
			}}
			table := mustOpen(t, faulty, Options{})
			table.sleep = noSleep
			l := mustCommit(t, table, Commit{Add: []Add{mustFile(t, inner, 5)}, Moves: []Move{move("a", -1, 5)}})
			if l.Version != 1 || !l.Recovered {
				t.Errorf("landed %+v", l)
			}
			if files, rows := counts(t, mustSnapshot(t, mustOpen(t, inner, Options{}))); files != 1 || rows != 5 {
				t.Errorf("%d files, %d rows", files, rows)
			}
		})
	}
}

// TestLostReplyAndLostRace: our put is in doubt, and another writer has the version: it is a lost race, not a success.
func TestLostReplyAndLostRace(t *testing.T) {
	inner := object.NewMemory("t")
	other := mustCreate(t, inner, Spec{}, Options{})
	fired := false
	faulty := &object.Faulty{Inner: inner, Plan: func(call object.Call) object.Fault {
		if call.Op == object.OpPutIfAbsent && !fired {
			fired = true
			mustCommit(t, other, Commit{Moves: []Move{move("other", -1, 1)}})
			return object.Doubt
		}
		return object.NoFault
	}}
	table := mustOpen(t, faulty, Options{})
	if l := mustCommit(t, table, Commit{Moves: []Move{move("a", -1, 1)}}); l.Version != 2 || l.Attempts != 2 {
		t.Errorf("landed %+v", l)
	}
}

// TestUndecided ends the context while the store fails in doubt.
func TestUndecided(t *testing.T) {
	inner := object.NewMemory("t")
	mustCreate(t, inner, Spec{}, Options{})
	dead := false
	ctx, cancel := context.WithCancel(t.Context())
	faulty := &object.Faulty{Inner: inner, Plan: func(call object.Call) object.Fault {
		if dead {
			cancel()
			return object.Fail
		}
		if call.Op == object.OpPutIfAbsent {
			dead = true
			return object.LoseReply
		}
		return object.NoFault
	}}
	table := mustOpen(t, faulty, Options{})
	table.sleep = noSleep
	a := mustFile(t, inner, 5)
	c := Commit{Add: []Add{a}, Moves: []Move{move("a", -1, 5)}}
	var undecided *UndecidedError
	if _, err := table.Commit(ctx, c); !errors.As(err, &undecided) || undecided.Version != 1 {
		t.Fatalf("want an undecided outcome: %v", err)
	}
	if _, err := inner.Get(t.Context(), a.Path); err != nil {
		t.Errorf("the data file is gone: %v", err)
	}
	// The store is back. It had landed: the same moves are fenced, nothing is doubled.
	faulty.Plan = nil
	var fenced *FencedError
	if _, err := table.Commit(t.Context(), c); !errors.As(err, &fenced) {
		t.Errorf("the same commit again: %v", err)
	}
	if files, _ := counts(t, mustSnapshot(t, table)); files != 1 {
		t.Errorf("%d files", files)
	}
}

// TestContextEndsAfterPut: the caller gives up right after the put; the grace time still finds out that it landed.
func TestContextEndsAfterPut(t *testing.T) {
	inner := object.NewMemory("t")
	mustCreate(t, inner, Spec{}, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	put := false
	faulty := &object.Faulty{Inner: inner, Plan: func(call object.Call) object.Fault {
		switch {
		case call.Op == object.OpPutIfAbsent && !put:
			put = true
			return object.LoseReply
		case put && ctx.Err() == nil:
			cancel() // while it reads back
			return object.Fail
		}
		return object.NoFault
	}}
	table := mustOpen(t, faulty, Options{})
	table.sleep = noSleep
	if l, err := table.Commit(ctx, Commit{Moves: []Move{move("a", -1, 5)}}); err != nil || !l.Recovered || l.Version != 1 {
		t.Errorf("landed %+v, %v", l, err)
	}
	if _, err := table.Commit(ctx, Commit{Moves: []Move{move("a", 5, 6)}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a commit under an ended context: %v", err)
	}
}

// TestPlainFailure: a definite failure lands nothing and the same call works later.
func TestPlainFailure(t *testing.T) {
	for _, fault := range []object.Fault{object.Fail, object.NoSpace} {
		inner := object.NewMemory("t")
		mustCreate(t, inner, Spec{}, Options{})
		broken := true
		faulty := &object.Faulty{Inner: inner, Plan: func(call object.Call) object.Fault {
			if call.Op == object.OpPutIfAbsent && broken {
				return fault
			}
			return object.NoFault
		}}
		table := mustOpen(t, faulty, Options{})
		c := Commit{Add: []Add{mustFile(t, inner, 5)}, Moves: []Move{move("a", -1, 5)}}
		_, err := table.Commit(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), "nothing landed") {
			t.Fatalf("fault %d: %v", fault, err)
		}
		broken = false
		if l := mustCommit(t, table, c); l.Version != 1 {
			t.Errorf("landed %+v", l)
		}
	}
}

// sinkRun plays a sink with two partitions: it lands the numbers from the table's progress up to goal, in batches, keeping the
// table. It returns on the first error, as a process that is then started again.
func sinkRun(ctx context.Context, s object.Store, now func() time.Time, goal int64) error {
	table, _, err := OpenOrCreate(ctx, s, Spec{Schema: plain(), Configuration: map[string]string{"delta.checkpointInterval": "2"}}, Options{Now: now})
	if err != nil {
		return err
	}
	table.sleep = noSleep
	for {
		var c Commit
		for _, id := range []string{"p0", "p1"} {
			from, ok := table.Head().Txn(id)
			if from < goal {
				to := min(from+7, goal)
				a, err := fakeFile(ctx, s, to-from)
				if err != nil {
					return err
				}
				c.Add = append(c.Add, a)
				c.Moves = append(c.Moves, Move{AppID: id, First: !ok, From: from, To: to})
			}
		}
		if len(c.Moves) == 0 {
			return nil
		}
		if _, err := table.Commit(ctx, c); err != nil {
			return err
		}
		if err := table.Maintain(ctx); err != nil {
			return err
		}
	}
}

// TestFaultAtEveryOperation runs the sink with one fault at each operation in turn and starts it again until it is through:
// every row is there once, whatever the fault.
func TestFaultAtEveryOperation(t *testing.T) {
	const goal = 21
	names := []string{"", "fail", "lost reply", "doubt", "no space", "crash", "crash after", "torn"}
	for _, fault := range []object.Fault{object.Fail, object.LoseReply, object.Doubt, object.NoSpace, object.Crash, object.CrashAfter, object.Torn} {
		t.Run(names[fault], func(t *testing.T) {
			for at := 1; ; at++ {
				inner := object.NewMemory(fmt.Sprint("op", at))
				fired := false
				err := process(inner, time.Now, goal, func(call object.Call) object.Fault {
					// A torn log entry can't come from a store that keeps its promise; a torn object of another kind can.
					if call.N < at || fired || fault == object.Torn && call.Op == object.OpPutIfAbsent {
						return object.NoFault
					}
					fired = true
					return fault
				})
				if err == nil && !fired {
					return // more operations than a run has
				}
				if err := sinkRun(t.Context(), inner, time.Now, goal); err != nil {
					t.Fatalf("operation %d: the second start failed: %v", at, err)
				}
				checkRows(t, inner, 2*goal, fmt.Sprintf("operation %d", at))
			}
		})
	}
}

func checkRows(t interface {
	Helper()
	Fatalf(string, ...any)
}, s object.Store, want int64, what string) {
	t.Helper()
	table, err := Open(context.Background(), s, Options{})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	snapshot, err := table.Snapshot(context.Background())
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	var files, rows int64
	for a, err := range snapshot.Files(context.Background()) {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		files++
		n, _ := a.NumRecords()
		rows += n
		if _, err := s.Stat(context.Background(), a.Path); err != nil {
			t.Fatalf("%s: a file of the table is missing: %v", what, err)
		}
	}
	if rows != want {
		t.Fatalf("%s: %d rows, want %d", what, rows, want)
	}
	if h := table.Head(); h.NumFiles >= 0 && h.NumFiles != files {
		t.Fatalf("%s: the head counts %d files, there are %d", what, h.NumFiles, files)
	}
}

// TestRandomFaults is the same with any number of faults of any kind, a foreign writer in between, and a clock that jumps.
func TestRandomFaults(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const goal = 21
		inner := object.NewMemory("random")
		now := newClock()
		kinds := []object.Fault{object.Fail, object.LoseReply, object.Doubt, object.NoSpace, object.Crash, object.CrashAfter}
		var foreign *Table
		foreignRows := int64(0)
		for start := 0; ; start++ {
			faults := map[int]object.Fault{}
			if start < 6 {
				for range rapid.IntRange(0, 6).Draw(rt, "faults") {
					faults[rapid.IntRange(1, 120).Draw(rt, "at")] = rapid.SampledFrom(kinds).Draw(rt, "kind")
				}
			}
			intrude := rapid.IntRange(1, 100).Draw(rt, "intrude")
			plan := func(call object.Call) object.Fault {
				if call.N == intrude && foreign != nil {
					a, err := fakeFile(context.Background(), inner, 1)
					if err != nil {
						rt.Fatal(err)
					}
					if _, err := foreign.Commit(context.Background(), Commit{Add: []Add{a}}); err != nil {
						rt.Fatal(err)
					}
					foreignRows++
				}
				return faults[call.N]
			}
			now.now = now.now.Add(time.Duration(rapid.IntRange(-100, 100).Draw(rt, "hours")) * time.Hour)
			err := process(inner, now.Now, goal, plan)
			if foreign == nil {
				foreign, _ = Open(context.Background(), inner, Options{})
			}
			if err == nil {
				break
			}
			if start > 12 {
				rt.Fatalf("it doesn't come through: %v", err)
			}
		}
		checkRows(rt, inner, 2*goal+foreignRows, "random")
	})
}
