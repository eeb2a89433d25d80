package iceberg

import (
	"fmt"
	"strconv"

	icebergo "github.com/apache/iceberg-go"

	"github.com/tributary-io/tributary/lake/columns"
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
	return t.fn.CanTransform(leafType(typ))
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
