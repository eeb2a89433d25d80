package delta

import "encoding/json"

// Modes of column mapping (PROTOCOL.md, "Column Mapping"): how the columns of data files are found.
const (
	MappingNone = "none" // by the names of the schema
	MappingName = "name" // by the physical names that the schema's fields carry
	MappingID   = "id"   // by the field ids that the schema's fields carry
)

// Keys of field metadata under column mapping, and the table property that counts the ids.
const (
	keyColumnID     = "delta.columnMapping.id"
	keyPhysicalName = "delta.columnMapping.physicalName"
	propMaxColumnID = "delta.columnMapping.maxColumnId"
)

// ColumnMapping returns the table's mode of column mapping. In modes other than MappingNone, data files, statistics and partition values
// have the fields' physical names in place of their own.
func (m *Metadata) ColumnMapping() string {
	switch mode := m.Configuration[propColumnMapping]; mode {
	case MappingName, MappingID:
		return mode
	}
	return MappingNone
}

// PhysicalName is the name that a field of the schema has in data files, statistics and partition values.
func (m *Metadata) PhysicalName(f Field) string {
	if m.ColumnMapping() == MappingNone {
		return f.Name
	}
	if name := f.Metadata.Text(keyPhysicalName); name != "" {
		return name
	}
	return f.Name
}

// ColumnID is the field's id under column mapping; ok=false if it has none.
func (f Field) ColumnID() (id int32, ok bool) {
	raw, ok := f.Metadata.Get(keyColumnID)
	if !ok || json.Unmarshal(raw, &id) != nil {
		return 0, false
	}
	return id, true
}

// physicalPartition returns the keys of partition values, by the names of the partition columns.
func (m *Metadata) physicalPartition(name string) string {
	f, ok := m.Schema.Field(name)
	if !ok {
		return name
	}
	return m.PhysicalName(f)
}

// PartitionValue returns a file's value of the partition column with that name in the schema; nil is null.
func (m *Metadata) PartitionValue(a *Add, name string) *string {
	return a.PartitionValues[m.physicalPartition(name)]
}
