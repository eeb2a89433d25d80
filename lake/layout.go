package lake

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/rows"
	"github.com/tributary-io/tributary/lake/sink"
)

// layout is a Delta sink's rows: their columns, and which of them are partition columns. It is immutable.
type layout struct {
	*rows.Layout
	partitions []int  // places of partition columns in the schema
	textParts  []int  // numbers of the partition columns of strings
	rest       []int  // places of the others, which are in the files
	state      *state // nil: the sink appends
}

// newLayout lays out the rows of a stream of the given types, and returns every problem.
func newLayout(o *options, key, value reflect.Type) (*layout, []error) {
	common, errs := rows.New(&o.Options, key, value)
	if len(errs) > 0 {
		return nil, errs
	}
	l := &layout{Layout: common}
	errs = l.setPartitions(append(common.Partitions, o.partitions...))
	if o.state != nil {
		var more []error
		l.state, more = newState(o, l)
		errs = append(errs, more...)
	}
	return l, errs
}

// setPartitions finds the partition columns.
func (l *layout) setPartitions(names []string) (errs []error) {
	for _, name := range names {
		i := l.Schema.Index(name)
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("PartitionBy: there is no column %q", name))
		case slices.Contains(l.partitions, i):
		case !canPartition(l.Schema.Fields[i].Type.Kind):
			errs = append(errs, fmt.Errorf("PartitionBy: column %s of type %s can't be a partition column", name, &l.Schema.Fields[i].Type))
		default:
			l.partitions = append(l.partitions, i)
			if l.Schema.Fields[i].Type.Kind == columns.String {
				l.textParts = append(l.textParts, l.Schema.ColumnOf(i))
			}
		}
	}
	for i := range l.Schema.Fields {
		if !slices.Contains(l.partitions, i) {
			l.rest = append(l.rest, i)
		}
	}
	if len(l.rest) == 0 {
		errs = append(errs, errors.New("PartitionBy: every column is a partition column, so that nothing is left for the files"))
	}
	return errs
}

func canPartition(k columns.Kind) bool {
	return k != columns.Struct && k != columns.List && k != columns.Map && k != columns.Binary
}

// append adds one row to b. On an error, rows.ErrTombstone among them, the row is rolled back. at is the batch's time in microseconds.
func (l *layout) append(b *columns.Builder, at int64, key, value any, meta *sink.Meta) error {
	if err := l.fill(b, at, key, value, meta); err != nil {
		b.Rollback()
		return err
	}
	return b.EndRow()
}

func (l *layout) fill(b *columns.Builder, at int64, key, value any, meta *sink.Meta) error {
	if err := l.Fill(b, at, key, value, meta); err != nil {
		return err
	}
	for _, col := range l.textParts {
		if b.Columns()[col].IsEmptyAt(b.Rows()) {
			return &sink.RowError{Field: l.name(col), Err: delta.ErrEmptyPartition}
		}
	}
	return nil
}

// name returns the name of the top-level column with a number.
func (l *layout) name(col int) string {
	for i := range l.Schema.Fields {
		if l.Schema.ColumnOf(i) == col {
			return l.Schema.Fields[i].Name
		}
	}
	return ""
}
