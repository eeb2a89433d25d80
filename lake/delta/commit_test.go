package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

func TestCommitAndReopen(t *testing.T) {
	c := newClock()
	store := object.NewMemory("t")
	opts := Options{Now: c.Now, Engine: "test/1"}
	table := mustCreate(t, store, Spec{Name: "orders", Description: "all orders", Configuration: map[string]string{"owner": "me"}}, opts)
	if h := table.Head(); h.Version != 0 || h.NumFiles != 0 || h.Protocol.MinReaderVersion != 1 || h.Protocol.MinWriterVersion != 2 {
		t.Fatalf("after Create: %+v", h)
	}
	landed := mustCommit(t, table, Commit{
		Add:   []Add{mustFile(t, store, 3), mustFile(t, store, 4)},
		Moves: []Move{move("a/0", -1, 3), move("a/1", -1, 4)},
		Info:  map[string]json.RawMessage{"gap": json.RawMessage("[100,\n250]")},
	})
	if landed.Version != 1 || landed.Attempts != 1 || landed.Recovered || landed.MetadataChanged || landed.Bytes == 0 {
		t.Fatalf("landed: %+v", landed)
	}
	c.now = c.now.Add(time.Minute)
	mustCommit(t, table, Commit{Moves: []Move{move("a/0", 3, 10)}}) // progress without rows

	again := mustOpen(t, store, opts)
	h := again.Head()
	if h.Version != 2 || h.NumFiles != 2 || h.SizeBytes != 8 || len(h.Txns) != 2 {
		t.Fatalf("reopened: %+v", h)
	}
	if want := (Txn{"a/0", 10, c.now.UnixMilli()}); h.Txns["a/0"] != want {
		t.Errorf("txn %+v, want %+v", h.Txns["a/0"], want)
	}
	if m := h.Metadata; m.Name != "orders" || m.Description != "all orders" || m.Configuration["owner"] != "me" || m.Configuration["delta.checkpointInterval"] != "100" {
		t.Errorf("metadata: %+v", m)
	}
	files, rows := counts(t, mustSnapshot(t, again))
	if files != 2 || rows != 7 {
		t.Errorf("%d files with %d rows", files, rows)
	}
	if files, _ := counts(t, must(again.SnapshotAt(t.Context(), 0))); files != 0 {
		t.Errorf("version 0 has %d files", files)
	}
	var history []string
	for e, err := range again.History(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, fmt.Sprint(e.Version, e.Info.Operation, e.Adds, e.Txns, e.Metadata, e.Info.EngineInfo, e.Info.OperationMetrics["numOutputRows"], string(e.Info.Extra["gap"])))
	}
	want := []string{
		fmt.Sprint(2, "STREAMING UPDATE", 0, []Txn{{"a/0", 10, c.now.UnixMilli()}}, false, "test/1", "0", ""),
		fmt.Sprint(1, "STREAMING UPDATE", 2, []Txn{{"a/0", 3, newClock().now.UnixMilli()}, {"a/1", 4, newClock().now.UnixMilli()}}, false, "test/1", "7", "[100,250]"),
		fmt.Sprint(0, "CREATE TABLE", 0, []Txn(nil), true, "test/1", "", ""),
	}
	if strings.Join(history, "\n") != strings.Join(want, "\n") {
		t.Errorf("history:\n%s\nwant\n%s", strings.Join(history, "\n"), strings.Join(want, "\n"))
	}
}

