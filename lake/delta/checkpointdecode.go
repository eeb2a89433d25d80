package delta

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// decodeActions calls fn for each row of a batch of a checkpoint. Each top-level column is a struct that is null except in the
// rows of its kind.
func decodeActions(batch arrow.RecordBatch, fn func(*action) error) error {
	columns := map[string]structColumn{}
	for i, f := range batch.Schema().Fields() {
		if s, ok := batch.Column(i).(*array.Struct); ok {
			columns[f.Name] = newStructColumn(s)
		}
	}
	for row := range int(batch.NumRows()) {
		a, err := decodeAction(columns, row)
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		if err := fn(a); err != nil {
			return &stopError{err}
		}
	}
	return nil
}

func decodeAction(columns map[string]structColumn, row int) (*action, error) {
	a := &action{}
	var err error
	if c, ok := columns["add"]; ok && c.has(row) {
		a.add, err = c.add(row)
		return a, err
	}
	if c, ok := columns["remove"]; ok && c.has(row) {
		a.remove, err = c.remove(row)
		return a, err
	}
	if c, ok := columns["txn"]; ok && c.has(row) {
		id, ok1 := c.text("appId", row)
		version, ok2 := c.number("version", row)
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("txn without appId or version")
		}
		updated, _ := c.number("lastUpdated", row)
		a.txn = &Txn{id, version, updated}
	}
	if c, ok := columns["protocol"]; ok && c.has(row) {
		a.protocol, err = c.protocol(row)
	}
	if c, ok := columns["metaData"]; ok && c.has(row) {
		a.metadata, err = c.metadata(row)
	}
	if c, ok := columns["domainMetadata"]; ok && c.has(row) {
		a.domain = &Domain{Removed: c.flag("removed", row)}
		a.domain.Domain, _ = c.text("domain", row)
		a.domain.Configuration, _ = c.text("configuration", row)
	}
	if c, ok := columns["sidecar"]; ok && c.has(row) {
		a.sidecar = &Sidecar{}
		a.sidecar.Path, _ = c.text("path", row)
		a.sidecar.SizeInBytes, _ = c.number("sizeInBytes", row)
		a.sidecar.ModificationTime, _ = c.number("modificationTime", row)
	}
	if c, ok := columns["checkpointMetadata"]; ok && c.has(row) {
		a.v2 = true
	}
	return a, err
}

// structColumn gives access to the members of a struct column by name. Members that the file lacks are null.
type structColumn struct {
	array   *array.Struct
	members map[string]arrow.Array
}

func newStructColumn(s *array.Struct) structColumn {
	c := structColumn{s, map[string]arrow.Array{}}
	for i, f := range s.DataType().(*arrow.StructType).Fields() {
		c.members[f.Name] = s.Field(i)
	}
	return c
}

func (c structColumn) has(row int) bool { return c.array.IsValid(row) }

func (c structColumn) value(name string, row int) (arrow.Array, bool) {
	m := c.members[name]
	return m, m != nil && m.IsValid(row)
}

func (c structColumn) text(name string, row int) (string, bool) {
	m, ok := c.value(name, row)
	if !ok {
		return "", false
	}
	return textAt(m, row)
}

func textAt(a arrow.Array, i int) (string, bool) {
	switch a := a.(type) {
	case array.StringLike:
		return a.Value(i), true
	case *array.Binary:
		return string(a.Value(i)), true
	case *array.Dictionary:
		return textAt(a.Dictionary(), a.GetValueIndex(i))
	}
	return "", false
}

func (c structColumn) number(name string, row int) (int64, bool) {
	m, ok := c.value(name, row)
	if !ok {
		return 0, false
	}
	switch m := m.(type) {
	case *array.Int64:
		return m.Value(row), true
	case *array.Int32:
		return int64(m.Value(row)), true
	}
	return 0, false
}

func (c structColumn) flag(name string, row int) bool {
	m, ok := c.value(name, row)
	b, isBool := m.(*array.Boolean)
	return ok && isBool && b.Value(row)
}

func (c structColumn) optional(name string, row int) *int64 {
	if n, ok := c.number(name, row); ok {
		return &n
	}
	return nil
}

func (c structColumn) inner(name string, row int) (structColumn, bool) {
	m, ok := c.value(name, row)
	s, isStruct := m.(*array.Struct)
	if !ok || !isStruct {
		return structColumn{}, false
	}
	return newStructColumn(s), true
}

func (c structColumn) texts(name string, row int) []string {
	m, ok := c.value(name, row)
	list, isList := m.(array.ListLike)
	if !ok || !isList {
		return nil
	}
	start, end := list.ValueOffsets(row)
	out := make([]string, 0, end-start)
	for i := start; i < end; i++ {
		s, _ := textAt(list.ListValues(), int(i))
		out = append(out, s)
	}
	return out
}

