package lake

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/columns/avrorows"
	"github.com/tributary-io/tributary/lake/columns/gorows"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/sink"
)

// layout is a sink's rows: which columns they have, and the plans that fill them. It is immutable.
type layout struct {
	schema     *columns.Schema
	doc        string // of the Avro schema: the table's comment unless one is given
	partitions []int  // places of partition columns in the schema
	textParts  []int  // numbers of the partition columns of strings
	rest       []int  // places of the others, which are in the files

	key, value *gorows.Plan // nil: no key column; values are Avro
	avro       *avrorows.Decoder
	avroFields []columns.Field
	keyAt      int // numbers of the first columns of each part
	valueAt    int
	sourceAt   int // -1: no source columns
	runAt      int // -1: no columns of the run
	runID      string
}

// newLayout lays out the rows of a stream of the given types, and returns every problem.
func newLayout(o *options, key, value reflect.Type) (*layout, []error) {
	l := &layout{schema: &columns.Schema{}, sourceAt: -1, runAt: -1, runID: o.runID}
	var partitions []string
	errs := l.addKey(o, key)
	partitions, valueErrs := l.addValue(o, value)
	errs = append(errs, valueErrs...)
	if o.source {
		l.sourceAt = l.schema.Width()
		l.schema.Fields = append(l.schema.Fields, sourceFields()...)
	}
	if o.runID != "" {
		l.runAt = l.schema.Width()
		l.schema.Fields = append(l.schema.Fields, runFields()...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	if errs = l.schema.Check(); len(errs) > 0 {
		return nil, errs
	}
	return l, l.setPartitions(append(partitions, o.partitions...))
}

func (l *layout) addKey(o *options, key reflect.Type) []error {
	l.keyAt = l.schema.Width()
	if o.keyName == "" {
		return nil
	}
	var errs []error
	if l.key, errs = gorows.Compile(key, gorows.Options{Name: o.keyName, Nested: true}); errs == nil {
		l.schema.Fields = append(l.schema.Fields, l.key.Fields...)
	}
	return errs
}

func (l *layout) addValue(o *options, value reflect.Type) (partitions []string, errs []error) {
	l.valueAt = l.schema.Width()
	if o.avroValue != nil {
		return nil, l.addAvro(o, value)
	}
	opts := gorows.Options{Name: o.valueName}
	if o.avroHints != nil {
		d, errs := avrorows.Declare(*o.avroHints, avrorows.Options{Name: o.valueName, LocalAsUTC: o.localAsUTC})
		if errs != nil {
			return nil, errs
		}
		opts.Hints, l.doc = d.Fields, d.Doc
	}
	if l.value, errs = gorows.Compile(value, opts); errs != nil {
		return nil, errs
	}
	l.schema.Fields = append(l.schema.Fields, l.value.Fields...)
	return l.value.Partitions, nil
}

func (l *layout) addAvro(o *options, value reflect.Type) []error {
	if value != reflect.TypeFor[[]byte]() {
		return []error{fmt.Errorf("AvroValue decodes values of []byte, but the stream's are %v: read the topic with serde.Bytes, or leave AvroValue out", value)}
	}
	if o.avroHints != nil {
		return []error{errors.New("AvroValue and AvroSchema exclude one another: the first is for values in Avro, the second for Go structs")}
	}
	d, errs := avrorows.Declare(*o.avroValue, avrorows.Options{Name: o.valueName, LocalAsUTC: o.localAsUTC})
	if errs != nil {
		return errs
	}
	var err error
	if l.avro, err = avrorows.NewDecoder(d, o.avroSource); err != nil {
		return []error{err}
	}
	l.avroFields, l.doc = d.Fields, d.Doc
	l.schema.Fields = append(l.schema.Fields, d.Fields...)
	return nil
}

func sourceFields() []columns.Field {
	f := func(name string, k columns.Kind, comment string) columns.Field {
		return columns.Field{Name: name, Type: columns.Type{Kind: k}, Comment: comment}
	}
	return []columns.Field{
		f(SourcePartition, columns.Integer, "partition of the source topic"),
		f(SourceOffset, columns.Long, "offset in the partition of the source topic"),
		f(SourceTimestamp, columns.Timestamp, "timestamp of the record in the source topic, UTC"),
	}
}

// setPartitions finds the partition columns.
func (l *layout) setPartitions(names []string) (errs []error) {
	for _, name := range names {
		i := l.schema.Index(name)
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("PartitionBy: there is no column %q", name))
		case slices.Contains(l.partitions, i):
		case !canPartition(l.schema.Fields[i].Type.Kind):
			errs = append(errs, fmt.Errorf("PartitionBy: column %s of type %s can't be a partition column", name, &l.schema.Fields[i].Type))
		default:
			l.partitions = append(l.partitions, i)
			if l.schema.Fields[i].Type.Kind == columns.String {
				l.textParts = append(l.textParts, l.schema.ColumnOf(i))
			}
		}
	}
	for i := range l.schema.Fields {
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

// errTombstone says that a record makes no row.
var errTombstone = errors.New("a null value makes no row")

// append adds one row to b. On an error, errTombstone among them, the row is rolled back. at is the batch's time in microseconds.
func (l *layout) append(b *columns.Builder, tombstones bool, at int64, key, value any, meta *sink.Meta) error {
	if err := l.fill(b, tombstones, at, key, value, meta); err != nil {
		b.Rollback()
		return err
	}
	return b.EndRow()
}

func (l *layout) fill(b *columns.Builder, tombstones bool, at int64, key, value any, meta *sink.Meta) error {
	null, err := l.fillValue(b, value, meta)
	if err != nil {
		return err
	}
	if null {
		if !tombstones {
			return errTombstone
		}
		if err := l.fillNulls(b); err != nil {
			return err
		}
	}
	if err := l.fillKey(b, key); err != nil {
		return err
	}
	if l.sourceAt >= 0 {
		if err := l.fillSource(b, meta); err != nil {
			return err
		}
	}
	if l.runAt >= 0 {
		l.fillRun(b, at)
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
	for i := range l.schema.Fields {
		if l.schema.ColumnOf(i) == col {
			return l.schema.Fields[i].Name
		}
	}
	return ""
}

func (l *layout) fillKey(b *columns.Builder, key any) error {
	if l.key == nil {
		return nil
	}
	if key != nil {
		if null, err := l.key.Append(b, l.keyAt, key); err != nil || !null {
			return err
		}
	}
	return l.key.AppendNulls(b, l.keyAt)
}

// fillValue appends the value's columns; null says that there is none and nothing was appended.
func (l *layout) fillValue(b *columns.Builder, value any, meta *sink.Meta) (null bool, err error) {
	if value == nil {
		return true, nil
	}
	if l.avro == nil {
		return l.value.Append(b, l.valueAt, value)
	}
	data, ok := value.(*[]byte)
	if !ok {
		return false, &sink.RowError{Err: fmt.Errorf("the table takes values of *[]byte, not %T", value)}
	}
	if *data == nil {
		return true, nil
	}
	return false, l.avro.Append(b, l.valueAt, *data, meta.Headers)
}

func (l *layout) fillNulls(b *columns.Builder) error {
	if l.avro == nil {
		return l.value.AppendNulls(b, l.valueAt)
	}
	at := l.valueAt
	for i := range l.avroFields {
		if err := b.AppendNull(at); err != nil {
			return &sink.RowError{Field: l.avroFields[i].Name, Err: err}
		}
		at += l.avroFields[i].Type.Width()
	}
	return nil
}

func (l *layout) fillSource(b *columns.Builder, meta *sink.Meta) error {
	us, ok := columns.MillisToMicros(meta.BrokerTimestamp)
	if !ok {
		return &sink.RowError{Field: SourceTimestamp, Err: fmt.Errorf("%d ms since 1970 is out of the range of microseconds", meta.BrokerTimestamp)}
	}
	c := b.Columns()[l.sourceAt:]
	c[0].AppendInt32(meta.Partition)
	c[1].AppendInt64(meta.Offset)
	c[2].AppendInt64(us)
	return nil
}
