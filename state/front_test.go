package state_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/state"
)

// TestFrontNeverLies commits, aborts, restores and reopens stores of many rows with little memory, so that rows leave it and filters are
// given up: whatever is in memory, gets say what was written.
func TestFrontNeverLies(t *testing.T) {
	for _, rows := range []int64{-1, 100 << 10, 64 << 20} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			res := state.NewResources(state.ResourceOptions{CacheBytes: 8 << 20, MaxMemtableBytes: 1 << 20, RowBytes: rows})
			res.UseMemFS()
			n := 0
			rapid.Check(t, func(t *rapid.T) {
				n++
				r := &frontRun{t: t, res: res, dir: fmt.Sprint("db", n), rnd: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))}
				r.run()
			})
			must(t, res.Close())
		})
	}
}

type frontRun struct {
	t   *rapid.T
	res *state.Resources
	dir string
	rnd *rand.Rand
	db  *state.DB
	// kv's rows; win's, of one window start a key.
	kv, win, openKV, openWin map[string]string
	now                      int64
	commits                  int64
}

const frontRetention = 100

func (r *frontRun) must(err error) {
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *frontRun) open() {
	db, err := state.OpenPebble(r.dir, []state.Spec{
		{Name: "kv", Kind: state.KeyValue, Logged: true},
		{Name: "win", Kind: state.Window, RetentionMs: frontRetention, SegmentIntervalMs: 20, Logged: true},
	}, r.res, state.Options{Policy: state.LastPerKeyPerCommit, Log: quiet})
	r.must(err)
	r.db = db
	r.revert()
}

func (r *frontRun) revert() {
	r.openKV, r.openWin = clone(r.kv), clone(r.win)
}

