package delta

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The classic checkpoint's schema (PROTOCOL.md, "Checkpoint Schema"), with the txn's lastUpdated and the deletion vector, which
// that section leaves out but all engines write.
var (
	textMapType        = arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String)
	textListType       = listOf(arrow.BinaryTypes.String)
	deletionVectorType = structOf("storageType", arrow.BinaryTypes.String, "pathOrInlineDv", arrow.BinaryTypes.String,
		"offset", arrow.PrimitiveTypes.Int32, "sizeInBytes", arrow.PrimitiveTypes.Int32, "cardinality", arrow.PrimitiveTypes.Int64)
	txnType      = structOf("appId", arrow.BinaryTypes.String, "version", arrow.PrimitiveTypes.Int64, "lastUpdated", arrow.PrimitiveTypes.Int64)
	protocolType = structOf("minReaderVersion", arrow.PrimitiveTypes.Int32, "minWriterVersion", arrow.PrimitiveTypes.Int32,
		"readerFeatures", textListType, "writerFeatures", textListType)
	metadataType = structOf("id", arrow.BinaryTypes.String, "name", arrow.BinaryTypes.String, "description", arrow.BinaryTypes.String,
		"format", structOf("provider", arrow.BinaryTypes.String, "options", textMapType), "schemaString", arrow.BinaryTypes.String,
		"partitionColumns", textListType, "configuration", textMapType, "createdTime", arrow.PrimitiveTypes.Int64)
	domainType = structOf("domain", arrow.BinaryTypes.String, "configuration", arrow.BinaryTypes.String, "removed", arrow.FixedWidthTypes.Boolean)
	removeType = structOf("path", arrow.BinaryTypes.String, "deletionTimestamp", arrow.PrimitiveTypes.Int64, "dataChange", arrow.FixedWidthTypes.Boolean,
		"extendedFileMetadata", arrow.FixedWidthTypes.Boolean, "partitionValues", textMapType, "size", arrow.PrimitiveTypes.Int64,
		"deletionVector", deletionVectorType, "baseRowId", arrow.PrimitiveTypes.Int64, "defaultRowCommitVersion", arrow.PrimitiveTypes.Int64)
	addFields = []any{"path", arrow.BinaryTypes.String, "partitionValues", textMapType, "size", arrow.PrimitiveTypes.Int64,
		"modificationTime", arrow.PrimitiveTypes.Int64, "dataChange", arrow.FixedWidthTypes.Boolean, "tags", textMapType,
		"deletionVector", deletionVectorType, "baseRowId", arrow.PrimitiveTypes.Int64, "defaultRowCommitVersion", arrow.PrimitiveTypes.Int64,
		"clusteringProvider", arrow.BinaryTypes.String}
	sidecarType = structOf("path", arrow.BinaryTypes.String, "sizeInBytes", arrow.PrimitiveTypes.Int64,
		"modificationTime", arrow.PrimitiveTypes.Int64, "tags", textMapType)
	checkpointMetadataType = structOf("version", arrow.PrimitiveTypes.Int64, "tags", textMapType)
)

// structOf makes a struct of nullable members from names and types.
func structOf(namesAndTypes ...any) *arrow.StructType {
	fields := make([]arrow.Field, 0, len(namesAndTypes)/2)
	for i := 0; i < len(namesAndTypes); i += 2 {
		fields = append(fields, arrow.Field{Name: namesAndTypes[i].(string), Type: namesAndTypes[i+1].(arrow.DataType), Nullable: true})
	}
	return arrow.StructOf(fields...)
}

// listOf names the element as the three-level Parquet list does.
func listOf(t arrow.DataType) arrow.DataType {
	return arrow.ListOfField(arrow.Field{Name: "element", Type: t, Nullable: true})
}

// checkpointColumns builds batches of a checkpoint: a struct column for each kind of action, of which each row has one.
type checkpointColumns struct {
	schema  *arrow.Schema
	builder *array.RecordBuilder
	stats   bool

	txn, add, remove, metadata, protocol, domain, sidecar, v2 *structBuilder // nil where the file has no such column
	all                                                       []*structBuilder
}

// checkpointForm is one of the kinds of files that checkpoints consist of.
type checkpointForm int

