package jsonl

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// What docs/format/jsonl.md describes is in testdata/v1, byte by byte. It must be read for ever, and what is written today must be the same.

func fixture(t testing.TB) *object.Local {
	t.Helper()
	store, err := object.NewLocal("testdata/v1")
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestFixtureIsRead(t *testing.T) {
	store := fixture(t)
	got := rows(t, store, Select{})
	if d := cmp.Diff([]string{`{"amount":12.50,"note":"é <ok>"}`, `[1,2]`, `"x"`}, values(got)); d != "" {
		t.Fatal(d)
	}
	if k, ok := got[0].KeyText(); k != "k\x1f1" || !ok || got[0].Offset != 3 || got[0].Timestamp.UnixMilli() != at(126) || !got[1].Timestamp.IsZero() || got[2].EventDate != "2026-06-02" {
		t.Errorf("%+v", got)
	}
	c, err := OpenStore(store).Coverage(ctx, part(0))
	want := Coverage{Partition: part(0), First: 0, Next: 20, Rows: 3, Rejects: 1, Tombstones: 1, Manifests: 2, Files: 2, Bytes: c.Bytes, LargestOffset: 6,
		Gaps: []Gap{{0, 2, "retention"}, {9, 19, "poisoned by release 1.4, ticket 12"}}}
	if d := cmp.Diff(want, c); d != "" || err != nil {
		t.Error(d, err)
	}
	names := 0
	for f, err := range OpenStore(store).Files(ctx, Select{}) {
		if _, statErr := os.Stat(filepath.Join("testdata/v1", f.Name)); err != nil || statErr != nil {
			t.Error(err, statErr)
		}
		names++
	}
	if names != 2 {
		t.Errorf("%d files", names)
	}
}

func TestFixtureIsWritten(t *testing.T) {
	store := fixture(t)
	for _, m := range manifests(t, store, part(0)) {
		stored, err := store.Get(ctx, round{Partition: part(0)}.manifest(m.Start))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := m.encode(); err != nil || !bytes.Equal(text, stored) {
			t.Errorf("written today: %s\nin the fixture: %s\n%v", text, stored, err)
		}
	}
	mem := object.NewMemory("t")
	w := openText(t, mem)
	b := w.NewBatch()
	for _, r := range []struct {
		offset           int64
		key, value       string
		timestamp, shift int64
	}{
		{3, "k\x1f1", `{"amount": 12.50, "note": "é <ok>"}`, at(126), 0},
		{4, "k2", `"x"`, at(127), msPerDay},
		{5, "k3", ``, at(128), 0},
		{6, "", `[1, 2]`, -1, 0},
	} {
		m := meta(0, r.offset)
		m.BrokerTimestamp, m.Timestamp = r.timestamp, m.Timestamp+r.shift
		if err := add(b, r.key, r.value, m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(ctx, b, []sink.Move{{Partition: part(0), From: sink.NoOffset, To: 9, Gap: sink.Gap{To: 3, Reason: sink.GapRetention}}}); err != nil {
		t.Fatal(err)
	}
	stored := manifests(t, store, part(0))[0]
	written := manifests(t, mem, part(0))[0]
	for i := range stored.Files {
		s, w := &stored.Files[i], &written.Files[i]
		was, err := store.Get(ctx, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		if is, err := mem.Get(ctx, w.Name); err != nil || !bytes.Equal(is, was) {
			t.Errorf("written today: %s\nin the fixture: %s\n%v", is, was, err)
		}
		// All of a name but its UUID.
		if cut := len(s.Name) - len("6ba7b810-9dad-11d1-80b4-00c04fd430c8.jsonl"); len(s.Name) != len(w.Name) || s.Name[:cut] != w.Name[:cut] || !strings.HasSuffix(w.Name, ".jsonl") {
			t.Errorf("names: today %s, in the fixture %s", w.Name, s.Name)
		}
		w.Name = s.Name
	}
	if d := cmp.Diff(stored.Files, written.Files); d != "" {
		t.Error(d)
	}
}

func FuzzDecodeManifest(f *testing.F) {
	store := fixture(f)
	for _, m := range []int64{0, 9} {
		data, err := store.Get(ctx, round{Partition: part(0)}.manifest(m))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeManifest(round{Partition: part(0)}.manifest(0), data)
		if err != nil {
			return
		}
		text, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeManifest(round{Partition: part(0)}.manifest(0), text)
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if d := cmp.Diff(m, again); d != "" {
			t.Error(d)
		}
	})
}
