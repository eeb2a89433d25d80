package state_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tributary-io/tributary/state"
)

// The scenarios in testdata/golden were produced by Kafka Streams 4.3.1 (TopologyTestDriver): a processor runs text commands on a
// store. They fix results, iteration order, expiry, dropped records and changelog bytes.

type goldenScenario struct {
	Name  string
	Notes string
	Store struct {
		Kind             string
		Type             string
		RetentionMs      int64
		WindowMs         int64
		HistoryMs        int64
		SegmentMs        int64
		RetainDuplicates bool
		MaxEntries       int
	}
	Steps []struct {
		Command   string
		Timestamp int64
	}
	Outputs   [][]string
	Dropped   int
	Stores    []map[string]any
	Changelog []goldenRecord
}

type goldenRecord struct {
	Step      int
	Key       *string
	Value     *string
	Timestamp int64
}

func (sc *goldenScenario) spec() state.Spec {
	kinds := map[string]state.Kind{
		"keyValue": state.KeyValue, "timestampedKeyValue": state.TimestampedKeyValue, "window": state.Window,
		"timestampedWindow": state.TimestampedWindow, "session": state.Session, "versioned": state.Versioned,
	}
	return state.Spec{
		Name: "st", Kind: kinds[sc.Store.Kind], InMemory: sc.Store.Type == "inMemory" || sc.Store.Type == "lru",
		RetentionMs: sc.Store.RetentionMs, WindowSizeMs: sc.Store.WindowMs, HistoryMs: sc.Store.HistoryMs,
		SegmentIntervalMs: sc.Store.SegmentMs, RetainDuplicates: sc.Store.RetainDuplicates, MaxEntries: sc.Store.MaxEntries, Logged: true,
	}
}

func loadGolden(t *testing.T) []goldenScenario {
	files, err := filepath.Glob("testdata/golden/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	var out []goldenScenario
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var sc goldenScenario
		if err := json.Unmarshal(data, &sc); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out = append(out, sc)
	}
	return out
}

func TestGolden(t *testing.T) {
	for _, sc := range loadGolden(t) {
		for _, backend := range backends {
			for _, commit := range []string{"each step", "sealed behind", "never"} {
				t.Run(sc.Name+"/"+backend.name+"/commit "+commit, func(t *testing.T) {
					runGolden(t, &sc, backend, commit)
				})
			}
		}
	}
}

func runGolden(t *testing.T, sc *goldenScenario, backend backend, commit string) {
	db := backend.open(t, []state.Spec{sc.spec()}, state.Options{})
	ctx := &state.Context{}
	db.Bind(ctx)
	run := &commandRunner{db: db, sc: sc}
	var log []goldenRecord
	want := slices.Clone(sc.Changelog)
	var sealed *state.Generation
	apply := func() {
		if sealed != nil {
			must(t, sealed.Apply(nil, nil))
			sealed = nil
		}
	}
	for i, step := range sc.Steps {
		ctx.Timestamp = step.Timestamp
		got, err := run.command(step.Command)
		if err != nil {
			t.Fatalf("step %d %q: %v", i, step.Command, err)
		}
		if d := cmp.Diff(sc.Outputs[i], got); d != "" {
			t.Errorf("step %d %q: %s", i, step.Command, d)
		}
		if commit == "never" {
			continue
		}
		apply() // with commits "sealed behind", the last step's generation was still sealed during this one
		gen, err := db.Seal()
		must(t, err)
		log = append(log, drain(gen, i)...)
		sealed = gen
		if commit == "each step" {
			apply()
		}
	}
	if run.dropped != sc.Dropped {
		t.Errorf("dropped %d records, want %d", run.dropped, sc.Dropped)
	}
	if d := cmp.Diff(sc.Stores, run.dump(t), cmpopts.SortSlices(func(a, b map[string]any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })); d != "" {
		t.Errorf("store: %s", d)
	}
	if commit == "never" {
		gen, err := db.Seal()
		must(t, err)
		log = drain(gen, 0)
		for i := range want {
			want[i].Step = 0
		}
		sealed = gen
	}
	apply()
	if d := cmp.Diff(want, log); d != "" {
		t.Errorf("changelog: %s", d)
	}
	must(t, db.Close())
}

func drain(gen *state.Generation, step int) []goldenRecord {
	var log []goldenRecord
	for r := range gen.Changelog() {
		rec := goldenRecord{Step: step, Timestamp: r.Timestamp, Key: b64(r.Key), Value: b64(r.Value)}
		log = append(log, rec)
	}
	return log
}

func b64(b []byte) *string {
	if b == nil {
		return nil
	}
	s := base64.StdEncoding.EncodeToString(b)
	return &s
}

// commandRunner runs the commands of FORMAT.md's storeCommands.
type commandRunner struct {
	db      *state.DB
	sc      *goldenScenario
	dropped int
	keys    []string // ever written to a versioned store
}