const (
	classicForm checkpointForm = iota // all actions
	sidecarForm                       // actions on files, beside a V2 checkpoint
	v2Form                            // all others of a V2 checkpoint, with the names of its sidecars
)

func newCheckpointColumns(mem memory.Allocator, stats bool, form checkpointForm) *checkpointColumns {
	add := addFields
	if stats {
		add = append(add[:len(add):len(add)], "stats", arrow.BinaryTypes.String)
	}
	c := &checkpointColumns{stats: stats}
	var columns []any
	var places []**structBuilder
	column := func(place **structBuilder, name string, t *arrow.StructType) {
		columns, places = append(columns, name, t), append(places, place)
	}
	if form != sidecarForm {
		column(&c.txn, "txn", txnType)
	}
	// Of a V2 checkpoint's own file, too, though sidecars have these actions: Spark reads no file without the columns.
	column(&c.add, "add", structOf(add...))
	column(&c.remove, "remove", removeType)
	if form != sidecarForm {
		column(&c.metadata, "metaData", metadataType)
		column(&c.protocol, "protocol", protocolType)
		column(&c.domain, "domainMetadata", domainType)
	}
	if form == v2Form {
		column(&c.sidecar, "sidecar", sidecarType)
		column(&c.v2, "checkpointMetadata", checkpointMetadataType)
	}
	c.schema = arrow.NewSchema(structOf(columns...).Fields(), nil)
	c.builder = array.NewRecordBuilder(mem, c.schema)
	for i, place := range places {
		*place = &structBuilder{b: c.builder.Field(i).(*array.StructBuilder)}
		c.all = append(c.all, *place)
	}
	return c
}

func (c *checkpointColumns) batch() arrow.RecordBatch { return c.builder.NewRecordBatch() }

// append adds a row.
func (c *checkpointColumns) append(a *action) {
	var used *structBuilder
	switch {
	case a.add != nil:
		used = c.appendAdd(a.add)
	case a.remove != nil:
		used = c.appendRemove(a.remove)
	case a.txn != nil:
		used = c.txn.start()
		used.text(a.txn.AppID)
		used.number(a.txn.Version)
		used.numberOrNull(a.txn.LastUpdated, a.txn.LastUpdated != 0)
	case a.domain != nil:
		used = c.domain.start()
		used.text(a.domain.Domain)
		used.text(a.domain.Configuration)
		used.flag(a.domain.Removed)
	case a.metadata != nil:
		used = c.appendMetadata(a.metadata)
	case a.protocol != nil:
		used = c.appendProtocol(a.protocol)
	case a.sidecar != nil:
		used = c.sidecar.start()
		used.text(a.sidecar.Path)
		used.number(a.sidecar.SizeInBytes)
		used.number(a.sidecar.ModificationTime)
		used.texts(nil, false)
	case a.v2:
		used = c.v2.start()
		used.number(a.version)
		used.texts(nil, false)
	}
	for _, s := range c.all {
		if s != used {
			s.b.AppendNull()
		}
	}
}

func (c *checkpointColumns) appendAdd(a *Add) *structBuilder {
	s := c.add.start()
	s.text(a.Path)
	s.nullableTexts(a.PartitionValues, true)
	s.number(a.Size)
	s.number(a.ModificationTime)
	s.flag(false) // a checkpoint changes no data
	s.texts(a.Tags, a.Tags != nil)
	s.deletionVector(a.DeletionVector)
	s.optional(a.BaseRowID)
	s.optional(a.RowCommitVersion)
	s.textOrNull(a.ClusteringBy, a.ClusteringBy != "")
	if c.stats {
		s.textOrNull(a.Stats, a.Stats != "")
	}
	return s
}

func (c *checkpointColumns) appendRemove(r *Remove) *structBuilder {
	s := c.remove.start()
	s.text(r.Path)
	s.number(r.DeletionTimestamp)
	s.flag(false)
	s.flag(r.ExtendedMetadata)
	s.nullableTexts(r.PartitionValues, r.PartitionValues != nil)
	s.numberOrNull(r.Size, r.Size >= 0)
	s.deletionVector(r.DeletionVector)
	s.optional(r.BaseRowID)
	s.optional(r.RowCommitVersion)
	return s
}

