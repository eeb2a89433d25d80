package delta

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tributary-io/tributary/lake/object"
)

// Table is one Delta table on a store whose root is the table's root (the folder that holds _delta_log). It is safe for
// concurrent use; commits and refreshes of one Table run one after the other. Any number of Tables, in any number of
// processes and of any make, may write the same table.
type Table struct {
	store object.Store
	opts  Options
	sleep func(context.Context, time.Duration) error // between tries

	mu    sync.Mutex // held over commits and refreshes
	state state
	head  *Head // guarded by headMu too, so that Head never waits for a commit

	headMu   sync.RWMutex
	damaged  []string // checkpoints that turned out so; guarded by headMu
	maintain maintenance
}

// Options are what a process gives to its tables.
type Options struct {
	// Now is the wall clock; nil means time.Now. It stamps commits and decides on log clean-up; no correctness rests on it.
	Now func() time.Time
	// Logger gets lost races, fall-backs and clean-ups; nil means none.
	Logger *slog.Logger
	// Engine is the commits' engineInfo; "" means "Tributary".
	Engine string
	// NewID makes unique ids; nil means random UUIDs. For tests that need the same bytes each time.
	NewID func() string
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Engine == "" {
		o.Engine = "Tributary"
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	return o
}

// Spec is a table to be created.
type Spec struct {
	Schema           *StructType
	PartitionColumns []string          // top-level columns of primitive types
	Name             string            // optional
	Description      string            // the table's comment
	Configuration    map[string]string // table properties. delta.checkpointInterval is set to 100 unless given
}

// Errors of Open and Create. Test with errors.Is.
var (
	ErrNoTable     = errors.New("no Delta table here")
	ErrTableExists = errors.New("a Delta table is here already")
)

// Open opens an existing table as a writer needs it: the newest version checksum and the commits after it, or, failing that,
// the newest good checkpoint without its file list. It is an error if the protocol forbids this package to read the table
// (*UnsupportedError); whether it may write it is told by Head.CheckWrite.
func Open(ctx context.Context, store object.Store, opts Options) (*Table, error) {
	t := newTable(store, opts)
	if _, err := t.Refresh(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

func newTable(store object.Store, opts Options) *Table {
	return &Table{store: store, opts: opts.withDefaults(), sleep: wait}
}

// OpenOrCreate opens the table, or creates it where there is none. A race between creators has one winner; the others open
// what it made, and must check that it suits them.
func OpenOrCreate(ctx context.Context, store object.Store, spec Spec, opts Options) (t *Table, created bool, err error) {
	t, err = Open(ctx, store, opts)
	if !errors.Is(err, ErrNoTable) {
		return t, false, err
	}
	t, err = Create(ctx, store, spec, opts)
	if errors.Is(err, ErrTableExists) {
		t, err = Open(ctx, store, opts)
		return t, false, err
	}
	return t, err == nil, err
}

// Store returns the store that the table lies in, for writing data files.
func (t *Table) Store() object.Store { return t.store }

// Head returns the newest version that this Table has seen. It does no I/O and never waits.
func (t *Table) Head() *Head {
	t.headMu.RLock()
	defer t.headMu.RUnlock()
	return t.head
}
