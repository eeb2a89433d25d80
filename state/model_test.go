package state_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/state"
)

// The property tests run random writes, commits, aborts, restarts and restores on a store, and compare what it shows with a simple model
// each time.

// model is a store as maps and sorting make it.
type model interface {
	clone() model
	// write does a random write to the store and to the model.
	write(t *rapid.T, db *state.DB)
	// check reads the store at random and compares.
	check(t *rapid.T, s state.Stores)
}

type modelRun struct {
	t        *rapid.T
	spec     state.Spec
	opt      state.Options
	dir      string // of Pebble; empty: in memory
	res      *state.Resources
	db       *state.DB
	ctx      state.Context
	gen      *state.Generation
	empty    func() model
	rebuilds int
	open     model
	saved    model // at the savepoint, nil without one
	sealed   model
	base     model

	sealedLog []state.RestoreRecord
	log       []state.RestoreRecord // what has been committed
}

func checkModel(t *testing.T, spec state.Spec, empty func() model) {
	spec.Name, spec.Logged = "st", true
	for _, policy := range []state.Policy{state.EveryWrite, state.LastPerKeyPerCommit} {
		for _, onDisk := range []bool{false, true} {
			t.Run(fmt.Sprintf("policy %d/pebble %v", policy, onDisk), func(t *testing.T) {
				res := state.NewResources(state.ResourceOptions{CacheBytes: 8 << 20})
				res.UseMemFS()
				n := 0
				rapid.Check(t, func(rt *rapid.T) {
					r := &modelRun{t: rt, spec: spec, opt: state.Options{Policy: policy, Log: quiet}, res: res, empty: empty}
					if n++; onDisk {
						r.dir = fmt.Sprint("db", n)
					}
					r.run()
				})
				must(t, res.Close())
			})
		}
	}
}

func (r *modelRun) run() {
	r.openDB()
	r.base = r.empty()
	r.open = r.base.clone()
	defer func() { r.must(r.db.Close()) }()
	r.t.Repeat(map[string]func(*rapid.T){
		"write":   func(t *rapid.T) { r.writeSome(t) },
		"write2":  func(t *rapid.T) { r.writeSome(t) },
		"check":   func(t *rapid.T) { r.open.check(t, r.db) },
		"view":    r.checkView,
		"seal":    r.seal,
		"apply":   func(t *rapid.T) { r.apply() },
		"drop":    r.drop,
		"save":    r.savepoint,
		"back":    r.rollBack,
		"reopen":  r.reopen,
		"rebuild": r.rebuild,
	})
}

func (r *modelRun) must(err error) {
	if err != nil {
		r.t.Fatalf("%v", err)
	}
}

func (r *modelRun) openDB() {
	var err error
	if r.dir == "" {
		r.db, err = state.OpenMemory([]state.Spec{r.spec}, r.opt)
	} else {
		r.db, err = state.OpenPebble(r.dir, []state.Spec{r.spec}, r.res, r.opt)
	}
	r.must(err)
	r.db.Bind(&r.ctx)
}

func (r *modelRun) writeSome(t *rapid.T) {
	for range rapid.IntRange(1, 5).Draw(t, "writes") {
		r.ctx.Timestamp = int64(rapid.IntRange(0, 1000).Draw(t, "now"))
		r.open.write(t, r.db)
	}
}

func (r *modelRun) checkView(t *rapid.T) {
	v, err := r.db.View()
	r.must(err)
	defer v.Close()
	r.base.check(t, v)
}

func (r *modelRun) seal(*rapid.T) {
	r.apply()
	gen, err := r.db.Seal()
	r.must(err)
	if _, err := r.db.Seal(); err != state.ErrSealed {
		r.t.Fatalf("a second seal gave %v", err)
	}
	r.gen, r.sealed, r.sealedLog, r.saved = gen, r.open.clone(), nil, nil
	for rec := range gen.Changelog() {
		r.sealedLog = append(r.sealedLog, state.RestoreRecord{Key: bytes.Clone(rec.Key), Value: bytes.Clone(rec.Value),
			Timestamp: rec.Timestamp, Headers: rec.Headers})
	}
	if r.opt.Policy == state.LastPerKeyPerCommit && r.spec.Kind != state.Versioned {
		r.checkOncePerKey()
	}
}

func (r *modelRun) checkOncePerKey() {
	seen := map[string]int{}
	for i, rec := range r.sealedLog {
		if at, dup := seen[string(rec.Key)]; dup && !r.expiredLater(rec) {
			r.t.Fatalf("key %x is in the changelog twice, at %d and %d", rec.Key, at, i)
		}
		seen[string(rec.Key)] = i
	}
}

