package parquetfile

import "github.com/apache/arrow-go/v18/arrow"

// RowGroups divides rows into parts that a Stream makes a row group of each, so that who writes several files can end one between two of them.
func RowGroups(rec arrow.RecordBatch, opts Options) (out []arrow.RecordBatch) {
	n := max(1, (MemorySize(rec)+opts.RowGroupBytes-1)/opts.RowGroupBytes)
	size := max(1, min((rec.NumRows()+n-1)/n, opts.RowGroupRows))
	if size >= rec.NumRows() {
		return []arrow.RecordBatch{rec}
	}
	for from := int64(0); from < rec.NumRows(); from += size {
		out = append(out, rec.NewSlice(from, min(from+size, rec.NumRows())))
	}
	return out
}