func (c *checkpointColumns) appendProtocol(p *Protocol) *structBuilder {
	s := c.protocol.start()
	s.short(int32(p.MinReaderVersion))
	s.short(int32(p.MinWriterVersion))
	s.list(p.ReaderFeatures, p.MinReaderVersion >= featureReader)
	s.list(p.WriterFeatures, p.MinWriterVersion >= featureWriter)
	return s
}

func (c *checkpointColumns) appendMetadata(m *Metadata) *structBuilder {
	s := c.metadata.start()
	s.text(m.ID)
	s.textOrNull(m.Name, m.Name != "" || m.hasName)
	s.textOrNull(m.Description, m.Description != "" || m.hasDesc)
	format := s.inner().start()
	format.text(m.Format.Provider)
	format.texts(m.Format.Options, true)
	schema, _ := m.schemaString() // was parsed or marshalled before
	s.text(schema)
	s.list(m.PartitionColumns, true)
	s.texts(m.Configuration, true)
	s.numberOrNull(m.CreatedTime, m.CreatedTime != 0)
	return s
}

// structBuilder fills the members of a struct column one after the other.
type structBuilder struct {
	b    *array.StructBuilder
	next int
}

// start begins a row.
func (s *structBuilder) start() *structBuilder {
	s.b.Append(true)
	s.next = 0
	return s
}

func (s *structBuilder) member() array.Builder {
	m := s.b.FieldBuilder(s.next)
	s.next++
	return m
}

func (s *structBuilder) inner() *structBuilder {
	return &structBuilder{b: s.member().(*array.StructBuilder)}
}

func (s *structBuilder) text(v string) { s.member().(*array.StringBuilder).Append(v) }

func (s *structBuilder) textOrNull(v string, ok bool) {
	if ok {
		s.text(v)
	} else {
		s.member().AppendNull()
	}
}

func (s *structBuilder) number(v int64) { s.member().(*array.Int64Builder).Append(v) }

func (s *structBuilder) numberOrNull(v int64, ok bool) {
	if ok {
		s.number(v)
	} else {
		s.member().AppendNull()
	}
}

func (s *structBuilder) optional(v *int64) {
	if v != nil {
		s.number(*v)
	} else {
		s.member().AppendNull()
	}
}

func (s *structBuilder) short(v int32) { s.member().(*array.Int32Builder).Append(v) }

func (s *structBuilder) flag(v bool) { s.member().(*array.BooleanBuilder).Append(v) }

func (s *structBuilder) list(v []string, ok bool) {
	l := s.member().(*array.ListBuilder)
	if !ok {
		l.AppendNull()
		return
	}
	l.Append(true)
	for _, text := range v {
		l.ValueBuilder().(*array.StringBuilder).Append(text)
	}
}

func (s *structBuilder) texts(v map[string]string, ok bool) {
	m := s.member().(*array.MapBuilder)
	if !ok {
		m.AppendNull()
		return
	}
	m.Append(true)
	for _, k := range sortedKeys(v) {
		m.KeyBuilder().(*array.StringBuilder).Append(k)
		m.ItemBuilder().(*array.StringBuilder).Append(v[k])
	}
}

func (s *structBuilder) nullableTexts(v map[string]*string, ok bool) {
	m := s.member().(*array.MapBuilder)
	if !ok {
		m.AppendNull()
		return
	}
	m.Append(true)
	for _, k := range sortedKeys(v) {
		m.KeyBuilder().(*array.StringBuilder).Append(k)
		if v[k] == nil {
			m.ItemBuilder().AppendNull()
		} else {
			m.ItemBuilder().(*array.StringBuilder).Append(*v[k])
		}
	}
}

func (s *structBuilder) deletionVector(v *DeletionVector) {
	if v == nil {
		s.member().AppendNull()
		return
	}
	d := s.inner().start()
	d.text(v.StorageType)
	d.text(v.PathOrInlineDv)
	if v.Offset != nil {
		d.short(*v.Offset)
	} else {
		d.member().AppendNull()
	}
	d.short(v.SizeInBytes)
	d.number(v.Cardinality)
}