// expiredLater tells whether a record is of a kind that may be refused; what is refused is logged each time.
func (r *modelRun) expiredLater(state.RestoreRecord) bool {
	return r.spec.RetentionMs > 0
}

func (r *modelRun) apply() {
	if r.gen == nil {
		return
	}
	log := append(slices.Clip(r.log), r.sealedLog...)
	r.must(r.gen.Apply([]int64{int64(len(log))}, fmt.Appendf(nil, "%d records", len(log))))
	r.gen, r.base, r.log = nil, r.sealed, log
	r.checkOffset()
}

func (r *modelRun) checkOffset() {
	if next, ok := r.db.Offset("st"); !ok || next != int64(len(r.log)) {
		r.t.Fatalf("offset %d %v, want %d", next, ok, len(r.log))
	}
	if got, want := string(r.db.TaskMeta()), fmt.Sprintf("%d records", len(r.log)); got != want {
		r.t.Fatalf("task meta %q, want %q", got, want)
	}
}

func (r *modelRun) drop(*rapid.T) {
	r.must(r.db.Drop())
	r.gen, r.open, r.saved = nil, r.base.clone(), nil
}

func (r *modelRun) savepoint(*rapid.T) {
	if r.opt.Policy != state.EveryWrite || r.spec.Caching || r.spec.Kind == state.SuppressBuffer {
		return
	}
	r.db.Savepoint()
	r.saved = r.open.clone()
}

func (r *modelRun) rollBack(t *rapid.T) {
	if r.saved == nil {
		if err := r.db.RollBack(); err == nil {
			t.Fatal("rolled back without a savepoint")
		}
		return
	}
	r.must(r.db.RollBack())
	r.open = r.saved.clone()
	r.open.check(t, r.db)
}

func (r *modelRun) reopen(t *rapid.T) {
	if r.dir == "" {
		return
	}
	r.must(r.db.Close())
	r.openDB()
	r.gen, r.open, r.saved = nil, r.base.clone(), nil
	switch {
	case r.spec.InMemory:
		if _, ok := r.db.Offset("st"); ok {
			t.Fatal("an in-memory store remembers its offset")
		}
		r.restoreAll(t, r.db)
	case len(r.log) > 0:
		r.checkOffset()
	}
	r.open.check(t, r.db)
}

// rebuild restores another database from the changelog, on disk in bulk.
func (r *modelRun) rebuild(t *rapid.T) {
	var db *state.DB
	var err error
	if r.dir == "" {
		db, err = state.OpenMemory([]state.Spec{r.spec}, r.opt)
	} else {
		r.rebuilds++
		db, err = state.OpenPebble(fmt.Sprint(r.dir, "-rebuilt-", r.rebuilds), []state.Spec{r.spec}, r.res, r.opt)
	}
	r.must(err)
	db.SetBulkBytes(int64(rapid.IntRange(1, 2000).Draw(t, "bulk")))
	r.must(db.BeginRestore("st"))
	r.restoreAll(t, db)
	r.base.check(t, db)
	r.must(db.EndRestore("st"))
	if next, _ := db.Offset("st"); next != int64(len(r.log)) {
		t.Fatalf("restored up to %d of %d", next, len(r.log))
	}
	for range 3 {
		r.base.check(t, db)
	}
	r.must(db.Close())
}

func (r *modelRun) restoreAll(t *rapid.T, db *state.DB) {
	for at := 0; at < len(r.log); {
		n := rapid.IntRange(1, len(r.log)-at).Draw(t, "batch")
		r.must(db.Restore("st", r.log[at:at+n], int64(at+n)))
		at += n
	}
}

// Small keys that escape, share prefixes and collide.
var drawKey = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 'b', 0xff}), 0, 3), func(b []byte) string { return string(b) })

func drawValue(t *rapid.T) []byte {
	if rapid.IntRange(0, 3).Draw(t, "null") == 0 {
		return nil
	}
	return []byte(rapid.StringMatching("[a-z]{0,4}").Draw(t, "value"))
}

// drawBound draws a bound of a key range, nil for open.
func drawBound(t *rapid.T, label string) []byte {
	if rapid.Bool().Draw(t, label+" open") {
		return nil
	}
	return []byte(drawKey.Draw(t, label))
}

func inBounds(key string, from, to []byte) bool {
	return (from == nil || key >= string(from)) && (to == nil || key <= string(to))
}

func equal(t *rapid.T, what string, want, got []string) {
	if !slices.Equal(want, got) {
		t.Fatalf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func reversed(s []string, dir state.Direction) []string {
	if dir == state.Backward {
		s = slices.Clone(s)
		slices.Reverse(s)
	}
	return s
}

func fatal(t *rapid.T, err error) {
	if err != nil {
		t.Fatalf("%v", err)
	}
}