func clone(m map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func (r *frontRun) run() {
	r.open()
	for range 60 {
		switch n := r.rnd.IntN(20); {
		case n == 0:
			r.must(r.db.Close())
			r.open()
		case n == 1:
			r.must(r.db.Drop())
			r.revert()
		case n == 2:
			r.must(r.db.Drop())
			r.revert()
			r.restore()
		case n < 10:
			r.commit()
		default:
			r.write()
			r.check()
		}
	}
	r.must(r.db.Close())
}

func (r *frontRun) key() []byte { return fmt.Appendf(nil, "key %d", r.rnd.IntN(3000)) }

func (r *frontRun) value() []byte {
	n := r.rnd.IntN(60)
	if r.rnd.IntN(50) == 0 {
		n = r.rnd.IntN(8000)
	}
	return append(bytes.Repeat([]byte{'v'}, n), byte(r.rnd.Uint32()), byte(r.rnd.Uint32()))
}

func (r *frontRun) write() {
	kv, err := r.db.KeyValueBytes("kv")
	r.must(err)
	win, err := r.db.WindowBytes("win")
	r.must(err)
	for range r.rnd.IntN(300) {
		key, value := r.key(), r.value()
		if r.rnd.IntN(6) == 0 {
			value = nil
		}
		r.must(kv.Put(key, value, 0))
		put(r.openKV, string(key), value)
		r.now += int64(r.rnd.IntN(50) / 49)
		_, err := win.Put(key, value, r.now, 0)
		r.must(err)
		put(r.openWin, fmt.Sprintf("%s@%d", key, r.now), value)
	}
}

func put(m map[string]string, key string, value []byte) {
	if value == nil {
		delete(m, key)
		return
	}
	m[key] = string(value)
}

func (r *frontRun) check() {
	kv, err := r.db.KeyValueBytes("kv")
	r.must(err)
	win, err := r.db.WindowBytes("win")
	r.must(err)
	for range 200 {
		key := r.key()
		got, _, ok, err := kv.Get(key, nil)
		r.must(err)
		if want, there := r.openKV[string(key)]; ok != there || string(got) != want {
			r.t.Fatalf("%s: %d bytes %v, want %d bytes %v", key, len(got), ok, len(want), there)
		}
		start := win.StreamTime() - int64(r.rnd.IntN(frontRetention))
		if start < 0 {
			continue
		}
		got, _, ok, err = win.Get(key, start, nil)
		r.must(err)
		if want, there := r.openWin[fmt.Sprintf("%s@%d", key, start)]; ok != there || string(got) != want {
			r.t.Fatalf("%s at %d: %d bytes %v, want %d bytes %v", key, start, len(got), ok, len(want), there)
		}
	}
}

func (r *frontRun) commit() {
	gen, err := r.db.Seal()
	r.must(err)
	if r.rnd.IntN(2) == 0 {
		r.check()
	}
	r.commits++
	r.must(gen.Apply([]int64{r.commits, r.commits}, nil))
	r.kv, r.win = clone(r.openKV), clone(r.openWin)
}

// restore puts some rows as a changelog would, in bulk or not.
func (r *frontRun) restore() {
	bulk := r.rnd.IntN(2) == 0
	if bulk {
		r.must(r.db.BeginRestore("kv"))
	}
	var records []state.RestoreRecord
	for range r.rnd.IntN(500) {
		record := state.RestoreRecord{Key: r.key(), Value: r.value()}
		if r.rnd.IntN(6) == 0 {
			record.Value = nil
		}
		put(r.openKV, string(record.Key), record.Value)
		records = append(records, record)
	}
	r.commits++
	r.must(r.db.Restore("kv", records, r.commits))
	if bulk {
		r.must(r.db.EndRestore("kv"))
	}
	r.kv = clone(r.openKV)
}

// TestRowsOfIDs sees that few rows are kept of ids that aren't asked for again, and none of other stores is given up.
func TestRowsOfIDs(t *testing.T) {
	rowsOf := func(writtenOnce bool) int64 {
		res := state.NewResources(state.ResourceOptions{RowBytes: 4 << 20})
		db, err := state.OpenPebble(t.TempDir(), []state.Spec{{Name: "ids", Kind: state.KeyValue, WrittenOnce: writtenOnce}}, res, state.Options{Log: quiet})
		must(t, err)
		ids, err := db.KeyValueBytes("ids")
		must(t, err)
		for n := range 50_000 {
			must(t, ids.Put(fmt.Appendf(nil, "id %d", n), []byte("seen"), 0))
			if n%1000 == 999 {
				gen, err := db.Seal()
				must(t, err)
				must(t, gen.Apply(nil, nil))
			}
		}
		bytes := res.RowBytes()
		must(t, db.Close())
		must(t, res.Close())
		return bytes
	}
	if all, few := rowsOf(false), rowsOf(true); all < 1<<20 || few > all/2 {
		t.Errorf("rows and filters of ids take %d bytes, of other keys %d", few, all)
	}
}

// TestFrontForgetsWhatExpires has rows expire in the generation in which they are written: what is in memory isn't there longer than in the database,
// though a store that coalesces its updates doesn't hide it.
func TestFrontForgetsWhatExpires(t *testing.T) {
	specs := []state.Spec{{Name: "win", Kind: state.Window, RetentionMs: 100, SegmentIntervalMs: 100, Caching: true}}
	db := openPebble(t, t.TempDir(), specs, state.Options{})
	win, err := db.WindowBytes("win")
	must(t, err)
	commit := func(start int64) {
		_, err := win.Put([]byte("key"), []byte("v"), start, start)
		must(t, err)
		gen, err := db.Seal()
		must(t, err)
		must(t, gen.Apply(nil, nil))
	}
	_, err = win.Put([]byte("key"), []byte("v"), 0, 0)
	must(t, err)
	commit(10_000)
	commit(10_001)
	if _, _, ok, err := win.Get([]byte("key"), 0, nil); err != nil || ok {
		t.Errorf("a row that has expired in the database: found %v, %v", ok, err)
	}
	if _, _, ok, err := win.Get([]byte("key"), 10_000, nil); err != nil || !ok {
		t.Errorf("a row that hasn't expired: found %v, %v", ok, err)
	}
}

// TestRowsMakeRoom has one database's rows give up what another one's need, though nothing is written that isn't there.
func TestRowsMakeRoom(t *testing.T) {
	const budget = 2 << 20
	res := state.NewResources(state.ResourceOptions{RowBytes: budget})
	res.UseMemFS()
	open := func(dir string) *state.DB {
		db, err := state.OpenPebble(dir, []state.Spec{{Name: "kv", Kind: state.KeyValue}}, res, state.Options{Log: quiet})
		must(t, err)
		return db
	}
	fill := func(db *state.DB) {
		kv, err := db.KeyValueBytes("kv")
		must(t, err)
		for n := range 50_000 {
			must(t, kv.Put(fmt.Appendf(nil, "key %d", n), []byte("v"), 0))
		}
		gen, err := db.Seal()
		must(t, err)
		must(t, gen.Apply(nil, nil))
	}
	first := open("first")
	fill(first)
	before := res.RowBytes()
	others := make([]*state.DB, 7)
	for i := range others {
		others[i] = open(fmt.Sprint("other", i))
	}
	if n := res.RowBytes(); before < budget/2 || n > budget/8 {
		t.Errorf("one database's rows take %d bytes, and %d when seven more are open", before, n)
	}
	for _, db := range append(others, first) {
		fill(db)
	}
	if n := res.RowBytes(); n > budget {
		t.Errorf("rows of eight databases take %d bytes, more than %d", n, budget)
	}
	for _, db := range append(others, first) {
		must(t, db.Close())
	}
	if n := res.RowBytes(); n != 0 {
		t.Errorf("rows of closed databases take %d bytes", n)
	}
	must(t, res.Close())
}

// TestFrontAfterReopening has a store's keys in its filter again some time after it is opened.
func TestFrontAfterReopening(t *testing.T) {
	dir := t.TempDir()
	specs := []state.Spec{{Name: "kv", Kind: state.KeyValue, Logged: true}}
	db := openPebble(t, dir, specs, state.Options{})
	kv, err := db.KeyValueBytes("kv")
	must(t, err)
	for n := range 5000 {
		must(t, kv.Put(fmt.Appendf(nil, "key %d", n), []byte("v"), 0))
	}
	gen, err := db.Seal()
	must(t, err)
	must(t, gen.Apply([]int64{1}, nil))
	if asked := db.AskedBase("kv", "absent"); asked {
		t.Error("a new store's database was asked for a key that isn't there")
	}
	must(t, db.Close())

	db = openPebble(t, dir, specs, state.Options{})
	db.AwaitFill()
	if asked := db.AskedBase("kv", "absent"); asked {
		t.Error("the database was asked for a key that isn't there")
	}
	for n := range 5000 {
		if !db.AskedBase("kv", fmt.Sprint("key ", n)) {
			t.Fatalf("key %d counts as absent", n)
		}
	}
}
