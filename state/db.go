package state

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

// Options are how a DB behaves.
type Options struct {
	// Policy says which changelog records a generation gives.
	Policy Policy
	// Alone says that one goroutine does all with the DB, its views and its generations, so that stores in memory need no locks.
	Alone bool
	// Log takes the database's own messages. Default: slog.Default().
	Log *slog.Logger
}

// DB holds the stores of one task.
//
// It belongs to the task: stores, Bind, Seal, Drop, Restore and Close are called by one goroutine at a time. Generation.Apply may run
// beside reads and writes of the stores; View and what it gives may be used from anywhere.
type DB struct {
	opt      Options
	stores   []*store
	byName   map[string]*store
	pebble   *pebbleBase // nil if everything is in memory
	filling  frontFill
	ctx      *Context
	gen      Generation
	overlays *overlayPool
	pending  atomic.Bool // a sealed generation has been neither applied nor dropped
	taskMeta []byte
	metaMu   sync.Mutex // guards taskMeta

	bulkBytes   int64
	unflushed   int // bytes committed to Pebble since flushAtRest
	openCursors atomic.Int64
	views       sync.RWMutex // held for reading by views, for writing to close
	closed      bool
}

// OpenMemory opens a DB that keeps everything in memory. Its stores have the semantics that their specs ask for, those of
// persistent stores included.
func OpenMemory(specs []Spec, opt Options) (*DB, error) {
	db, err := newDB(specs, nil, opt)
	if err != nil {
		return nil, err
	}
	for i, s := range db.stores {
		s.id = uint16(i + minStoreID)
		s.useMemory()
	}
	return db, db.makeKinds()
}

// OpenPebble opens or creates the database in dir. In-memory stores among specs start empty.
//
// Errors: ErrLocked if the database is open already; ErrCorruption or ErrIncompatible if it must be set aside and restored.
//
// A disk that refuses writes, when it is full for instance, ends the process: Pebble can't go on then. What is on disk stays a prefix of
// the changelog.
func OpenPebble(dir string, specs []Spec, res *Resources, opt Options) (*DB, error) {
	db, err := newDB(specs, &res.overlays, opt)
	if err != nil {
		return nil, err
	}
	if db.pebble, err = openPebbleBase(dir, res, db.opt.Log); err != nil {
		return nil, err
	}
	for _, s := range db.stores {
		if s.spec.InMemory {
			s.useMemory()
		} else {
			s.base = db.pebble
		}
	}
	if err := db.loadCatalog(); err != nil {
		return nil, errors.Join(err, db.pebble.close())
	}
	if err := db.openFronts(); err != nil {
		db.closeFronts()
		return nil, errors.Join(err, db.pebble.close())
	}
	if err := db.makeKinds(); err != nil {
		db.closeFronts()
		return nil, errors.Join(err, db.pebble.close())
	}
	return db, nil
}

// newDB makes a DB without a database. overlays is nil if its stores are to have write buffers of their own.
func newDB(specs []Spec, overlays *overlayPool, opt Options) (*DB, error) {
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	db := &DB{opt: opt, byName: map[string]*store{}, ctx: &Context{}, bulkBytes: defaultBulkBytes, overlays: overlays}
	db.gen.db = db
	var errs []error
	for i := range specs {
		if err := specs[i].Validate(); err != nil {
			errs = append(errs, err)
		}
		s := &store{db: db, idx: i, spec: specs[i], open: newOverlay(overlays), cur: emptyMeta(), baseMeta: emptyMeta(), expiredTo: minExpired}
		s.committed.Store(-1)
		if db.byName[s.spec.Name] != nil {
			errs = append(errs, fmt.Errorf("store %q is declared twice", s.spec.Name))
		}
		db.byName[s.spec.Name] = s
		db.stores = append(db.stores, s)
	}
	if len(specs) > maxStoreID {
		errs = append(errs, fmt.Errorf("%d stores in one task, at most %d are possible", len(specs), maxStoreID))
	}
	return db, errors.Join(errs...)
}

func (s *store) useMemory() {
	s.mem = newMemoryBase()
	s.mem.alone = s.db.opt.Alone
	s.base = s.mem
}

func (db *DB) makeKinds() error {
	for _, s := range db.stores {
		s.impl = newKind(s, false)
		if err := s.impl.dropped(); err != nil { // lets it build what it keeps in memory
			return err
		}
	}
	return nil
}

