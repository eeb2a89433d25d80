package rows

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/columns/avrorows"
	"github.com/tributary-io/tributary/lake/columns/gorows"
	"github.com/tributary-io/tributary/lake/columns/jsonrows"
	"github.com/tributary-io/tributary/lake/columns/protorows"
	"github.com/tributary-io/tributary/lake/sink"
)

// Layout is a sink's rows: which columns they have, and the plans that fill them. It is immutable and may be used concurrently.
type Layout struct {
	Schema *columns.Schema
	Doc    string // of the Avro schema: the table's comment unless one is given
	// Partitions are the columns whose struct tags ask for partitions.
	Partitions []string

	key, value *gorows.Plan    // nil: no key column; values are Avro
	bytes      decoder         // of values that are bytes; nil for others
	avroFields []columns.Field // that their schema declares
	keyAt      int             // numbers of the first columns of each part
	valueAt    int
	sourceAt   int // -1: no source columns
	runAt      int // -1: no columns of the run
	runID      string
	tombstones bool
}

// decoder appends values that are bytes to the columns from number first on.
type decoder interface {
	Append(b *columns.Builder, first int, data []byte, headers []sink.Header) error
}

// New lays out the rows of a stream of the given types, those of K and V, and returns every problem.
func New(o *Options, key, value reflect.Type) (*Layout, []error) {
	l := &Layout{Schema: &columns.Schema{}, sourceAt: -1, runAt: -1, runID: o.RunID, tombstones: o.Tombstones}
	errs := l.addKey(o, key)
	errs = append(errs, l.addValue(o, value)...)
	if o.Source {
		l.sourceAt = l.Schema.Width()
		l.Schema.Fields = append(l.Schema.Fields, sourceFields()...)
	}
	if o.RunID != "" {
		l.runAt = l.Schema.Width()
		l.Schema.Fields = append(l.Schema.Fields, runFields()...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	if errs = l.Schema.Check(); len(errs) > 0 {
		return nil, errs
	}
	return l, nil
}

// HasRun reports whether rows have the run's columns, which want a time.
func (l *Layout) HasRun() bool { return l.runAt >= 0 }

func (l *Layout) addKey(o *Options, key reflect.Type) []error {
	l.keyAt = l.Schema.Width()
	if o.KeyName == "" {
		return nil
	}
	var errs []error
	if l.key, errs = gorows.Compile(key, gorows.Options{Name: o.KeyName, Nested: true}); errs == nil {
		l.Schema.Fields = append(l.Schema.Fields, l.key.Fields...)
	}
	return errs
}

func (l *Layout) addValue(o *Options, value reflect.Type) (errs []error) {
	l.valueAt = l.Schema.Width()
	if o.AvroValue != nil {
		return l.addAvro(o, value)
	}
	opts := gorows.Options{Name: o.ValueName}
	if o.AvroHints != nil {
		d, errs := avrorows.Declare(*o.AvroHints, avrorows.Options{Name: o.ValueName, LocalAsUTC: o.LocalAsUTC})
		if errs != nil {
			return errs
		}
		opts.Hints, l.Doc = d.Fields, d.Doc
	}
	if l.value, errs = gorows.Compile(value, opts); errs != nil {
		return errs
	}
	l.Schema.Fields = append(l.Schema.Fields, l.value.Fields...)
	l.Partitions = l.value.Partitions
	return nil
}

func (l *Layout) addAvro(o *Options, value reflect.Type) []error {
	if value != reflect.TypeFor[[]byte]() {
		return []error{fmt.Errorf("AvroValue and its like decode values of []byte, but the stream's are %v: read the topic with serde.Bytes, or leave AvroValue out", value)}
	}
	if o.AvroHints != nil {
		return []error{errors.New("AvroValue and AvroSchema exclude one another: the first is for values in Avro, the second for Go structs")}
	}
	d, errs := avrorows.Declare(*o.AvroValue, avrorows.Options{Name: o.ValueName, LocalAsUTC: o.LocalAsUTC})
	if errs != nil {
		return errs
	}
	var err error
	switch o.Format {
	case JSON:
		l.bytes, err = jsonrows.NewDecoder(d)
	case Protobuf:
		l.bytes, err = protorows.NewDecoder(d, o.Protobuf)
	default:
		l.bytes, err = avrorows.NewDecoder(d, o.AvroSource)
	}
	if err != nil {
		return []error{err}
	}
	l.avroFields, l.Doc = d.Fields, d.Doc
	l.Schema.Fields = append(l.Schema.Fields, d.Fields...)
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

// ErrTombstone says that a record makes no row.
var ErrTombstone = errors.New("a null value makes no row")

// Fill appends one row's values to b and leaves it to the caller to end the row, or to roll it back on an error, ErrTombstone
// among them. key and value are *K and *V, nil for a Kafka null. at is the batch's time in microseconds, for the run's columns.
func (l *Layout) Fill(b *columns.Builder, at int64, key, value any, meta *sink.Meta) error {
	null, err := l.fillValue(b, value, meta)
	if err != nil {
		return err
	}
	if null {
		if !l.tombstones {
			return ErrTombstone
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
	return nil
}

// Append adds one row to b. On an error, ErrTombstone among them, the row is rolled back.
func (l *Layout) Append(b *columns.Builder, at int64, key, value any, meta *sink.Meta) error {
	if err := l.Fill(b, at, key, value, meta); err != nil {
		b.Rollback()
		return err
	}
	return b.EndRow()
}

// FillKey appends the values of the key's column alone, for who wants to look at them before the row is rolled back.
func (l *Layout) FillKey(b *columns.Builder, key any) error { return l.fillKey(b, key) }

func (l *Layout) fillKey(b *columns.Builder, key any) error {
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
func (l *Layout) fillValue(b *columns.Builder, value any, meta *sink.Meta) (null bool, err error) {
	if value == nil {
		return true, nil
	}
	if l.bytes == nil {
		return l.value.Append(b, l.valueAt, value)
	}
	data, ok := value.(*[]byte)
	if !ok {
		return false, &sink.RowError{Err: fmt.Errorf("the table takes values of *[]byte, not %T", value)}
	}
	if *data == nil {
		return true, nil
	}
	return false, l.bytes.Append(b, l.valueAt, *data, meta.Headers)
}

func (l *Layout) fillNulls(b *columns.Builder) error {
	if l.bytes == nil {
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

func (l *Layout) fillSource(b *columns.Builder, meta *sink.Meta) error {
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
