package delta

import (
	"encoding/json"
	"errors"
	"fmt"
)

// checkFiles checks the added files against the metadata that they land with: partition values for exactly the partition
// columns, and no nulls where the schema says NOT NULL, as far as the statistics tell.
func (a *attempt) checkFiles() error {
	m := a.wanted
	if len(a.commit.Add) > 0 && m.Schema.allVoid() {
		return errors.New("data files can't be added: all columns are of type void")
	}
	notNull := notNullPaths(m)
	for i := range a.commit.Add {
		add := &a.commit.Add[i]
		if err := checkPartition(m, add); err != nil {
			return fmt.Errorf("data file %s: %w", add.Path, err)
		}
		if err := a.checkVector(add); err != nil {
			return fmt.Errorf("data file %s: %w", add.Path, err)
		}
		if len(notNull) == 0 || add.Stats == "" {
			continue
		}
		var stats struct {
			NullCount map[string]any `json:"nullCount"`
		}
		if err := json.Unmarshal([]byte(add.Stats), &stats); err != nil {
			return fmt.Errorf("data file %s: statistics: %w", add.Path, err)
		}
		for _, path := range notNull {
			if n := nullCount(stats.NullCount, path); n > 0 {
				return fmt.Errorf("data file %s: column %v is NOT NULL, but has %v nulls", add.Path, path, n)
			}
		}
	}
	return nil
}

// checkVector checks a file's deletion vector: a new one only where the table allows them, and never without the number of the file's rows.
func (a *attempt) checkVector(add *Add) error {
	if add.DeletionVector == nil {
		return nil
	}
	if _, ok := add.NumRecords(); !ok {
		return errors.New("it has a deletion vector, but its statistics don't tell its number of rows")
	}
	if !a.wanted.Flag(propVectors, false) && !a.removals[fileKey(add.Path, add.DeletionVector)] {
		return fmt.Errorf("it has a deletion vector, and the table property %s doesn't allow new ones", propVectors)
	}
	return nil
}

func checkPartition(m *Metadata, add *Add) error {
	if len(add.PartitionValues) != len(m.PartitionColumns) {
		return fmt.Errorf("it has %d partition values, but the table has the partition columns %v", len(add.PartitionValues), m.PartitionColumns)
	}
	for _, name := range m.PartitionColumns {
		value, ok := add.PartitionValues[m.physicalPartition(name)]
		if !ok {
			return fmt.Errorf("it has no value for the partition column %s", name)
		}
		f, _ := m.Schema.Field(name)
		switch {
		case value == nil && !f.Nullable:
			return fmt.Errorf("partition column %s is NOT NULL, but its value is null", name)
		case value != nil && *value == "":
			return fmt.Errorf("partition column %s: %w", name, ErrEmptyPartition)
		}
		if _, err := ParsePartition(f.Type, value); err != nil {
			return fmt.Errorf("partition column %s of type %s: %w", name, f.Type, err)
		}
	}
	return nil
}

// notNullPaths lists the leaf columns that are NOT NULL with all the structs around them, by their physical names.
func notNullPaths(m *Metadata) (out [][]string) {
	var walk func(path []string, s *StructType)
	walk = func(path []string, s *StructType) {
		for _, f := range s.Fields {
			if f.Nullable {
				continue
			}
			p := append(path[:len(path):len(path)], m.PhysicalName(f))
			if inner, ok := f.Type.(*StructType); ok {
				walk(p, inner)
			} else {
				out = append(out, p)
			}
		}
	}
	walk(nil, m.Schema)
	return out
}

// nullCount finds a column's null count in the statistics, 0 if it isn't there.
func nullCount(tree map[string]any, path []string) float64 {
	for _, name := range path[:len(path)-1] {
		tree, _ = tree[name].(map[string]any)
	}
	n, _ := tree[path[len(path)-1]].(float64)
	return n
}
