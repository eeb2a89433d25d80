package jsonl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// Landing reads what a sink has landed. It may be used concurrently. What lands while it reads is seen or not, a commit of a partition
// always whole.
type Landing struct {
	place string
	store object.Store
}

// ErrNoLanding says that there is nothing at a place.
var ErrNoLanding = errors.New("no landing")

// Open opens a landing for reading, at the place that its sink was given.
func Open(ctx context.Context, place string) (*Landing, error) {
	if !strings.Contains(place, "://") { // don't make a folder by looking for it
		if _, err := os.Stat(place); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoLanding, err)
		}
	}
	store, err := object.Open(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("landing %s: %w", place, err)
	}
	return OpenStore(store), nil
}

// OpenStore opens a landing in a store that is open already.
func OpenStore(store object.Store) *Landing { return &Landing{store.String(), store} }

// Partitions lists the partitions that have landed, by topic, topic id and number. A topic that was made anew is there twice.
func (l *Landing) Partitions(ctx context.Context) ([]sink.Partition, error) {
	all, err := partitions(ctx, l.store)
	if err != nil {
		return nil, fmt.Errorf("landing %s: %w", l.place, err)
	}
	slices.SortFunc(all, comparePartitions)
	return all, nil
}

func comparePartitions(a, b sink.Partition) int {
	if c := strings.Compare(a.Topic, b.Topic); c != 0 {
		return c
	}
	if c := bytes.Compare(a.TopicID[:], b.TopicID[:]); c != 0 {
		return c
	}
	return int(a.Partition) - int(b.Partition)
}