// must is for set-up in tests, where an error means that the test itself is broken.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestEntryBytes pins what a commit looks like in the log, to the letter.
func TestEntryBytes(t *testing.T) {
	store := object.NewMemory("t")
	ids := 0
	opts := Options{Now: newClock().Now, NewID: func() string { ids++; return fmt.Sprint("id", ids) }}
	spec := Spec{Schema: &StructType{Fields: []Field{
		{Name: "id", Type: Long, Nullable: true, Metadata: FieldMetadata{}.With("comment", `the "id" <b>`).With("ods.pii", true)},
		{Name: "day", Type: Date, Nullable: true},
	}}, PartitionColumns: []string{"day"}, Configuration: map[string]string{"b": "2", "a": "1"}}
	table := mustCreate(t, store, spec, opts)
	day := "2026-06-01"
	if err := store.Put(t.Context(), "p.parquet", nil); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, table, Commit{
		Add:   []Add{{Path: "p.parquet", PartitionValues: map[string]*string{"day": &day}, Size: 9, ModificationTime: 5, Stats: `{"numRecords":2}`}},
		Moves: []Move{move("a/0", -1, 2)},
		Metadata: func(m *Metadata) (*Metadata, error) {
			m = m.Clone()
			m.Description = "now described"
			return m, nil
		},
	})
	for version, want := range []string{
		`{"commitInfo":{"timestamp":1780315200000,"operation":"CREATE TABLE","operationParameters":{"description":"","partitionBy":"[\"day\"]"},"isBlindAppend":true,"engineInfo":"Tributary","txnId":"id2"}}
{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"metaData":{"id":"id1","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{\"comment\":\"the \\\"id\\\" <b>\",\"ods.pii\":true}},{\"name\":\"day\",\"type\":\"date\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":["day"],"configuration":{"a":"1","b":"2","delta.checkpointInterval":"100"},"createdTime":1780315200000}}
`,
		`{"commitInfo":{"timestamp":1780315200000,"operation":"STREAMING UPDATE","operationParameters":{},"readVersion":0,"isBlindAppend":true,"operationMetrics":{"numAddedFiles":"1","numOutputBytes":"9","numOutputRows":"2","numRemovedFiles":"0"},"engineInfo":"Tributary","txnId":"id3"}}
{"metaData":{"id":"id1","description":"now described","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{\"comment\":\"the \\\"id\\\" <b>\",\"ods.pii\":true}},{\"name\":\"day\",\"type\":\"date\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":["day"],"configuration":{"a":"1","b":"2","delta.checkpointInterval":"100"},"createdTime":1780315200000}}
{"txn":{"appId":"a/0","version":2,"lastUpdated":1780315200000}}
{"add":{"path":"p.parquet","partitionValues":{"day":"2026-06-01"},"size":9,"modificationTime":5,"dataChange":true,"stats":"{\"numRecords\":2}"}}
`} {
		got, err := store.Get(t.Context(), commitName(int64(version)))
		if err != nil || string(got) != want {
			t.Errorf("version %d, %v:\n%s\nwant\n%s", version, err, got, want)
		}
	}
}

func TestFenced(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, Spec{}, Options{})
	mustCommit(t, table, Commit{Moves: []Move{move("a", -1, 100)}})
	for _, m := range []Move{move("a", -1, 5), move("a", 99, 110), move("a", 0, 100), move("b", 0, 1)} {
		_, err := table.Commit(t.Context(), Commit{Moves: []Move{move("c", -1, 1), m}})
		var fenced *FencedError
		if !errors.As(err, &fenced) || fenced.AppID != m.AppID || fenced.Want.None != m.First {
			t.Errorf("move %+v: %v", m, err)
		}
	}
	if v := must(table.Refresh(t.Context())).Version; v != 1 {
		t.Errorf("fenced commits landed: version %d", v)
	}
	// Progress may go down, if it starts from what the table says: a topic was reset.
	mustCommit(t, table, Commit{Moves: []Move{move("a", 100, 0)}})
}

func TestFencedByStaleHead(t *testing.T) {
	store := object.NewMemory("t")
	a := mustCreate(t, store, Spec{}, Options{})
	b := mustOpen(t, store, Options{})
	mustCommit(t, a, Commit{Moves: []Move{move("p", -1, 10)}})
	// The caller of b has read the progress elsewhere: b's head is too old to know it.
	if l := mustCommit(t, b, Commit{Moves: []Move{move("p", 10, 20)}}); l.Version != 2 {
		t.Errorf("landed %+v", l)
	}
	// a's head still says 10: the lost race must fence it.
	var fenced *FencedError
	if _, err := a.Commit(t.Context(), Commit{Moves: []Move{move("p", 10, 15)}}); !errors.As(err, &fenced) || fenced.Got.Version != 20 || fenced.Want.Version != 10 {
		t.Errorf("stale writer: %v", err)
	}
	// A refresh by another writer leaves the progress as it is, and yet says that the id isn't ours any more.
	mustCommit(t, b, Commit{Moves: []Move{move("q", -1, 1)}})
	must(a.Refresh(t.Context()))
	mustCommit(t, b, Commit{Moves: []Move{move("q", 1, 1)}})
	if _, err := a.Commit(t.Context(), Commit{Moves: []Move{move("q", 1, 5)}}); !errors.As(err, &fenced) {
		t.Errorf("after another writer's refresh: %v", err)
	}
}

