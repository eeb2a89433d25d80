package lake

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
)

// LogEntry is one commit of a table's log with what it says of its rows.
type LogEntry struct {
	CommitInfo
	// Of commits of this package's sinks: which application, sink and run made it, and the span of its rows' timestamps in their
	// topics; zero where the commit doesn't say.
	Application, Sink, Run string
	Oldest, Newest         time.Time
	Profile                []ColumnProfile // by column
}

// ColumnProfile tells what a commit's files have in a column, by their statistics.
type ColumnProfile struct {
	Column string // by its path: "customer.zip"
	Nulls  int64  // rows in which it is null; -1 if a file doesn't say
	// Min and Max are JSON as the statistics have it: long texts are cut, timestamps are cut to milliseconds. Nil if a file doesn't say.
	Min, Max json.RawMessage
	Distinct int64 // about how many different values; 0 if the commit doesn't say
}

// Log streams the commits that a table's log still holds, newest first, each with a profile of its columns.
func Log(ctx context.Context, place string) iter.Seq2[LogEntry, error] {
	return func(yield func(LogEntry, error) bool) {
		store, err := openToRead(ctx, place)
		if err != nil {
			yield(LogEntry{}, err)
			return
		}
		for e, err := range logStore(ctx, store) {
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func logStore(ctx context.Context, store object.Store) iter.Seq2[LogEntry, error] {
	return func(yield func(LogEntry, error) bool) {
		t, err := delta.Open(ctx, store, delta.Options{})
		if err != nil {
			yield(LogEntry{}, err)
			return
		}
		for h, err := range t.History(ctx) {
			if err != nil {
				yield(LogEntry{}, err)
				return
			}
			if !yield(logEntry(&h), nil) {
				return
			}
		}
	}
}

func logEntry(h *delta.HistoryEntry) LogEntry {
	e := LogEntry{CommitInfo: commitInfo(h)}
	var said struct {
		Application, Sink, Run string
		Oldest                 *int64           `json:"oldestSourceTimestamp"`
		Newest                 *int64           `json:"newestSourceTimestamp"`
		Distinct               map[string]int64 `json:"distinctEstimates"`
	}
	if len(e.Sources) > 0 && json.Unmarshal(e.Sources, &said) == nil {
		e.Application, e.Sink, e.Run = said.Application, said.Sink, said.Run
		if said.Oldest != nil && said.Newest != nil {
			e.Oldest, e.Newest = time.UnixMilli(*said.Oldest).UTC(), time.UnixMilli(*said.Newest).UTC()
		}
	}
	e.Profile = profile(h.Stats, said.Distinct)
	return e
}

// profile sums up the statistics of files. A column that a file does not speak of has no sums.
func profile(files []string, distinct map[string]int64) []ColumnProfile {
	all := map[string]*ColumnProfile{}
	seen := map[string]int{}
	for _, text := range files {
		var s struct {
			Min   map[string]json.RawMessage `json:"minValues"`
			Max   map[string]json.RawMessage `json:"maxValues"`
			Nulls map[string]json.RawMessage `json:"nullCount"`
		}
		if json.Unmarshal([]byte(text), &s) != nil {
			continue // no statistics, or ones that nobody can read: the columns count as unknown
		}
		lo, hi := leaves(s.Min), leaves(s.Max)
		for column, raw := range leaves(s.Nulls) {
			var n int64
			if json.Unmarshal(raw, &n) != nil {
				continue
			}
			p := all[column]
			if p == nil {
				p = &ColumnProfile{Column: column, Distinct: distinct[column]}
				all[column] = p
			}
			seen[column]++
			p.Nulls += n
			p.bound(lo[column], hi[column], seen[column] == 1)
		}
	}
	var out []ColumnProfile
	for _, column := range slices.Sorted(maps.Keys(all)) {
		p := all[column]
		if seen[column] < len(files) {
			p.Nulls, p.Min, p.Max = -1, nil, nil
		}
		out = append(out, *p)
	}
	return out
}

// bound widens the bounds by those of one more file.
func (p *ColumnProfile) bound(lo, hi json.RawMessage, first bool) {
	switch {
	case first:
		p.Min, p.Max = lo, hi
	case p.Min == nil || p.Max == nil || lo == nil || hi == nil:
		p.Min, p.Max = nil, nil
	default:
		if compareStat(lo, p.Min) < 0 {
			p.Min = lo
		}
		if compareStat(hi, p.Max) > 0 {
			p.Max = hi
		}
	}
}

// leaves flattens nested statistics to paths.
func leaves(m map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, raw := range m {
		var inner map[string]json.RawMessage
		if bytes.HasPrefix(raw, []byte("{")) && json.Unmarshal(raw, &inner) == nil {
			for path, v := range leaves(inner) {
				out[name+"."+path] = v
			}
			continue
		}
		out[name] = raw
	}
	return out
}

// compareStat orders two values of one column: numbers by value, texts (dates and timestamps among them) by their bytes.
func compareStat(a, b json.RawMessage) int {
	x, ok1 := new(big.Rat).SetString(string(a))
	y, ok2 := new(big.Rat).SetString(string(b))
	if ok1 && ok2 {
		return x.Cmp(y)
	}
	var s, t string
	if json.Unmarshal(a, &s) == nil && json.Unmarshal(b, &t) == nil {
		return strings.Compare(s, t)
	}
	return cmp.Compare(string(a), string(b)) // booleans
}
