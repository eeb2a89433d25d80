package lake

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/parquetfile"
)

// fileStats writes what was measured of a file as Delta's statistics, for the columns that the table asks for.
func fileStats(md *delta.Metadata, rows int64, leaves []parquetfile.Leaf) string {
	s := delta.FileStats{NumRecords: rows}
	for _, c := range delta.StatsColumns(md) {
		cs := delta.ColumnStats{Path: c.Physical, Nulls: rows} // a column that the file lacks is null in every row
		if l := findLeaf(leaves, c.Physical); l != nil {
			cs.Nulls = l.Nulls
			if c.Bounds && l.HasBounds {
				cs.Min, cs.Max = bounds(l)
			}
		}
		s.Columns = append(s.Columns, cs)
	}
	return string(s.AppendJSON(nil))
}

// findLeaf finds what was measured of a column of the table, nil if the file lacks it.
func findLeaf(leaves []parquetfile.Leaf, path []string) *parquetfile.Leaf {
	i := slices.IndexFunc(leaves, func(l parquetfile.Leaf) bool { return !l.Nested && slices.Equal(l.Path, path) })
	if i < 0 {
		return nil
	}
	return &leaves[i]
}

func bounds(l *parquetfile.Leaf) (lo, hi []byte) {
	switch t := l.Type.(type) {
	case *arrow.Date32Type:
		return delta.AppendDateStat(nil, int32(l.Min.Int)), delta.AppendDateStat(nil, int32(l.Max.Int))
	case *arrow.TimestampType:
		utc := t.TimeZone != ""
		return delta.AppendTimestampStat(nil, l.Min.Int, utc), delta.AppendTimestampStat(nil, l.Max.Int, utc)
	case *arrow.Decimal128Type:
		return delta.AppendDecimalStat(nil, l.Min.Decimal.BigInt(), int(t.Scale)), delta.AppendDecimalStat(nil, l.Max.Decimal.BigInt(), int(t.Scale))
	case *arrow.Float32Type, *arrow.Float64Type:
		return delta.AppendFloatStat(nil, l.Min.Float, false), delta.AppendFloatStat(nil, l.Max.Float, true)
	case *arrow.StringType:
		return delta.AppendStringMinStat(nil, string(l.Min.Bytes)), delta.AppendStringMaxStat(nil, string(l.Max.Bytes))
	}
	return delta.AppendIntStat(nil, l.Min.Int), delta.AppendIntStat(nil, l.Max.Int)
}
