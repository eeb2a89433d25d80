package lake

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
)

// ErrNoTable says that there is no table at a place.
var ErrNoTable = delta.ErrNoTable

// TableInfo is what Show tells about a table.
type TableInfo struct {
	Place            string
	Version          int64
	ID               string
	Name             string
	Description      string
	MinReaderVersion int
	MinWriterVersion int
	Features         []string // of readers and writers, by name
	Rows             int64    // of the live files by their statistics; -1 if one has none
	Files            int64
	Bytes            int64
	Columns          []ColumnInfo
	PartitionColumns []string
	Properties       map[string]string
	Progress         []Progress // by application id
	History          []CommitInfo
}

// ColumnInfo is a column of a table, nested ones by their path.
type ColumnInfo struct {
	Name     string // "customer.address.zip"; elements of lists and values of maps are "element" and "value"
	Type     string
	Nullable bool
	Comment  string
	Tags     map[string]any // field metadata beside the comment
}

// CommitInfo is one commit of a table's log.
type CommitInfo struct {
	Version   int64
	Time      time.Time // the writer's clock, or the store's where the commit has none
	Operation string
	Engine    string
	Rows      string // of the commit's metrics; empty if it has none
	Added     int    // files
	Removed   int
	Bytes     int64 // of the added files
	Metadata  bool  // the commit changed metadata
	// SourceOffsets tells from where to where the sources moved, such as "orders-0:17-42" (42 being the next to read); empty for
	// commits of others. Sources has it in full, as JSON.
	SourceOffsets string
	Sources       json.RawMessage
}

// Show reads a table's newest version for people. At most history commits are listed, newest first.
func Show(ctx context.Context, place string, history int) (*TableInfo, error) {
	store, err := openToRead(ctx, place)
	if err != nil {
		return nil, err
	}
	return showStore(ctx, store, place, history)
}

// openToRead opens the store at a place without making a folder there.
func openToRead(ctx context.Context, place string) (object.Store, error) {
	if !strings.Contains(place, "://") {
		if _, err := os.Stat(place); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoTable, err)
		}
	}
	return object.Open(ctx, place)
}

func showStore(ctx context.Context, store object.Store, place string, history int) (*TableInfo, error) {
	t, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		return nil, err
	}
	snap, err := t.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	h := snap.Head
	info := &TableInfo{Place: place, Version: h.Version, ID: h.Metadata.ID, Name: h.Metadata.Name, Description: h.Metadata.Description,
		MinReaderVersion: h.Protocol.MinReaderVersion, MinWriterVersion: h.Protocol.MinWriterVersion,
		PartitionColumns: h.Metadata.PartitionColumns, Properties: h.Metadata.Configuration}
	info.Features = append(append(info.Features, h.Protocol.ReaderFeatures...), h.Protocol.WriterFeatures...)
	slices.Sort(info.Features)
	info.Features = slices.Compact(info.Features)
	info.Columns = columnInfos(nil, "", h.Metadata.Schema)
	info.Progress = progressOf(h)
	if err := info.count(ctx, snap); err != nil {
		return nil, err
	}
	return info, info.history(ctx, t, history)
}

// count sums up the live files.
func (i *TableInfo) count(ctx context.Context, snap *delta.Snapshot) error {
	for add, err := range snap.Files(ctx) {
		if err != nil {
			return err
		}
		i.Files++
		i.Bytes += add.Size
		n, ok := add.NumRecords()
		if dv := add.DeletionVector; dv != nil {
			n -= dv.Cardinality
		}
		if !ok || i.Rows < 0 {
			i.Rows = -1
			continue
		}
		i.Rows += n
	}
	return nil
}

func (i *TableInfo) history(ctx context.Context, t *delta.Table, limit int) error {
	if limit <= 0 {
		return nil
	}
	for e, err := range t.History(ctx) {
		if err != nil {
			return err
		}
		if i.History = append(i.History, commitInfo(&e)); len(i.History) == limit {
			return nil
		}
	}
	return nil
}

func commitInfo(e *delta.HistoryEntry) CommitInfo {
	c := CommitInfo{Version: e.Version, Time: e.Modified, Added: e.Adds, Removed: e.Removes, Bytes: e.AddBytes, Metadata: e.Metadata}
	if e.Info == nil {
		return c
	}
	c.Operation, c.Engine, c.Rows, c.Sources = e.Info.Operation, e.Info.EngineInfo, e.Info.OperationMetrics["numOutputRows"], e.Info.Extra["tributary"]
	c.SourceOffsets = e.Info.OperationMetrics["sourceOffsets"]
	if e.Info.Timestamp > 0 {
		c.Time = time.UnixMilli(e.Info.Timestamp)
	}
	return c
}

// columnInfos lists the fields of a schema, each before what is in it.
func columnInfos(out []ColumnInfo, path string, s *delta.StructType) []ColumnInfo {
	for _, f := range s.Fields {
		name := f.Name
		if path != "" {
			name = path + "." + f.Name
		}
		c := ColumnInfo{Name: name, Type: f.Type.String(), Nullable: f.Nullable, Comment: f.Metadata.Comment()}
		for _, k := range f.Metadata.Keys() {
			if k == delta.CommentKey {
				continue
			}
			raw, _ := f.Metadata.Get(k)
			var v any
			if json.Unmarshal(raw, &v) != nil {
				v = string(raw)
			}
			if c.Tags == nil {
				c.Tags = map[string]any{}
			}
			c.Tags[k] = v
		}
		out = inner(append(out, c), name, f.Type)
	}
	return out
}

func inner(out []ColumnInfo, path string, t delta.Type) []ColumnInfo {
	switch t := t.(type) {
	case *delta.StructType:
		return columnInfos(out, path, t)
	case *delta.ArrayType:
		return inner(out, path+".element", t.Element)
	case *delta.MapType:
		return inner(out, path+".value", t.Value)
	}
	return out
}

// ReadProgress reads how far a table's newest version has come, by application id. It needs the newest checksum and the end of
// the log only, however long that is.
func ReadProgress(ctx context.Context, place string) (version int64, progress []Progress, err error) {
	store, err := openToRead(ctx, place)
	if err != nil {
		return 0, nil, err
	}
	t, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		return 0, nil, err
	}
	h := t.Head()
	return h.Version, progressOf(h), nil
}

// progressOf lists the progress that a version shows, by application id. Claims of upkeep are no progress.
func progressOf(h *delta.Head) (out []Progress) {
	for _, id := range slices.Sorted(maps.Keys(h.Txns)) {
		if !strings.HasPrefix(id, claimPrefix) {
			out = append(out, parseProgress(h.Txns[id]))
		}
	}
	return out
}
