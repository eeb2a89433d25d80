package datafile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tributary-io/tributary/lake/columns"
)

// Row returns one row of a batch as plain Go values by the columns' names in the table's schema, at every depth. See columns.Value for
// what stands for what. It serves tools and tests, not hot paths.
func (l *Layout) Row(rec arrow.RecordBatch, i int) map[string]any {
	out := make(map[string]any, len(l.columns))
	for n := range l.columns {
		out[l.columns[n].name] = l.columns[n].value(rec.Column(n), i)
	}
	return out
}

func (c *column) value(a arrow.Array, i int) any {
	if len(c.inner) == 0 || a.IsNull(i) {
		return columns.Value(a, i)
	}
	switch a := a.(type) {
	case *array.Struct:
		out := make(map[string]any, len(c.inner))
		for n := range c.inner {
			out[c.inner[n].name] = c.inner[n].value(a.Field(n), i)
		}
		return out
	case *array.Map:
		out := map[string]any{}
		from, to := a.ValueOffsets(i)
		for j := int(from); j < int(to); j++ {
			out[fmt.Sprint(c.inner[0].value(a.Keys(), j))] = c.inner[1].value(a.Items(), j)
		}
		return out
	case *array.List:
		out := []any{}
		from, to := a.ValueOffsets(i)
		for j := int(from); j < int(to); j++ {
			out = append(out, c.inner[0].value(a.ListValues(), j))
		}
		return out
	}
	return columns.Value(a, i)
}
