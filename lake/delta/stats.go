package delta

import (
	"encoding/json"
	"slices"
	"strings"
)

// FileStats are the statistics of one data file for its add action (PROTOCOL.md, "Per-file Statistics").
type FileStats struct {
	NumRecords int64
	Columns    []ColumnStats // in schema order, as StatsColumns lists them
}

// ColumnStats are the statistics of one leaf column.
type ColumnStats struct {
	Path []string // physical field names from the top; never through arrays or maps
	// Nulls counts the rows in which the column, or a struct around it, is null.
	Nulls int64
	// Min and Max are JSON values made with the Append…Stat functions; nil leaves the bound out, which is always right:
	// for columns of nulls only, for floats where a NaN was seen, for types without bounds.
	Min, Max []byte
}

// StatsColumn is a column that needs statistics.
type StatsColumn struct {
	Path     []string // names of the schema
	Physical []string // names in data files and statistics: the same but for tables with column mapping
	Type     Type
	Bounds   bool // min and max are wanted, not only the null count
}

// defaultIndexedCols is how many leaf columns get statistics if the table doesn't say.
const defaultIndexedCols = 32

// StatsColumns lists the leaf columns that need statistics, in schema order: those named by the property
// delta.dataSkippingStatsColumns, else the first delta.dataSkippingNumIndexedCols ones (32; -1 means all). Arrays and maps
// count as one leaf, with null counts only. Partition columns have no statistics, since the log has their values.
func StatsColumns(m *Metadata) []StatsColumn {
	var all []StatsColumn
	for _, f := range m.Schema.Fields {
		if !slices.Contains(m.PartitionColumns, f.Name) {
			all = m.appendLeaves(all, nil, nil, f)
		}
	}
	if list, ok := m.Configuration[propStatsColumns]; ok {
		wanted := parseColumnList(list)
		return slices.DeleteFunc(all, func(c StatsColumn) bool { return !isListed(c.Path, wanted) })
	}
	n := m.Number(propIndexedCols, defaultIndexedCols)
	if n < 0 || n > int64(len(all)) {
		n = int64(len(all))
	}
	return all[:n]
}

func (m *Metadata) appendLeaves(out []StatsColumn, path, physical []string, f Field) []StatsColumn {
	path, physical = append(slices.Clone(path), f.Name), append(slices.Clone(physical), m.PhysicalName(f))
	if s, ok := f.Type.(*StructType); ok {
		for _, inner := range s.Fields {
			out = m.appendLeaves(out, path, physical, inner)
		}
		return out
	}
	if f.Type == Void {
		return out // not in the files
	}
	return append(out, StatsColumn{path, physical, f.Type, hasBounds(f.Type)})
}

func hasBounds(t Type) bool {
	p, ok := t.(Primitive)
	if !ok {
		return false
	}
	switch p {
	case String, Long, Integer, Short, Byte, Float, Double, Date, Timestamp, TimestampNTZ:
		return true
	}
	_, _, ok = p.DecimalParts()
	return ok
}

// parseColumnList splits "a, b.c, `odd.name`.d" into paths.
func parseColumnList(list string) (out [][]string) {
	var path []string
	var name strings.Builder
	quoted := false
	end := func() { path = append(path, strings.TrimSpace(name.String())); name.Reset() }
	for _, c := range list + "," {
		switch {
		case c == '`':
			quoted = !quoted
		case quoted:
			name.WriteRune(c)
		case c == '.':
			end()
		case c == ',':
			end()
			out, path = append(out, path), nil
		default:
			name.WriteRune(c)
		}
	}
	return out
}

// isListed says whether a leaf or a struct around it is in the list. Names are compared without case, as readers do.
func isListed(path []string, list [][]string) bool {
	return slices.ContainsFunc(list, func(want []string) bool {
		return len(want) <= len(path) && slices.EqualFunc(want, path[:len(want)], strings.EqualFold)
	})
}

// AppendJSON appends the statistics as the add action's stats string holds them.
func (s *FileStats) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"numRecords":`...)
	dst = append(dst, itoa(s.NumRecords)...)
	dst = append(dst, `,"minValues":`...)
	dst = appendTree(dst, s.Columns, 0, func(c *ColumnStats) []byte { return c.Min })
	dst = append(dst, `,"maxValues":`...)
	dst = appendTree(dst, s.Columns, 0, func(c *ColumnStats) []byte { return c.Max })
	dst = append(dst, `,"nullCount":`...)
	dst = appendTree(dst, s.Columns, 0, func(c *ColumnStats) []byte { return []byte(itoa(c.Nulls)) })
	return append(dst, '}')
}

// appendTree appends the columns' values as nested objects. Columns that share a path prefix stand together.
func appendTree(dst []byte, cols []ColumnStats, depth int, value func(*ColumnStats) []byte) []byte {
	dst = append(dst, '{')
	first := true
	for len(cols) > 0 {
		name := cols[0].Path[depth]
		n := 1
		for n < len(cols) && len(cols[n].Path) > depth && cols[n].Path[depth] == name {
			n++
		}
		group := cols[:n]
		cols = cols[n:]
		if !slices.ContainsFunc(group, func(c ColumnStats) bool { return value(&c) != nil }) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendJSONString(dst, name), ':')
		if len(group[0].Path) == depth+1 {
			dst = append(dst, value(&group[0])...)
		} else {
			dst = appendTree(dst, group, depth+1, value)
		}
	}
	return append(dst, '}')
}

// NumRecords reads the number of records out of an add action's statistics, ok=false if there is none.
func (a *Add) NumRecords() (n int64, ok bool) {
	if a.Stats == "" {
		return 0, false
	}
	var s struct {
		NumRecords *int64 `json:"numRecords"`
	}
	if json.Unmarshal([]byte(a.Stats), &s) != nil || s.NumRecords == nil {
		return 0, false
	}
	return *s.NumRecords, true
}

// LooseStats are the file's statistics once rows of it are deleted by a deletion vector: how many rows are in the file, and bounds and null counts
// that may be wider than the rows that are left (PROTOCOL.md, "Per-file Statistics", tightBounds). rows counts where the file has no statistics.
func (a *Add) LooseStats(rows int64) string {
	entries, err := readObject([]byte(a.Stats))
	if n, ok := a.NumRecords(); err != nil || !ok || n < 0 {
		return `{"numRecords":` + itoa(rows) + `,"tightBounds":false}`
	}
	var w objectWriter
	for _, e := range entries {
		if e.key != "tightBounds" {
			w.raw(e.key, e.value)
		}
	}
	w.value("tightBounds", false)
	out, err := w.done()
	if err != nil {
		return `{"numRecords":` + itoa(rows) + `,"tightBounds":false}`
	}
	return string(out)
}
