package delta

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

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
	switch mode := strings.ToLower(m.Configuration[propColumnMapping]); mode { // Spark takes them in any case, and keeps them as they were written
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

// mapNewFields gives the fields of the schema that have no id yet, at any depth, the next ids and random physical names, as PROTOCOL.md wants of writers:
// no id or name that any file may hold is ever used for another column.
func (m *Metadata) mapNewFields() {
	last := m.Number(propMaxColumnID, 0)
	eachField(m.Schema, func(f Field) {
		if id, ok := f.ColumnID(); ok {
			last = max(last, int64(id))
		}
	})
	schema := mapFields(m.Schema, &last).(*StructType)
	if schema == m.Schema {
		return
	}
	m.Schema = schema
	if m.Configuration == nil {
		m.Configuration = map[string]string{}
	}
	m.Configuration[propMaxColumnID] = strconv.FormatInt(last, 10)
}

// eachField calls f for the fields of all structs in a type.
func eachField(t Type, f func(Field)) {
	switch t := t.(type) {
	case *StructType:
		for _, field := range t.Fields {
			f(field)
			eachField(field.Type, f)
		}
	case *ArrayType:
		eachField(t.Element, f)
	case *MapType:
		eachField(t.Key, f)
		eachField(t.Value, f)
	}
}

// mapFields returns t with ids and physical names for fields that have none, and t itself if all have. last is the greatest id so far.
func mapFields(t Type, last *int64) Type {
	switch t := t.(type) {
	case *StructType:
		fields := slices.Clone(t.Fields)
		changed := false
		for i, f := range fields {
			if _, ok := f.ColumnID(); !ok {
				*last++
				fields[i].Metadata = f.Metadata.With(keyColumnID, *last).With(keyPhysicalName, "col-"+uuid.NewString())
				changed = true
			}
			fields[i].Type = mapFields(f.Type, last)
			changed = changed || fields[i].Type != f.Type
		}
		if changed {
			return &StructType{Fields: fields, extra: t.extra}
		}
	case *ArrayType:
		if element := mapFields(t.Element, last); element != t.Element {
			return &ArrayType{Element: element, ContainsNull: t.ContainsNull, extra: t.extra}
		}
	case *MapType:
		key, value := mapFields(t.Key, last), mapFields(t.Value, last)
		if key != t.Key || value != t.Value {
			return &MapType{Key: key, Value: value, ValueContainsNull: t.ValueContainsNull, extra: t.extra}
		}
	}
	return t
}
