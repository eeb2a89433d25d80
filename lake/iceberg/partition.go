package iceberg

import (
	"fmt"
	"strconv"

	icebergo "github.com/apache/iceberg-go"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/sink"
)

// Transform derives a partition value from a column, as Iceberg defines it. Values are always stored in the files, too.
type Transform struct {
	column string
	name   string // of the partition field
	fn     icebergo.Transform
}

// Identity partitions by the column's values.
func Identity(column string) Transform {
	return Transform{column, column, icebergo.IdentityTransform{}}
}

// Year partitions by the year, in UTC, of a timestamp or date.
func Year(column string) Transform {
	return Transform{column, column + "_year", icebergo.YearTransform{}}
}

// Month partitions by the month, in UTC, of a timestamp or date.
func Month(column string) Transform {
	return Transform{column, column + "_month", icebergo.MonthTransform{}}
}

// Day partitions by the day, in UTC, of a timestamp or date.
func Day(column string) Transform {
	return Transform{column, column + "_day", icebergo.DayTransform{}}
}

// Hour partitions by the hour, in UTC, of a timestamp.
func Hour(column string) Transform {
	return Transform{column, column + "_hour", icebergo.HourTransform{}}
}

// Bucket partitions by a hash of the column's values into n buckets.
func Bucket(n int, column string) Transform {
	return Transform{column, column + "_bucket", icebergo.BucketTransform{NumBuckets: n}}
}

// Truncate partitions by the first width characters of a string, or by numbers rounded down to multiples of width.
func Truncate(width int, column string) Transform {
	return Transform{column, column + "_trunc", icebergo.TruncateTransform{Width: width}}
}

func (t Transform) String() string {
	switch fn := t.fn.(type) {
	case icebergo.BucketTransform:
		return "Bucket(" + strconv.Itoa(fn.NumBuckets) + ", " + t.column + ")"
	case icebergo.TruncateTransform:
		return "Truncate(" + strconv.Itoa(fn.Width) + ", " + t.column + ")"
	}
	return fmt.Sprintf("%v(%s)", t.fn, t.column)
}

// suits reports whether the transform works on columns of the type.
func (t Transform) suits(typ *columns.Type) bool {
	switch fn := t.fn.(type) {
	case icebergo.BucketTransform:
		if fn.NumBuckets < 1 {
			return false
		}
	case icebergo.TruncateTransform:
		if fn.Width < 1 {
			return false
		}
	}
	switch typ.Kind {
	case columns.Struct, columns.List, columns.Map:
		return false
	case columns.Binary:
		if _, identity := t.fn.(icebergo.IdentityTransform); identity {
			return false // files' keys would hold the values themselves
		}
	}
	return t.fn.CanTransform(leafType(typ)) && !unreadable(t.fn, leafType(typ))
}

// unreadable reports whether others could not read the manifests of a table that is partitioned so. Their schemas tell of values that are decimals without
// a fraction by their precision alone, as Avro allows: PyIceberg can't do without the scale, and DuckDB crashes.
func unreadable(fn icebergo.Transform, source icebergo.Type) bool {
	d, ok := fn.ResultType(source).(icebergo.DecimalType)
	return ok && d.Scale() == 0
}

// checkPartitions refuses a table, made by others, in whose manifests this writer's values would be unreadable.
func (w *writer) checkPartitions() error {
	spec := w.table.Spec()
	for _, f := range spec.Fields() {
		if column, ok := w.table.Schema().FindFieldByID(f.SourceIDs[0]); ok && unreadable(f.Transform, column.Type) {
			return &sink.RefusedError{Table: w.sink.name, Reason: fmt.Sprintf("it is partitioned by %s(%s) of type %s, and other readers can't read such manifests from this writer", f.Transform, column.Name, column.Type),
				Advice: "partition it by a bucket of the column, or land the stream in a new table"}
		}
	}
	return nil
}

// partitionSpec is the spec of a new table whose fields have the ids that newSchema gives.
func partitionSpec(schema *icebergo.Schema, transforms []Transform) (*icebergo.PartitionSpec, error) {
	var fields []icebergo.PartitionField
	for i, t := range transforms {
		f, ok := schema.FindFieldByName(t.column)
		if !ok {
			return nil, fmt.Errorf("there is no column %q to partition by", t.column)
		}
		fields = append(fields, icebergo.PartitionField{SourceIDs: []int{f.ID}, FieldID: icebergo.PartitionDataIDStart + i, Name: t.name, Transform: t.fn})
	}
	spec := icebergo.NewPartitionSpec(fields...)
	return &spec, nil
}
