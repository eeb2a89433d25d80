package delta

// FileStats are the statistics of one data file for its add action (PROTOCOL.md, "Per-file Statistics").
type FileStats struct {
	NumRecords int64
	Columns    []ColumnStats // in schema order, as StatsColumns lists them
}

// ColumnStats are the statistics of one leaf column.
type ColumnStats struct {
	Path  []string // field names from the top; never through arrays or maps
	Nulls int64
	// Min and Max are JSON values made with the Append…Stat functions; nil leaves the bound out, which is always right:
	// for columns of nulls only, for floats where a NaN was seen, for types without bounds.
	Min, Max []byte
}

// StatsColumn is a column that needs statistics.
type StatsColumn struct {
	Path   []string
	Type   Type
	Bounds bool // min and max are wanted, not only the null count
}