func (r *commandRunner) command(text string) ([]string, error) {
	args := strings.Split(text, " ")
	switch r.sc.Store.Kind {
	case "keyValue", "timestampedKeyValue":
		return r.keyValue(args[0], args[1:])
	case "window", "timestampedWindow":
		return r.window(args[0], args[1:])
	case "session":
		return r.session(args[0], args[1:])
	}
	return r.versioned(args[0], args[1:])
}

func arg(args []string, i int) []byte {
	if i >= len(args) || args[i] == "-" {
		return nil
	}
	return []byte(args[i])
}

func num(args []string, i int) int64 {
	if i >= len(args) {
		return 0
	}
	n, err := strconv.ParseInt(args[i], 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func lines(out []string) []string {
	if len(out) == 0 {
		return []string{"(none)"}
	}
	return out
}

func orNull(v []byte, ok bool) []string {
	if !ok {
		return []string{"null"}
	}
	return []string{string(v)}
}

func (r *commandRunner) keyValue(cmd string, args []string) ([]string, error) {
	s, err := r.db.KeyValueBytes("st")
	if err != nil {
		return nil, err
	}
	var it state.KeyValueIterator
	switch cmd {
	case "put":
		return []string{"ok"}, s.Put(arg(args, 0), arg(args, 1), num(args, 2))
	case "putIfAbsent":
		old, _, ok, err := s.PutIfAbsent(arg(args, 0), arg(args, 1), num(args, 2), nil)
		return orNull(old, ok), err
	case "putAll":
		var all []state.BytesEntry
		for i := 0; i+1 < len(args); i += 2 {
			all = append(all, state.BytesEntry{Key: arg(args, i), Value: arg(args, i+1)})
		}
		return []string{"ok"}, s.PutAll(all)
	case "delete":
		old, _, ok, err := s.Delete(arg(args, 0), nil)
		return orNull(old, ok), err
	case "get":
		v, _, ok, err := s.Get(arg(args, 0), nil)
		return orNull(v, ok), err
	case "count":
		n, err := s.ApproximateNumEntries()
		return []string{fmt.Sprintf("n=%d", n)}, err
	case "range":
		it, err = s.Range(arg(args, 0), arg(args, 1))
	case "reverseRange":
		it, err = s.ReverseRange(arg(args, 0), arg(args, 1))
	case "all":
		it, err = s.Range(nil, nil)
	case "reverseAll":
		it, err = s.ReverseRange(nil, nil)
	case "prefix":
		it, err = s.Prefix(arg(args, 0))
	default:
		return nil, fmt.Errorf("command %q", cmd)
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for it.Next() {
		out = append(out, fmt.Sprintf("%s=%s", it.Key(), it.Value()))
	}
	return lines(out), it.Close()
}

func direction(cmd string) state.Direction {
	return state.Direction(strings.HasPrefix(cmd, "backward"))
}

func (r *commandRunner) window(cmd string, args []string) ([]string, error) {
	s, err := r.db.WindowBytes("st")
	if err != nil {
		return nil, err
	}
	var it state.WindowIterator
	dir, one := direction(cmd), false
	switch cmd {
	case "put":
		expired, err := s.Put(arg(args, 0), arg(args, 1), num(args, 2), num(args, 3))
		if expired {
			r.dropped++
		}
		return []string{"ok"}, err
	case "get":
		v, _, ok, err := s.Get(arg(args, 0), num(args, 1), nil)
		return orNull(v, ok), err
	case "fetch", "backwardFetch":
		one = true
		it, err = s.Fetch(arg(args, 0), num(args, 1), num(args, 2), dir)
	case "fetchRange", "backwardFetchRange":
		it, err = s.FetchRange(arg(args, 0), arg(args, 1), num(args, 2), num(args, 3), dir)
	case "fetchAll", "backwardFetchAll":
		it, err = s.FetchAll(num(args, 0), num(args, 1), dir)
	case "all", "backwardAll":
		it, err = s.All(dir)
	default:
		return nil, fmt.Errorf("command %q", cmd)
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for it.Next() {
		if one {
			out = append(out, fmt.Sprintf("%d=%s", it.Start(), it.Value()))
		} else {
			out = append(out, fmt.Sprintf("%s@%d-%d=%s", it.Key(), it.Start(), it.Start()+r.sc.Store.WindowMs, it.Value()))
		}
	}
	return lines(out), it.Close()
}

func (r *commandRunner) session(cmd string, args []string) ([]string, error) {
	s, err := r.db.SessionBytes("st")
	if err != nil {
		return nil, err
	}
	var it state.SessionIterator
	dir := direction(cmd)
	switch cmd {
	case "put":
		expired, err := s.Put(arg(args, 0), arg(args, 1), num(args, 2), num(args, 3))
		if expired {
			r.dropped++
		}
		return []string{"ok"}, err
	case "remove":
		return []string{"ok"}, s.Remove(arg(args, 0), num(args, 1), num(args, 2))
	case "get":
		v, ok, err := s.Get(arg(args, 0), num(args, 1), num(args, 2), nil)
		return orNull(v, ok), err
	case "fetch", "backwardFetch":
		it, err = s.Fetch(arg(args, 0), dir)
	case "fetchRange", "backwardFetchRange":
		it, err = s.FetchRange(arg(args, 0), arg(args, 1), dir)
	case "findSessions", "backwardFindSessions":
		it, err = s.Find(arg(args, 0), num(args, 1), num(args, 2), dir)
	case "findSessionsRange", "backwardFindSessionsRange":
		it, err = s.FindRange(arg(args, 0), arg(args, 1), num(args, 2), num(args, 3), dir)
	default:
		return nil, fmt.Errorf("command %q", cmd)
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for it.Next() {
		out = append(out, fmt.Sprintf("%s@%d-%d=%s", it.Key(), it.Start(), it.End(), it.Value()))
	}
	return lines(out), it.Close()
}

func (r *commandRunner) versioned(cmd string, args []string) ([]string, error) {
	s, err := r.db.VersionedBytes("st")
	if err != nil {
		return nil, err
	}
	version := func(v state.BytesVersion, ok bool) []string {
		return orNull(fmt.Appendf(nil, "%s@%d", v.Value, v.ValidFrom), ok)
	}
	switch cmd {
	case "put":
		r.keys = append(r.keys, args[0])
		validTo, err := s.Put(arg(args, 0), arg(args, 1), num(args, 2))
		if validTo == state.VersionNotPut {
			r.dropped++
		}
		return []string{fmt.Sprintf("put=%d", validTo)}, err
	case "delete":
		r.keys = append(r.keys, args[0])
		if num(args, 1) < s.StreamTime()-r.sc.Store.HistoryMs {
			r.dropped++
		}
		v, ok, err := s.Delete(arg(args, 0), num(args, 1), nil)
		return version(v, ok), err
	case "get":
		if len(args) == 1 {
			v, ok, err := s.Get(arg(args, 0), nil)
			return version(v, ok), err
		}
		v, ok, err := s.GetAsOf(arg(args, 0), num(args, 1), nil)
		return version(v, ok), err
	}
	return nil, fmt.Errorf("command %q", cmd)
}

// dump gives the store's entries as the scenario does.
func (r *commandRunner) dump(t *testing.T) []map[string]any {
	out := []map[string]any{}
	switch r.sc.Store.Kind {
	case "keyValue":
		s, err := r.db.KeyValueBytes("st")
		must(t, err)
		it, err := s.Range(nil, nil)
		must(t, err)
		for it.Next() {
			out = append(out, map[string]any{"key": string(it.Key()), "value": string(it.Value())})
		}
		must(t, it.Close())
	case "window":
		s, err := r.db.WindowBytes("st")
		must(t, err)
		it, err := s.All(state.Forward)
		must(t, err)
		for it.Next() {
			out = append(out, map[string]any{"key": string(it.Key()), "start": float64(it.Start()),
				"end": float64(it.Start() + r.sc.Store.WindowMs), "value": string(it.Value())})
		}
		must(t, it.Close())
	case "session":
		s, err := r.db.SessionBytes("st")
		must(t, err)
		it, err := s.FetchRange(nil, nil, state.Forward)
		must(t, err)
		for it.Next() {
			out = append(out, map[string]any{"key": string(it.Key()), "start": float64(it.Start()), "end": float64(it.End()), "value": string(it.Value())})
		}
		must(t, it.Close())
	case "versioned":
		s, err := r.db.VersionedBytes("st")
		must(t, err)
		slices.Sort(r.keys)
		for _, k := range slices.Compact(r.keys) {
			out = append(out, dumpVersions(t, s, k))
		}
	}
	return out
}

func dumpVersions(t *testing.T, s state.VersionedBytes, key string) map[string]any {
	e := map[string]any{"key": key, "latest": nil}
	history := []any{}
	it, err := s.History([]byte(key), 0, 1<<62, state.Forward)
	must(t, err)
	for it.Next() {
		v := it.Version()
		h := map[string]any{"value": string(bytes.Clone(v.Value)), "validFrom": float64(v.ValidFrom), "validTo": nil}
		if v.ValidTo == state.LatestVersion {
			e["latest"] = map[string]any{"value": h["value"], "timestamp": h["validFrom"]}
		} else {
			h["validTo"] = float64(v.ValidTo)
		}
		history = append(history, h)
	}
	must(t, it.Close())
	e["history"] = history
	return e
}
