package delta

import (
	"encoding/json"
	"maps"
	"slices"
)

// Protocol says which readers and writers may touch the table. At reader version 3 and writer version 7 the features are
// listed by name (PROTOCOL.md, "Protocol Evolution", "Table Features").
type Protocol struct {
	MinReaderVersion int
	MinWriterVersion int
	ReaderFeatures   []string // only at reader version 3; nil otherwise
	WriterFeatures   []string // only at writer version 7; nil otherwise
}

// Metadata is a table's metaData action: it replaces the former one whole, so whoever changes it copies all that stays.
type Metadata struct {
	ID               string // GUID; the table's identity, never changes
	Name             string
	Description      string // the table's comment
	Format           Format
	Schema           *StructType // never nil
	PartitionColumns []string
	Configuration    map[string]string // table properties; "delta." keys are the protocol's, others the users'
	CreatedTime      int64             // ms; 0 if unknown
	hasName, hasDesc bool              // an empty string was written, which is not the same bytes as none
	schemaText       string            // as read, so that what isn't changed is written back byte-equal…
	schemaRead       *StructType       // …which holds as long as Schema is this one
	extra            extraKeys
}

// Format names the data files' format: parquet, always, in tables that this package writes.
type Format struct {
	Provider string            `json:"provider"`
	Options  map[string]string `json:"options"`
}

// Add says that a data file belongs to the table.
type Add struct {
	Path             string             // as in the log: relative to the table or absolute, percent-encoded. See EncodePath and Add.Name
	PartitionValues  map[string]*string // one for each partition column; nil is null
	Size             int64              // bytes
	ModificationTime int64              // ms
	DataChange       bool
	Stats            string // JSON, see Stats; "" for none
	Tags             map[string]string
	DeletionVector   *DeletionVector
	BaseRowID        *int64
	RowCommitVersion *int64 // defaultRowCommitVersion
	ClusteringBy     string // clusteringProvider
}

// Remove says that a data file belongs to the table no longer. It stays in the log as a tombstone for a while.
type Remove struct {
	Path              string
	DeletionTimestamp int64 // ms
	DataChange        bool
	ExtendedMetadata  bool               // extendedFileMetadata: the fields below are filled
	PartitionValues   map[string]*string // nil if unknown
	Size              int64              // -1 if unknown
	DeletionVector    *DeletionVector
	BaseRowID         *int64
	RowCommitVersion  *int64
}

// DeletionVector points to the set of a file's rows that are deleted (PROTOCOL.md, "Deletion Vectors"). A file's identity in
// the log is its path together with its deletion vector.
type DeletionVector struct {
	StorageType    string `json:"storageType"`
	PathOrInlineDv string `json:"pathOrInlineDv"`
	Offset         *int32 `json:"offset,omitempty"`
	SizeInBytes    int32  `json:"sizeInBytes"`
	Cardinality    int64  `json:"cardinality"`
}

// UniqueID identifies the vector within the table.
func (d *DeletionVector) UniqueID() string {
	if d == nil {
		return ""
	}
	id := d.StorageType + d.PathOrInlineDv
	if d.Offset != nil {
		id += "@" + itoa(int64(*d.Offset))
	}
	return id
}

// Txn is the progress of one application id (PROTOCOL.md, "Transaction Identifiers"). For a sink of this project the version
// is a Kafka offset.
type Txn struct {
	AppID       string `json:"appId"`
	Version     int64  `json:"version"`
	LastUpdated int64  `json:"lastUpdated,omitempty"` // ms; 0 if unknown
}

// Domain is a domainMetadata action: configuration of one feature or user, under its own name.
type Domain struct {
	Domain        string `json:"domain"`
	Configuration string `json:"configuration"`
	Removed       bool   `json:"removed"`
}

// CommitInfo is the provenance of a commit. It is free-form by the specification; these are the keys that engines write and
// read. Extra holds all others as raw JSON.
type CommitInfo struct {
	Timestamp           int64 // ms, the writer's clock
	InCommitTimestamp   int64 // ms; 0 if none
	Operation           string
	OperationParameters map[string]string
	OperationMetrics    map[string]string
	IsBlindAppend       bool
	EngineInfo          string
	TxnID               string // unique for each commit: tells whose commit it is after a lost reply
	ReadVersion         int64  // -1 if none
	UserMetadata        string
	Extra               map[string]json.RawMessage
}

// Sidecar points to a file of a V2 checkpoint that holds add and remove actions.
type Sidecar struct {
	Path             string // relative to _delta_log/_sidecars, or absolute
	SizeInBytes      int64
	ModificationTime int64
}

// Clone returns a copy that shares nothing that can be changed.
func (p Protocol) Clone() Protocol {
	p.ReaderFeatures = slices.Clone(p.ReaderFeatures)
	p.WriterFeatures = slices.Clone(p.WriterFeatures)
	return p
}

// Clone returns a copy that may be changed, except that the schema is shared: schemas are immutable, replace them whole.
func (m *Metadata) Clone() *Metadata {
	c := *m
	c.PartitionColumns = slices.Clone(m.PartitionColumns)
	c.Configuration = maps.Clone(m.Configuration)
	c.Format.Options = maps.Clone(m.Format.Options)
	return &c
}

// WithSchema returns a copy with another schema. Under column mapping, fields of it that have no id yet get one, and a physical name of
// their own: they are new.
func (m *Metadata) WithSchema(s *StructType) *Metadata {
	c := m.Clone()
	c.Schema = s
	if c.ColumnMapping() != MappingNone {
		c.mapNewFields()
	}
	return c
}
