package state

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
)

// The fixtures in testdata/format fix the bytes of what is durable: rows in Pebble and records in changelog topics. A change of any of
// them breaks the state of running applications; docs/format says what has to happen then.

// formatSpecs are the stores that the fixtures are written with.
var formatSpecs = []Spec{
	{Name: "kv", Kind: KeyValue, Logged: true},
	{Name: "tkv", Kind: TimestampedKeyValue, Logged: true},
	{Name: "win", Kind: Window, RetentionMs: 1000, SegmentIntervalMs: 100, Logged: true},
	{Name: "twin", Kind: TimestampedWindow, RetentionMs: 1000, SegmentIntervalMs: 100, TimeOrdered: true, Logged: true},
	{Name: "dup", Kind: Window, RetentionMs: 1000, SegmentIntervalMs: 100, RetainDuplicates: true, Logged: true},
	{Name: "ses", Kind: Session, RetentionMs: 1000, SegmentIntervalMs: 100, Logged: true},
	{Name: "tses", Kind: Session, RetentionMs: 1000, SegmentIntervalMs: 100, TimeOrdered: true, Logged: true},
	{Name: "ver", Kind: Versioned, HistoryMs: 1000, SegmentIntervalMs: 100, Logged: true},
	{Name: "list", Kind: JoinList, Logged: true},
	{Name: "sup", Kind: SuppressBuffer, Logged: true},
	{Name: "buf", Kind: JoinBuffer, GraceMs: 10, Logged: true},
}

// writeFormat writes one or two entries to each store, with a key that needs escaping.
func writeFormat(t *testing.T, db *DB) {
	t.Helper()
	key := []byte("k\x00")
	ctx := &Context{Timestamp: 150, Offset: 3, Partition: 1, Topic: "in", Headers: []Header{{Key: "h", Value: []byte("x")}, {Key: "n"}}}
	db.Bind(ctx)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check2 := func(_ bool, err error) { t.Helper(); check(err) }
	impl := func(name string) any { return db.byName[name].impl }
	check(impl("kv").(*keyValue).Put(key, []byte("v"), 0))
	check(impl("kv").(*keyValue).Put([]byte("gone"), nil, 0))
	check(impl("tkv").(*keyValue).Put(key, []byte("v"), 120))
	for _, name := range []string{"win", "twin", "dup"} {
		check2(impl(name).(*window).Put(key, []byte("v"), 250, 120))
	}
	for _, name := range []string{"ses", "tses"} {
		check2(impl(name).(*session).Put(key, []byte("v"), 130, 250))
	}
	for _, ts := range []int64{100, 250} {
		_, err := impl("ver").(*versioned).Put(key, fmt.Append(nil, ts), ts)
		check(err)
	}
	check(impl("list").(*joinList).Add(AppendJoinKey(nil, key, 100, true), AppendSideValue(nil, []byte("l"), true)))
	check(impl("list").(*joinList).Add(AppendJoinKey(nil, key, 100, true), AppendSideValue(nil, []byte("m"), true)))
	check(impl("sup").(*changeBuffer).Put(90, key, []byte("old"), []byte("new"), ctx))
	check2(impl("buf").(*recordBuffer).Put(key, []byte("v"), 90, ctx))
}