func TestLostRaceLandsOnTop(t *testing.T) {
	store := object.NewMemory("t")
	a := mustCreate(t, store, Spec{}, Options{})
	b := mustOpen(t, store, Options{})
	for i := range int64(3) {
		mustCommit(t, b, Commit{Add: []Add{mustFile(t, store, 1)}, Moves: []Move{move("b", i-1+min(i, 0), i)}})
	}
	l := mustCommit(t, a, Commit{Add: []Add{mustFile(t, store, 1)}, Moves: []Move{move("a", -1, 1)}})
	if l.Version != 4 || l.Attempts != 2 {
		t.Errorf("landed %+v", l)
	}
	if h := a.Head(); h.NumFiles != 4 || h.Txns["b"].Version != 2 {
		t.Errorf("head %+v", h)
	}
}

func TestNothingToCommit(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, Spec{}, Options{})
	same := func(m *Metadata) (*Metadata, error) { return m.Clone(), nil }
	if l := mustCommit(t, table, Commit{Metadata: same}); l.Version != 0 || l.Attempts != 0 {
		t.Errorf("an empty commit landed: %+v", l)
	}
}

func TestMetadataRaces(t *testing.T) {
	store := object.NewMemory("t")
	a := mustCreate(t, store, Spec{}, Options{})
	b := mustOpen(t, store, Options{})
	withColumn := func(name string) func(m *Metadata) (*Metadata, error) {
		return func(m *Metadata) (*Metadata, error) {
			wanted := &StructType{Fields: append(plain().Fields, Field{Name: name, Type: Long, Nullable: true})}
			s, err := Evolve(m.Schema, wanted)
			return m.WithSchema(s), err
		}
	}
	comment := func(m *Metadata) (*Metadata, error) {
		fields := append([]Field(nil), m.Schema.Fields...)
		fields[0].Metadata = fields[0].Metadata.With("comment", "by b")
		return m.WithSchema(&StructType{Fields: fields}), nil
	}
	mustCommit(t, b, Commit{Metadata: comment})
	l := mustCommit(t, a, Commit{Metadata: withColumn("extra"), Add: []Add{mustFile(t, store, 1)}, Moves: []Move{move("a", -1, 1)}})
	if l.Version != 2 || !l.MetadataChanged {
		t.Errorf("landed %+v", l)
	}
	s := mustOpen(t, store, Options{}).Head().Metadata.Schema
	if len(s.Fields) != 3 || s.Fields[0].Metadata.Comment() != "by b" || s.Fields[2].Name != "extra" {
		t.Errorf("both changes should be there: %s", s)
	}
	// Two writers add the same column: the second finds nothing to change.
	mustCommit(t, a, Commit{Metadata: withColumn("same")})
	if l := mustCommit(t, b, Commit{Metadata: withColumn("same"), Moves: []Move{move("b", -1, 1)}}); l.MetadataChanged {
		t.Error("equal metadata was committed again")
	}
	// Without a function, a change by somebody else ends the commit; so does a function's error.
	mustCommit(t, b, Commit{Metadata: withColumn("late")})
	var changed *MetadataChangedError
	if _, err := a.Commit(t.Context(), Commit{Moves: []Move{move("a", 1, 2)}}); !errors.As(err, &changed) {
		t.Errorf("commit without an answer: %v", err)
	}
	misfit := errors.New("the files don't fit")
	if _, err := a.Commit(t.Context(), Commit{Moves: []Move{move("a", 1, 2)}, Metadata: func(*Metadata) (*Metadata, error) { return nil, misfit }}); !errors.Is(err, misfit) {
		t.Errorf("a function's error: %v", err)
	}
	mustCommit(t, a, Commit{Moves: []Move{move("a", 1, 2)}})
}