// nullableTexts reads a map of texts whose values may be null; nil if the map itself is null.
func (c structColumn) nullableTexts(name string, row int) map[string]*string {
	m, ok := c.value(name, row)
	entries, isMap := m.(*array.Map)
	if !ok || !isMap {
		return nil
	}
	start, end := entries.ValueOffsets(row)
	out := make(map[string]*string, end-start)
	for i := int(start); i < int(end); i++ {
		key, _ := textAt(entries.Keys(), i)
		out[key] = nil
		if entries.Items().IsValid(i) {
			if value, ok := textAt(entries.Items(), i); ok {
				out[key] = &value
			}
		}
	}
	return out
}

func (c structColumn) textMap(name string, row int) map[string]string {
	nullable := c.nullableTexts(name, row)
	if nullable == nil {
		return nil
	}
	out := make(map[string]string, len(nullable))
	for k, v := range nullable {
		if v != nil {
			out[k] = *v
		}
	}
	return out
}

func (c structColumn) add(row int) (*Add, error) {
	a := &Add{
		PartitionValues:  c.nullableTexts("partitionValues", row),
		DataChange:       c.flag("dataChange", row),
		Tags:             c.textMap("tags", row),
		DeletionVector:   c.deletionVector(row),
		BaseRowID:        c.optional("baseRowId", row),
		RowCommitVersion: c.optional("defaultRowCommitVersion", row),
	}
	var ok bool
	if a.Path, ok = c.text("path", row); !ok {
		return nil, fmt.Errorf("add without path")
	}
	a.Size, _ = c.number("size", row)
	a.ModificationTime, _ = c.number("modificationTime", row)
	a.ClusteringBy, _ = c.text("clusteringProvider", row)
	if a.Stats, ok = c.text("stats", row); !ok {
		if parsed, ok := c.value("stats_parsed", row); ok {
			a.Stats = string(appendParsedStats(nil, parsed, row))
		}
	}
	return a, nil
}

func (c structColumn) remove(row int) (*Remove, error) {
	r := &Remove{
		DataChange:       c.flag("dataChange", row),
		ExtendedMetadata: c.flag("extendedFileMetadata", row),
		PartitionValues:  c.nullableTexts("partitionValues", row),
		Size:             -1,
		DeletionVector:   c.deletionVector(row),
		BaseRowID:        c.optional("baseRowId", row),
		RowCommitVersion: c.optional("defaultRowCommitVersion", row),
	}
	var ok bool
	if r.Path, ok = c.text("path", row); !ok {
		return nil, fmt.Errorf("remove without path")
	}
	r.DeletionTimestamp, _ = c.number("deletionTimestamp", row)
	if size, ok := c.number("size", row); ok {
		r.Size = size
	}
	return r, nil
}

func (c structColumn) deletionVector(row int) *DeletionVector {
	v, ok := c.inner("deletionVector", row)
	if !ok {
		return nil
	}
	dv := &DeletionVector{}
	dv.StorageType, _ = v.text("storageType", row)
	dv.PathOrInlineDv, _ = v.text("pathOrInlineDv", row)
	if offset, ok := v.number("offset", row); ok {
		short := int32(offset)
		dv.Offset = &short
	}
	size, _ := v.number("sizeInBytes", row)
	dv.SizeInBytes = int32(size)
	dv.Cardinality, _ = v.number("cardinality", row)
	return dv
}

func (c structColumn) protocol(row int) (*Protocol, error) {
	reader, ok1 := c.number("minReaderVersion", row)
	writer, ok2 := c.number("minWriterVersion", row)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("protocol without minReaderVersion or minWriterVersion")
	}
	return &Protocol{int(reader), int(writer), c.texts("readerFeatures", row), c.texts("writerFeatures", row)}, nil
}

func (c structColumn) metadata(row int) (*Metadata, error) {
	m := &Metadata{PartitionColumns: c.texts("partitionColumns", row), Configuration: c.textMap("configuration", row)}
	m.ID, _ = c.text("id", row)
	m.Name, m.hasName = c.text("name", row)
	m.Description, m.hasDesc = c.text("description", row)
	m.CreatedTime, _ = c.number("createdTime", row)
	m.schemaText, _ = c.text("schemaString", row)
	if format, ok := c.inner("format", row); ok {
		m.Format.Provider, _ = format.text("provider", row)
		m.Format.Options = format.textMap("options", row)
	}
	return m, m.parseSchema()
}