func TestFormat(t *testing.T) {
	res := NewResources(ResourceOptions{CacheBytes: 8 << 20})
	res.UseMemFS()
	db, err := OpenPebble("db", formatSpecs, res, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	writeFormat(t, db)
	gen, err := db.Seal()
	if err != nil {
		t.Fatal(err)
	}
	changelog, offsets := changelogLines(gen)
	if err := gen.Apply(offsets, []byte("task")); err != nil {
		t.Fatal(err)
	}
	compareFixture(t, "testdata/format/changelog-v1.txt", changelog)
	compareFixture(t, "testdata/format/pebble-v1.txt", pebbleLines(t, db))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := res.Close(); err != nil {
		t.Fatal(err)
	}
}

func changelogLines(gen *Generation) (lines []string, offsets []int64) {
	offsets = slices.Repeat([]int64{0}, len(formatSpecs))
	for r := range gen.Changelog() {
		value := "null"
		if r.Value != nil {
			value = hex.EncodeToString(r.Value)
		}
		type bare Header // printed byte by byte, whatever a Header says of itself
		headers := make([]bare, len(r.Headers))
		for i, h := range r.Headers {
			headers[i] = bare(h)
		}
		lines = append(lines, fmt.Sprintf("%s %x %s %d %v", formatSpecs[r.Store].Name, r.Key, value, r.Timestamp, headers))
		offsets[r.Store]++
	}
	return lines, offsets
}

func pebbleLines(t *testing.T, db *DB) (lines []string) {
	it, err := db.pebble.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		lines = append(lines, fmt.Sprintf("%x %x", it.Key(), it.Value()))
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func compareFixture(t *testing.T, file string, got []string) {
	t.Helper()
	want := readFixture(t, file)
	if !slices.Equal(want, got) {
		t.Errorf("%s: the durable format has changed. It was\n%s\nand is\n%s", file, strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// readFixture gives the lines of a fixture that are no comments.
func readFixture(t *testing.T, file string) (lines []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		if line := sc.Text(); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestReadFormat reads a database and changelogs that were written when the fixtures were, and a database of before there were marks.
func TestReadFormat(t *testing.T) {
	for name, marked := range map[string]bool{"with marks": true, "without": false} {
		t.Run(name, func(t *testing.T) { readPebbleFormat(t, marked) })
	}
	restored, err := OpenMemory(formatSpecs, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	restoreFixture(t, restored)
	readFormat(t, restored)
	if err := restored.Close(); err != nil {
		t.Fatal(err)
	}
}

func readPebbleFormat(t *testing.T, marked bool) {
	res := NewResources(ResourceOptions{CacheBytes: 8 << 20})
	res.UseMemFS()
	opt := Options{Log: slog.New(slog.DiscardHandler)}
	base, err := openPebbleBase("db", res, opt.Log)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range readFixture(t, "testdata/format/pebble-v1.txt") {
		var key, value []byte
		if _, err := fmt.Sscanf(line+" ", "%x %x", &key, &value); err != nil && len(key) == 0 {
			t.Fatalf("%q: %v", line, err)
		}
		if !marked && len(key) == 4 && key[2] == classMeta && key[3] == storeMarksTag {
			continue
		}
		if err := base.db.Set(key, value, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := base.close(); err != nil {
		t.Fatal(err)
	}
	db, err := OpenPebble("db", formatSpecs, res, opt)
	if err != nil {
		t.Fatal(err)
	}
	readFormat(t, db)
	if string(db.TaskMeta()) != "task" {
		t.Errorf("task meta %q", db.TaskMeta())
	}
	if next, ok := db.Offset("kv"); !ok || next != 2 {
		t.Errorf("offset %d %v", next, ok)
	}
	if marks := db.byName["win"].marks; marked != slices.Equal(marks, []logMark{{1, 250}}) {
		t.Errorf("marks %v", marks)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := res.Close(); err != nil {
		t.Fatal(err)
	}
}

func restoreFixture(t *testing.T, db *DB) {
	next := map[string]int64{}
	for _, line := range readFixture(t, "testdata/format/changelog-v1.txt") {
		f := strings.SplitN(line, " ", 5)
		key, err := hex.DecodeString(f[1])
		if err != nil {
			t.Fatal(err)
		}
		r := RestoreRecord{Key: key}
		if f[2] != "null" {
			if r.Value, err = hex.DecodeString(f[2]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := fmt.Sscan(f[3], &r.Timestamp); err != nil {
			t.Fatal(err)
		}
		if f[4] != "[]" {
			r.Headers = bufferHeaders
		}
		next[f[0]]++
		if err := db.Restore(f[0], []RestoreRecord{r}, next[f[0]]); err != nil {
			t.Fatal(err)
		}
	}
}

// readFormat checks that the entries of writeFormat are there.
func readFormat(t *testing.T, db *DB) {
	t.Helper()
	key := []byte("k\x00")
	impl := func(name string) any { return db.byName[name].impl }
	var got []string
	add := func(name string, v []byte, ts int64, ok bool, err error) {
		got = append(got, fmt.Sprintf("%s %s %d %v %v", name, v, ts, ok, err))
	}
	v, ts, ok, err := impl("kv").(*keyValue).Get(key, nil)
	add("kv", v, ts, ok, err)
	v, ts, ok, err = impl("tkv").(*keyValue).Get(key, nil)
	add("tkv", v, ts, ok, err)
	for _, name := range []string{"win", "twin", "dup"} {
		it, err := impl(name).(*window).Fetch(key, 0, 1000, Forward)
		if err != nil || !it.Next() {
			t.Fatalf("%s: nothing there (%v)", name, err)
		}
		add(name, it.Value(), it.Timestamp()+it.Start(), !it.Next(), it.Close())
	}
	for _, name := range []string{"ses", "tses"} {
		v, ok, err := impl(name).(*session).Get(key, 130, 250, nil)
		add(name, v, 0, ok, err)
	}
	old, ok, err := impl("ver").(*versioned).GetAsOf(key, 249, nil)
	add("ver", old.Value, old.ValidTo, ok, err)
	it, err := impl("list").(*joinList).All()
	if err != nil || !it.Next() || !it.Next() {
		t.Fatalf("list: too little there (%v)", err)
	}
	add("list", it.Value(), 0, !it.Next(), it.Close())
	prior, ok, err := impl("sup").(*changeBuffer).Prior(key, nil)
	add("sup", prior, impl("sup").(*changeBuffer).MinTime(), ok, err)
	add("buf", nil, impl("buf").(*recordBuffer).NumRecords(), true, nil)
	want := []string{
		"kv v 0 true <nil>", "tkv v 120 true <nil>", "win v 250 true <nil>", "twin v 370 true <nil>", "dup v 250 true <nil>",
		"ses v 0 true <nil>", "tses v 0 true <nil>", "ver 100 250 true <nil>", "list \x01m 0 true <nil>", "sup old 90 true <nil>", "buf  1 true <nil>",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