// Bind tells the DB where to find the record being processed. ctx is read at each write.
func (db *DB) Bind(ctx *Context) { db.ctx = ctx }

// Spec gives the declaration of the store with that name.
func (db *DB) Spec(name string) (Spec, bool) {
	s, ok := db.byName[name]
	if !ok {
		return Spec{}, false
	}
	return s.spec, true
}

// Stores gives the declarations in the order in which they were given to Open, which is what ChangelogRecord.Store and the offsets of
// Generation.Apply refer to.
func (db *DB) Stores() []Spec {
	specs := make([]Spec, len(db.stores))
	for i, s := range db.stores {
		specs[i] = s.spec
	}
	return specs
}

// Offset is the next offset of the store's changelog that is not contained in its committed state, or in what a bulk restore has
// gathered. ok is false if the store has to be restored from the beginning. It must not be called beside Generation.Apply.
func (db *DB) Offset(name string) (next int64, ok bool) {
	s := db.byName[name]
	if s == nil {
		return 0, false
	}
	next = s.baseMeta.offset
	if s.bulk {
		next = s.cur.offset
	}
	return max(next, 0), next != NoOffset
}

// TaskMeta gives the bytes that the last applied generation carried, nil if none.
func (db *DB) TaskMeta() []byte {
	db.metaMu.Lock()
	defer db.metaMu.Unlock()
	return slices.Clone(db.taskMeta)
}

// BufferedBytes is the memory that uncommitted writes take.
func (db *DB) BufferedBytes() int64 {
	var n int64
	for _, s := range db.stores {
		n += s.open.size()
		if o := s.sealed.Load(); o != nil {
			n += o.size()
		}
	}
	return n
}

// MemoryBytes is the size of keys and values of stores that are kept in memory, without what is uncommitted.
func (db *DB) MemoryBytes() int64 {
	var n int64
	for _, s := range db.stores {
		if s.mem != nil {
			_, b := s.mem.size()
			n += b
		}
	}
	return n
}

// ErrLeaked says that iterators were still open when a DB was closed.
var ErrLeaked = errors.New("state: iterators were left open")

// Close drops what is uncommitted and closes the database. It waits for views to be closed. Iterators left open are an error
// (ErrLeaked), and are useless afterwards.
func (db *DB) Close() error {
	db.views.Lock()
	defer db.views.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	var leaked error
	if n := db.openCursors.Load(); n > 0 {
		leaked = fmt.Errorf("%d of them: %w", n, ErrLeaked)
	}
	db.dropRecordCaches()
	if db.pebble == nil {
		return leaked
	}
	db.closeFronts()
	return errors.Join(leaked, db.pebble.close())
}

// CloseWithout closes the DB and leaves nothing of some of its stores on disk, so that they are restored from the beginning when it is opened
// again. The others keep what is committed.
func (db *DB) CloseWithout(names ...string) error {
	if db.pebble == nil {
		return db.Close()
	}
	batch := db.pebble.db.NewBatch()
	defer batch.Close()
	for _, name := range names {
		s := db.byName[name]
		if s == nil {
			return &LookupError{Store: name, Want: "any kind"}
		}
		if err := batch.DeleteRange(appendPrefix(nil, s.id, classMeta), appendPrefix(nil, s.id+1, classMeta), nil); err != nil {
			return db.pebble.wrap("empty store "+name, err)
		}
	}
	if err := db.commitBatch(batch, nil); err != nil {
		return err
	}
	return db.Close()
}

// View shows committed state, from any goroutine, while the task goes on. Each use of a store sees what is committed at that moment.
// It must be closed soon: closing the DB waits for it.
type View struct {
	db   *DB
	once sync.Once
}

// ErrClosed is the error of asking a closed DB for a view.
var ErrClosed = errors.New("state: database is closed")

// View opens a view.
func (db *DB) View() (*View, error) {
	db.views.RLock()
	if db.closed {
		db.views.RUnlock()
		return nil, ErrClosed
	}
	return &View{db: db}, nil
}

// Close releases the view. Its iterators must be closed before.
func (v *View) Close() { v.once.Do(v.db.views.RUnlock) }

// Spec gives the declaration of the store with that name.
func (v *View) Spec(name string) (Spec, bool) { return v.db.Spec(name) }
