package iceberg

import (
	"errors"
	"fmt"
	"maps"

	"github.com/tributary-io/tributary/lake/columns/avrorows"
	"github.com/tributary-io/tributary/lake/parquetfile"
	"github.com/tributary-io/tributary/lake/rows"
)

// Option changes what Table makes. Options that don't fit are reported when the topology is built.
type Option func(*options)

type options struct {
	rows.Options
	partitions    []Transform
	location      string
	comment       string
	properties    map[string]string
	parquet       parquetfile.Options
	schemaVersion int64
	errs          []error
}

// SchemaSource gives the schemas that producers have written with, by their registry ids. See avrorows.Source.
type SchemaSource = avrorows.Source

// KeyColumn adds a column with the record's key, in front of the others. A key that is a struct becomes a nested column.
func KeyColumn(name string) Option { return func(o *options) { o.KeyName = name } }

// ValueColumn names the column of values that are not structs; "value" without it.
func ValueColumn(name string) Option { return func(o *options) { o.ValueName = name } }

// SourceColumns adds the columns _kafka_partition, _kafka_offset and _kafka_timestamp, which say what record of the source topic
// a row comes from.
func SourceColumns() Option { return func(o *options) { o.Source = true } }

// RunColumns adds the columns _ods_created_at, _ods_modified_at and _ods_run_id behind all others, as lake.RunColumns does.
func RunColumns(runID string) Option {
	return func(o *options) {
		if runID == "" {
			o.errs = append(o.errs, errors.New("RunColumns: the run has no name"))
		}
		o.RunID = runID
	}
}

// AvroValue says that values, which must be []byte, hold Avro. They are decoded straight into columns, as lake.AvroValue tells.
func AvroValue(schema string, source SchemaSource, references ...string) Option {
	return func(o *options) {
		o.AvroValue, o.AvroSource = &avrorows.Text{Schema: schema, References: references}, source
	}
}

// AvroSchema declares the columns of a struct value further than Go types can, as lake.AvroSchema tells.
func AvroSchema(schema string, references ...string) Option {
	return func(o *options) { o.AvroHints = &avrorows.Text{Schema: schema, References: references} }
}

// LandTombstones makes a row of a null value: its key and source columns, with nulls in all others. Without it null values move
// the table's progress and leave no row.
func LandTombstones() Option { return func(o *options) { o.Tombstones = true } }

// PartitionBy partitions the table, beside the columns whose lake tags say "partition". A batch is split into a file or more for each
// combination of the transforms' results, so they should be few. It counts when the table is made; later the table's own partition
// spec does, which other engines may evolve.
func PartitionBy(transforms ...Transform) Option {
	return func(o *options) { o.partitions = append(o.partitions, transforms...) }
}

// Location says where a new table's files are, such as "s3://bucket/folder". Without it the catalog decides.
func Location(url string) Option { return func(o *options) { o.location = url } }

// Comment describes the table. Without it an Avro schema's doc does.
func Comment(text string) Option { return func(o *options) { o.comment = text } }

// Properties sets table properties of a new table, such as "write.parquet.compression-codec" or ones of your own.
func Properties(properties map[string]string) Option {
	return func(o *options) {
		if o.properties == nil {
			o.properties = map[string]string{}
		}
		maps.Copy(o.properties, properties)
	}
}

// Compression sets the codec and its level (0: the codec's default) of data files: "zstd", "snappy", "gzip", "lz4" or
// "uncompressed". Without it the table's property write.parquet.compression-codec counts, and zstd level 1 without that.
func Compression(codec string, level int) Option {
	return func(o *options) {
		var err error
		if o.parquet, err = (parquetfile.Options{Codec: codec, Level: level}).Normalize(); err != nil {
			o.errs = append(o.errs, err)
		}
	}
}

// SchemaVersion numbers the declared schema, for instance by its version in a registry. An instance that has a lower number than
// the table remembers never changes the table's columns, comments and tags: it is an old one in a rolling upgrade.
func SchemaVersion(n int) Option {
	return func(o *options) {
		if n < 1 {
			o.errs = append(o.errs, fmt.Errorf("schema version %d: versions start at 1", n))
		}
		o.schemaVersion = int64(n)
	}
}