// Manifests yields a partition's manifests in the order of offsets, from the one that accounts for an offset on. A *BrokenChainError says
// that one is missing.
func (l *Landing) Manifests(ctx context.Context, p sink.Partition, from int64) iter.Seq2[*Manifest, error] {
	return func(yield func(*Manifest, error) bool) {
		start, err := l.startOf(ctx, p, from)
		if err != nil {
			yield(nil, err)
			return
		}
		for m, err := range chain(ctx, l.store, p, start) {
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// startOf finds the start of the manifest that accounts for an offset, 0 where none before it does.
func (l *Landing) startOf(ctx context.Context, p sink.Partition, offset int64) (start int64, err error) {
	if offset <= 0 {
		return 0, nil
	}
	_, r, err := newest(ctx, l.store, p)
	if err != nil {
		return 0, fmt.Errorf("landing %s: %w", l.place, err)
	}
	for info, err := range l.store.List(ctx, r.folder(), "") {
		if err != nil {
			return 0, fmt.Errorf("landing %s: %w", l.place, err)
		}
		_, at, ok := parseManifestName(info.Name)
		if !ok {
			continue
		}
		if at > offset {
			break
		}
		start = at
	}
	return start, nil
}

// Next is the offset that a partition's landing goes on from: everything below has landed, was rejected, or is in a recorded gap.
// sink.NoOffset says that nothing has landed.
func (l *Landing) Next(ctx context.Context, p sink.Partition) (int64, error) {
	m, _, err := newest(ctx, l.store, p)
	switch {
	case err != nil:
		return 0, fmt.Errorf("landing %s: %w", l.place, err)
	case m == nil:
		return sink.NoOffset, nil
	}
	return m.Next(), nil
}

// Coverage sums up a partition's chain.
type Coverage struct {
	Partition                 sink.Partition
	First, Next               int64 // offsets: the first that is accounted for, and the one behind the last
	Rows, Rejects, Tombstones int64
	Manifests, Files, Bytes   int64
	LargestOffset             int64 // of a row; -1 if there are none
	Gaps                      []Gap
}

// Coverage reads the whole chain of a partition.
func (l *Landing) Coverage(ctx context.Context, p sink.Partition) (Coverage, error) {
	c := Coverage{Partition: p, First: sink.NoOffset, Next: sink.NoOffset, LargestOffset: -1}
	for m, err := range chain(ctx, l.store, p, 0) {
		if err != nil {
			return c, fmt.Errorf("landing %s: %w", l.place, err)
		}
		c.add(m)
	}
	return c, nil
}

// add takes in the next manifest.
func (c *Coverage) add(m *Manifest) {
	if c.Manifests == 0 {
		c.First = m.Start
	}
	c.Manifests++
	c.Next = m.Next()
	c.Rows, c.Rejects, c.Tombstones = c.Rows+m.Rows, c.Rejects+m.Rejects, c.Tombstones+m.Tombstones
	c.Gaps = append(c.Gaps, m.Gaps...)
	for _, f := range m.Files {
		c.Files++
		c.Bytes += f.Bytes
		c.LargestOffset = max(c.LargestOffset, f.Last)
	}
}

// Select says what to read. The zero value is everything.
type Select struct {
	Topic               string  // of the input; empty for all
	Partitions          []int32 // none for all
	FirstDate, LastDate string  // event dates, YYYY-MM-DD, both inclusive; empty for no bound
}

func (s *Select) takes(p sink.Partition) bool {
	return (s.Topic == "" || s.Topic == p.Topic) && (len(s.Partitions) == 0 || slices.Contains(s.Partitions, p.Partition))
}

func (s *Select) takesFile(f *File) bool {
	return f.EventDate >= s.FirstDate && (s.LastDate == "" || f.EventDate <= s.LastDate)
}

func (s *Select) check() error {
	for _, d := range []string{s.FirstDate, s.LastDate} {
		if _, err := time.Parse(time.DateOnly, d); d != "" && err != nil {
			return fmt.Errorf("event date %q: give it as YYYY-MM-DD", d)
		}
	}
	return nil
}

// Files yields the files that manifests name, partition by partition in the order of offsets: what another reader must be given.
func (l *Landing) Files(ctx context.Context, what Select) iter.Seq2[*File, error] {
	return func(yield func(*File, error) bool) {
		if err := what.check(); err != nil {
			yield(nil, err)
			return
		}
		all, err := l.Partitions(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, p := range all {
			if !what.takes(p) {
				continue
			}
			for m, err := range chain(ctx, l.store, p, 0) {
				if err != nil {
					yield(nil, fmt.Errorf("landing %s: %w", l.place, err))
					return
				}
				for i := range m.Files {
					if what.takesFile(&m.Files[i]) && !yield(&m.Files[i], nil) {
						return
					}
				}
			}
		}
	}
}

// Row is a line that was landed.
type Row struct {
	Topic     string          `json:"_kafka_topic"` // these are the source's
	Partition int32           `json:"_kafka_partition"`
	Offset    int64           `json:"_kafka_offset"`
	Timestamp time.Time       `json:"_kafka_timestamp"` // zero if the record had none
	Key       json.RawMessage `json:"key"`              // null for a null key
	Value     json.RawMessage `json:"value"`            // null for a tombstone
	EventDate string          `json:"-"`
}

// KeyText is the key of a stream whose keys are text; ok is false for a null key and one that is no text.
func (r *Row) KeyText() (text string, ok bool) {
	ok = len(r.Key) > 0 && r.Key[0] == '"' && json.Unmarshal(r.Key, &text) == nil
	return text, ok
}

// Rows yields the rows of the files that manifests name, in the order of Files and of the lines. It holds one file in memory. A row is
// valid until the next one.
func (l *Landing) Rows(ctx context.Context, what Select) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		for f, err := range l.Files(ctx, what) {
			if err == nil {
				var more bool
				if more, err = l.rowsOf(ctx, f, yield); err == nil && !more {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// rowsOf yields the rows of one file. more is false where the consumer has had enough.
func (l *Landing) rowsOf(ctx context.Context, f *File, yield func(*Row, error) bool) (more bool, err error) {
	text, err := readFile(ctx, l.store, f)
	if err != nil {
		return false, fmt.Errorf("landing %s: %w", l.place, err)
	}
	if n := int64(bytes.Count(text, []byte{'\n'})); n != f.Rows {
		return false, fmt.Errorf("landing %s: file %s has %d lines, but its manifest says %d", l.place, f.Name, n, f.Rows)
	}
	for line := range bytes.Lines(text) {
		row := Row{EventDate: f.EventDate}
		if err := json.Unmarshal(line, &row); err != nil {
			return false, fmt.Errorf("landing %s: file %s: a line is damaged: %w", l.place, f.Name, err)
		}
		if !yield(&row, nil) {
			return false, nil
		}
	}
	return true, nil
}
