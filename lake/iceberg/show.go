package iceberg

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/tributary-io/tributary/lake/columns"
)

// Info describes a table, for tools and tests.
type Info struct {
	Location   string
	Metadata   string            // where the newest metadata file is: what other readers take
	Properties map[string]string // progress among them
	Progress   []Progress        // of Tributary's sinks, sorted by application, sink, topic and partition
	Rows       int64             // as the newest snapshot counts them; -1 if it doesn't
	Snapshots  []Snapshot        // oldest first
}

// Progress is how far a sink has landed a partition.
type Progress struct {
	Application, Sink, Topic string
	TopicID                  [16]byte
	Partition                int32
	Next                     int64 // next offset to read
}

// Snapshot is one snapshot of a table.
type Snapshot struct {
	ID      int64
	Summary map[string]string
}

// Show describes the newest version of a table.
func Show(ctx context.Context, name string, c Catalog) (*Info, error) {
	t, done, err := load(ctx, name, c)
	if err != nil {
		return nil, err
	}
	defer done()
	info := &Info{Location: t.Location(), Metadata: t.MetadataLocation(), Properties: t.Properties(), Rows: -1}
	for key, value := range info.Properties {
		if p, ok := parseProgress(key, value); ok {
			info.Progress = append(info.Progress, p)
		}
	}
	slices.SortFunc(info.Progress, func(a, b Progress) int {
		if n := strings.Compare(a.Application+"/"+a.Sink+"/"+a.Topic, b.Application+"/"+b.Sink+"/"+b.Topic); n != 0 {
			return n
		}
		return int(a.Partition - b.Partition)
	})
	for _, s := range t.Metadata().Snapshots() {
		shown := Snapshot{ID: s.SnapshotID}
		if s.Summary != nil {
			shown.Summary = s.Summary.Properties
		}
		info.Snapshots = append(info.Snapshots, shown)
	}
	if s := t.CurrentSnapshot(); s == nil {
		info.Rows = 0
	} else if n, err := strconv.ParseInt(s.Summary.Properties["total-records"], 10, 64); err == nil {
		info.Rows = n
	}
	return info, nil
}

// parseProgress takes a progress property apart.
func parseProgress(key, value string) (p Progress, ok bool) {
	rest, ok := strings.CutPrefix(key, progressPrefix)
	parts := strings.Split(rest, "/")
	n := len(parts)
	if !ok || n < 4 {
		return p, false
	}
	partition, err := strconv.ParseInt(parts[n-1], 10, 32)
	topic, id, found := strings.Cut(parts[n-2], "@")
	raw, idErr := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	next, nextErr := strconv.ParseInt(value, 10, 64)
	if errors.Join(err, idErr, nextErr) != nil || !found || len(raw) != 16 {
		return p, false
	}
	// Application ids may hold slashes; sinks' names are taken not to.
	p = Progress{Application: strings.Join(parts[:n-3], "/"), Sink: parts[n-3], Topic: topic, Partition: int32(partition), Next: next}
	copy(p.TopicID[:], raw)
	return p, true
}

// load opens a table to be read. done releases the catalog.
func load(ctx context.Context, name string, c Catalog) (t *table.Table, done func(), err error) {
	cat, err := c.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	done = func() {
		if closer, ok := cat.(catalog.Closer); ok {
			closer.Close()
		}
	}
	if t, err = cat.LoadTable(ctx, strings.Split(name, ".")); err != nil {
		done()
		return nil, nil, fmt.Errorf("table %s: %w", name, err)
	}
	return t, done, nil
}

// ReadRows reads all rows of a table's newest version, in no particular order, as plain Go values by column name (see
// columns.Value for what stands for what). It is for tests, tools and examples.
func ReadRows(ctx context.Context, name string, c Catalog) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		t, done, err := load(ctx, name, c)
		if err != nil {
			yield(nil, err)
			return
		}
		defer done()
		_, batches, err := t.Scan().ToArrowRecords(ctx)
		if err != nil {
			yield(nil, fmt.Errorf("table %s: %w", name, err))
			return
		}
		for rec, err := range batches {
			if err != nil {
				yield(nil, fmt.Errorf("table %s: %w", name, err))
				return
			}
			for i := range int(rec.NumRows()) {
				row := make(map[string]any, rec.NumCols())
				for n, f := range rec.Schema().Fields() {
					row[f.Name] = columns.Value(rec.Column(n), i)
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}
