package object

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
)

// Op names an operation of a Store for Faulty.
type Op string

// The operations that Faulty can break. OpWrite and OpClose are those of a Writer.
const (
	OpPutIfAbsent Op = "put if absent"
	OpPut         Op = "put"
	OpCreate      Op = "create"
	OpWrite       Op = "write"
	OpClose       Op = "close"
	OpSync        Op = "sync"
	OpGet         Op = "get"
	OpStat        Op = "stat"
	OpList        Op = "list"
	OpDelete      Op = "delete"
)

// Call is one operation as Faulty sees it.
type Call struct {
	N    int // 1 for the first operation on the Faulty
	Op   Op
	Name string // of the object; for sync the first, for list the prefix
}

// Fault says what becomes of an operation.
type Fault int

// The faults.
const (
	NoFault    Fault = iota
	Fail             // nothing happens, and the caller is told so
	LoseReply        // it happens, but the caller gets ErrUnknown
	Doubt            // nothing happens, and the caller gets ErrUnknown
	NoSpace          // nothing happens, and the caller gets ErrNoSpace
	Crash            // nothing happens, then or later: every further operation fails with ErrCrashed, as if the process had died
	CrashAfter       // it happens, and then the process dies
	Torn             // half of the data is written under the name, as a store without atomic puts would; then the process dies
	StaleWins        // put-if-absent overwrites: a store that ignores the condition
)

// ErrFault is the error of a Fail.
var ErrFault = errors.New("injected fault")

// ErrCrashed is the error of all operations after a Crash.
var ErrCrashed = errors.New("injected crash")

// Faulty breaks another store as a function says, for tests of what stands on top. A crash is "undone" by a new Faulty (or
// the inner store itself), which then sees what the crash left.
type Faulty struct {
	Inner Store
	// Plan is asked before each operation, under a lock. Nil means no faults.
	Plan func(Call) Fault
	// OnCrash, if set, is called once, when a crash has had its effect: to end the context of the "process" that died, which
	// would otherwise retry for ever.
	OnCrash func()

	mu      sync.Mutex
	calls   int
	crashed bool
}

func (f *Faulty) String() string { return f.Inner.String() }

// Calls returns how many operations there were.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// do runs one operation through the plan. run does it; torn (nil where it makes no sense) does half of it.
func (f *Faulty) do(op Op, name string, run, torn func() error) error {
	f.mu.Lock()
	f.calls++
	call := Call{f.calls, op, name}
	fault := NoFault
	switch {
	case f.crashed:
		fault = Crash
	case f.Plan != nil:
		fault = f.Plan(call)
	}
	dies := !f.crashed && (fault == Crash || fault == CrashAfter || fault == Torn)
	f.crashed = f.crashed || dies
	f.mu.Unlock()
	if dies && f.OnCrash != nil {
		defer f.OnCrash()
	}
	say := func(err error) error {
		return &Error{string(op), f.String(), name, fmt.Errorf("operation %d: %w", call.N, err)}
	}
	switch fault {
	case Fail:
		return say(ErrFault)
	case Doubt:
		return say(ErrUnknown)
	case NoSpace:
		return say(ErrNoSpace)
	case Crash:
		return say(ErrCrashed)
	case LoseReply:
		if err := run(); err != nil {
			return err
		}
		return say(ErrUnknown)
	case CrashAfter:
		if err := run(); err != nil {
			return err
		}
		return say(ErrCrashed)
	case Torn:
		if torn != nil {
			if err := torn(); err != nil {
				return err
			}
		}
		return say(ErrCrashed)
	case StaleWins:
		if op == OpPutIfAbsent {
			if err := f.Inner.Delete(context.Background(), name); err != nil {
				return err
			}
		}
	}
	return run()
}

// PutIfAbsent implements Store.
func (f *Faulty) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	return f.do(OpPutIfAbsent, name,
		func() error { return f.Inner.PutIfAbsent(ctx, name, data) },
		func() error { return f.Inner.PutIfAbsent(ctx, name, data[:len(data)/2]) })
}

// Put implements Store.
func (f *Faulty) Put(ctx context.Context, name string, data []byte) error {
	return f.do(OpPut, name,
		func() error { return f.Inner.Put(ctx, name, data) },
		func() error { return f.Inner.Put(ctx, name, data[:len(data)/2]) })
}

// Create implements Store.
func (f *Faulty) Create(ctx context.Context, name string) (Writer, error) {
	var w Writer
	err := f.do(OpCreate, name, func() (err error) { w, err = f.Inner.Create(ctx, name); return err }, nil)
	if err != nil {
		if w != nil {
			_ = w.Close()
		}
		return nil, err
	}
	return &faultyWriter{f, name, w}, nil
}

type faultyWriter struct {
	store *Faulty
	name  string
	inner Writer
}

func (w *faultyWriter) Write(p []byte) (n int, err error) {
	err = w.store.do(OpWrite, w.name,
		func() (err error) { n, err = w.inner.Write(p); return err },
		func() (err error) {
			n, err = w.inner.Write(p[:len(p)/2])
			if err == nil {
				err = w.inner.Close()
			}
			return err
		})
	return n, err
}

func (w *faultyWriter) Close() error {
	return w.store.do(OpClose, w.name, w.inner.Close, nil)
}

// Abort does nothing after a crash: a dead process doesn't tidy up.
func (w *faultyWriter) Abort() {
	w.store.mu.Lock()
	crashed := w.store.crashed
	w.store.mu.Unlock()
	if !crashed {
		w.inner.Abort()
	}
}

// Sync implements Store.
func (f *Faulty) Sync(ctx context.Context, names ...string) error {
	name := ""
	if len(names) > 0 {
		name = names[0]
	}
	return f.do(OpSync, name, func() error { return f.Inner.Sync(ctx, names...) }, nil)
}

// Get implements Store.
func (f *Faulty) Get(ctx context.Context, name string) (data []byte, err error) {
	err = f.do(OpGet, name, func() (err error) { data, err = f.Inner.Get(ctx, name); return err }, nil)
	return data, err
}

// GetRange implements Store.
func (f *Faulty) GetRange(ctx context.Context, name string, off, n int64) (data []byte, err error) {
	err = f.do(OpGet, name, func() (err error) { data, err = f.Inner.GetRange(ctx, name, off, n); return err }, nil)
	return data, err
}

// Stat implements Store.
func (f *Faulty) Stat(ctx context.Context, name string) (info Info, err error) {
	err = f.do(OpStat, name, func() (err error) { info, err = f.Inner.Stat(ctx, name); return err }, nil)
	return info, err
}

// Delete implements Store.
func (f *Faulty) Delete(ctx context.Context, name string) error {
	return f.do(OpDelete, name, func() error { return f.Inner.Delete(ctx, name) }, nil)
}

// List implements Store. A fault ends it before the first object.
func (f *Faulty) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := f.do(OpList, prefix, func() error { return nil }, nil); err != nil {
			yield(Info{}, err)
			return
		}
		f.Inner.List(ctx, prefix, after)(yield)
	}
}
