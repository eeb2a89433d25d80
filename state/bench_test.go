package state_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// benchKeys is the number of keys that counting benchmarks spread over.
const benchKeys = 1_000_000

// benchCommit is the number of records between commits: about 100 ms worth.
const benchCommit = 20_000

// BenchmarkCount counts per key: a get and a put for each record, a commit for every 20,000, with the changelog read as an engine would.
// Run it with -benchtime=3000000x to have the store filled.
func BenchmarkCount(b *testing.B) {
	for _, backend := range backends {
		for _, policy := range []state.Policy{state.EveryWrite, state.LastPerKeyPerCommit} {
			name := backend.name + "/every-write"
			if policy == state.LastPerKeyPerCommit {
				name = backend.name + "/last-per-key"
			}
			b.Run(name, func(b *testing.B) {
				db := benchOpen(b, backend.name, []state.Spec{{Name: "st", Kind: state.TimestampedKeyValue, Logged: true}}, policy)
				defer db.Close()
				s, err := db.KeyValueBytes("st")
				must(b, err)
				benchCount(b, db, s)
			})
		}
	}
}

func benchOpen(b *testing.B, name string, specs []state.Spec, policy state.Policy) *state.DB {
	opt := state.Options{Policy: policy, Log: quiet}
	if name == "memory" {
		db, err := state.OpenMemory(specs, opt)
		must(b, err)
		return db
	}
	res := state.NewResources(state.ResourceOptions{CacheBytes: 256 << 20})
	db, err := state.OpenPebble(b.TempDir(), specs, res, opt)
	must(b, err)
	b.Cleanup(func() { must(b, res.Close()) })
	return db
}

func benchCount(b *testing.B, db *state.DB, s state.KeyValueBytes) {
	var key, buf []byte
	rnd := rand.New(rand.NewPCG(1, 2))
	records := 0
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		key = binary.BigEndian.AppendUint64(key[:0], rnd.Uint64N(benchKeys))
		got, _, ok, err := s.Get(key, buf[:0])
		if err != nil {
			b.Fatal(err)
		}
		n := uint64(1)
		if ok {
			n += binary.BigEndian.Uint64(got)
		}
		buf = binary.BigEndian.AppendUint64(got[:0], n)
		if err := s.Put(key, buf, int64(i)); err != nil {
			b.Fatal(err)
		}
		if i%benchCommit == benchCommit-1 {
			records += benchApply(b, db)
		}
	}
	records += benchApply(b, db)
	b.ReportMetric(float64(records)/float64(b.N), "changelog-records/op")
}

func benchApply(b *testing.B, db *state.DB) (records int) {
	gen, err := db.Seal()
	must(b, err)
	for range gen.Changelog() {
		records++
	}
	must(b, gen.Apply([]int64{1}, nil))
	return records
}

// BenchmarkRestore restores a key-value store from a changelog of which each key has one record.
func BenchmarkRestore(b *testing.B) {
	for _, bulk := range []bool{false, true} {
		b.Run(fmt.Sprintf("bulk %v", bulk), func(b *testing.B) {
			db := benchOpen(b, "pebble", []state.Spec{{Name: "st", Kind: state.TimestampedKeyValue, Logged: true}}, state.EveryWrite)
			defer db.Close()
			if bulk {
				must(b, db.BeginRestore("st"))
			}
			const batch = 5000
			records := make([]state.RestoreRecord, batch)
			n := uint64(0)
			for b.Loop() {
				for i := range records {
					n++
					records[i].Key = binary.BigEndian.AppendUint64(records[i].Key[:0], n*0x9e3779b97f4a7c15)
					records[i].Value = binary.BigEndian.AppendUint64(records[i].Value[:0], n)
				}
				must(b, db.Restore("st", records, int64(n)))
			}
			must(b, db.EndRestore("st"))
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkTyped counts per key through the typed facade.
func BenchmarkTyped(b *testing.B) {
	db := benchOpen(b, "memory", []state.Spec{{Name: "st", Kind: state.TimestampedKeyValue, Logged: true}}, state.LastPerKeyPerCommit)
	defer db.Close()
	s, err := state.NewTimestampedKeyValue(db, "st", serde.NewCodec(serde.String), serde.NewCodec(serde.Int64))
	must(b, err)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = "key-" + string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		key := keys[i%len(keys)]
		n, _, _, err := s.Get(key)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Put(key, n+1, int64(i)); err != nil {
			b.Fatal(err)
		}
		if i%benchCommit == benchCommit-1 {
			benchApply(b, db)
		}
	}
}

// BenchmarkWindowFetch puts a record into a window store and scans the last ten windows of its key, as joins do.
func BenchmarkWindowFetch(b *testing.B) {
	for _, backend := range backends {
		b.Run(backend.name, func(b *testing.B) {
			spec := state.Spec{Name: "st", Kind: state.Window, RetentionMs: 600_000, RetainDuplicates: true, Logged: true}
			db := benchOpen(b, backend.name, []state.Spec{spec}, state.LastPerKeyPerCommit)
			defer db.Close()
			s, err := db.WindowBytes("st")
			must(b, err)
			benchWindowFetch(b, db, s)
		})
	}
}

func benchWindowFetch(b *testing.B, db *state.DB, s state.WindowBytes) {
	var key []byte
	rnd := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 50)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now := int64(i / 100)
		key = binary.BigEndian.AppendUint64(key[:0], rnd.Uint64N(10_000))
		if _, err := s.Put(key, value, now, 0); err != nil {
			b.Fatal(err)
		}
		it, err := s.Fetch(key, now-1000, now, state.Forward)
		must(b, err)
		for it.Next() {
			_ = it.Value()
		}
		must(b, it.Close())
		if i%benchCommit == benchCommit-1 {
			benchApply(b, db)
		}
	}
}