func TestRefusedMetadata(t *testing.T) {
	store := object.NewMemory("t")
	table := mustCreate(t, store, Spec{Schema: &StructType{Fields: append(plain().Fields, Field{Name: "day", Type: Date, Nullable: true})}, PartitionColumns: []string{"day"}}, Options{})
	for name, change := range map[string]func(*Metadata){
		"timestampNtz": func(m *Metadata) {
			m.Schema = &StructType{Fields: append(m.Schema.Fields[:3:3], Field{Name: "at", Type: TimestampNTZ, Nullable: true})}
		},
		"id can't change":   func(m *Metadata) { m.ID = "other" },
		"partition columns": func(m *Metadata) { m.PartitionColumns = nil },
		"only be set when":  func(m *Metadata) { m.Configuration["delta.enableInCommitTimestamps"] = "true" },
		"differ only in case": func(m *Metadata) {
			m.Schema = &StructType{Fields: append(m.Schema.Fields[:3:3], Field{Name: "ID", Type: Long})}
		},
		"a name must not be em": func(m *Metadata) {
			m.Schema = &StructType{Fields: append(m.Schema.Fields[:3:3], Field{Name: "a b", Type: Long})}
		},
	} {
		_, err := table.Commit(t.Context(), Commit{Metadata: func(m *Metadata) (*Metadata, error) { m = m.Clone(); change(m); return m, nil }})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusedFiles(t *testing.T) {
	store := object.NewMemory("t")
	schema := &StructType{Fields: []Field{{Name: "id", Type: Long}, {Name: "day", Type: Date}, {Name: "n", Type: Integer, Nullable: true},
		{Name: "s", Nullable: true, Type: &StructType{Fields: []Field{{Name: "x", Type: Long}}}}}}
	table := mustCreate(t, store, Spec{Schema: schema, PartitionColumns: []string{"day", "n"}}, Options{})
	day, bad, empty, five := "2026-01-01", "June", "", "5"
	for want, change := range map[string]func(*Add){
		"":                      func(a *Add) {},
		"NOT NULL":              func(a *Add) { a.Stats = `{"numRecords":2,"nullCount":{"id":1}}` },
		"has the partition col": func(a *Add) { a.PartitionValues = nil },
		"no value for the part": func(a *Add) { a.PartitionValues = map[string]*string{"day": &day, "m": nil} },
		"its value is null":     func(a *Add) { a.PartitionValues = map[string]*string{"day": nil, "n": nil} },
		"empty text":            func(a *Add) { a.PartitionValues = map[string]*string{"day": &day, "n": &empty} },
		"of type date":          func(a *Add) { a.PartitionValues = map[string]*string{"day": &bad, "n": nil} },
		"statistics":            func(a *Add) { a.Stats = "{" },
	} {
		a := mustFile(t, store, 2)
		a.PartitionValues = map[string]*string{"day": &day, "n": &five}
		a.Stats = `{"numRecords":2,"nullCount":{"id":0,"s":{"x":2}}}`
		change(&a)
		_, err := table.Commit(t.Context(), Commit{Add: []Add{a}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	a := mustFile(t, store, 2)
	for want, c := range map[string]Commit{
		"added twice": {Add: []Add{a, a}}, "moved twice": {Moves: []Move{move("a", -1, 1), move("a", -1, 2)}},
		"by the commit itself": {Info: map[string]json.RawMessage{"txnId": json.RawMessage("1")}, Moves: []Move{move("z", -1, 1)}},
		"not valid JSON":       {Info: map[string]json.RawMessage{"x": json.RawMessage("{")}, Moves: []Move{move("z", -1, 1)}},
		"outside of":           {Add: []Add{{Path: "s3://other/place"}}}, "not found": {Add: []Add{{Path: "not-there"}}},
	} {
		if _, err := table.Commit(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestRacingWriters has 8 writers with a Table each make 100 commits: no version is missing, nothing is lost or doubled.
func TestRacingWriters(t *testing.T) {
	const writers, commits = 8, 100
	dir := t.TempDir()
	local := must(object.NewLocal(dir))
	mustCreate(t, local, Spec{}, Options{})
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() { errs[w] = writeCommits(t.Context(), local, fmt.Sprint("w", w), commits) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	checkRace(t, local, writers, commits)
}

func writeCommits(ctx context.Context, s object.Store, id string, commits int64) error {
	table, err := Open(ctx, s, Options{})
	if err != nil {
		return err
	}
	for i := range commits {
		a, err := fakeFile(ctx, s, 2)
		if err != nil {
			return err
		}
		m := Move{AppID: id, First: i == 0, From: i, To: i + 1}
		if _, err := table.Commit(ctx, Commit{Add: []Add{a}, Moves: []Move{m}}); err != nil {
			return err
		}
		if i%10 == 0 {
			if err := table.Maintain(ctx); err != nil {
				return err
			}
		}
	}
	return table.Maintain(ctx)
}

func checkRace(t *testing.T, s object.Store, writers, commits int64) {
	t.Helper()
	table := mustOpen(t, s, Options{})
	h := table.Head()
	if h.Version != writers*commits || h.NumFiles != writers*commits || int64(len(h.Txns)) != writers {
		t.Errorf("version %d, %d files, %d ids; want %d, %d, %d", h.Version, h.NumFiles, len(h.Txns), writers*commits, writers*commits, writers)
	}
	for id, txn := range h.Txns {
		if txn.Version != commits {
			t.Errorf("%s ended at %d", id, txn.Version)
		}
	}
	if files, rows := counts(t, mustSnapshot(t, table)); files != writers*commits || rows != 2*writers*commits {
		t.Errorf("%d files, %d rows", files, rows)
	}
}
