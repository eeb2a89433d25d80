package lake

import (
	"fmt"
	"maps"
	"strings"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/columns/avrorows"
	"github.com/tributary-io/tributary/lake/columns/protorows"
	"github.com/tributary-io/tributary/lake/columns/wire"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/parquetfile"
	"github.com/tributary-io/tributary/lake/rows"
)

// Option changes what Delta makes. Options that contradict one another are reported when the topology is built.
type Option func(*options)

type options struct {
	rows.Options
	partitions         []string
	tableName, comment string
	properties         map[string]string
	published          map[string]string
	parquet            parquetfile.Options
	schemaVersion      int64
	progress           progressScheme
	state              *stateOptions // nil: the sink appends
	store              object.Store
	chores             []chore
	inlineUpkeep       bool // for tests that must not depend on scheduling
	errs               []error
}

// SchemaSource gives the schemas that producers have written with, by their registry ids. See avrorows.Source.
type SchemaSource = avrorows.Source

// SchemaSourceFunc makes a SchemaSource of a function, such as one that asks a registry's client.
type SchemaSourceFunc = avrorows.SourceFunc

// WriterSchema is a schema as a registry holds it.
type WriterSchema = avrorows.Text

// ErrUnknownSchema is what a SchemaSource answers (wrapped) where the registry has no such schema: the record is bad.
var ErrUnknownSchema = avrorows.ErrUnknownSchema

// Date is a calendar date: the Go type of a date column.
type Date = columns.Day

// KeyColumn adds a column with the record's key, in front of the others. A key that is a struct becomes a nested column.
func KeyColumn(name string) Option { return func(o *options) { o.KeyName = name } }

// ValueColumn names the column of values that are not structs; "value" without it.
func ValueColumn(name string) Option { return func(o *options) { o.ValueName = name } }

// Names of the columns that SourceColumns adds.
const (
	SourcePartition = rows.SourcePartition // integer
	SourceOffset    = rows.SourceOffset    // long
	SourceTimestamp = rows.SourceTimestamp // timestamp: the record's in its topic, which is the append time where the topic says so
)

// SourceColumns adds the columns _kafka_partition, _kafka_offset and _kafka_timestamp, which say what record of the source topic
// a row comes from.
func SourceColumns() Option { return func(o *options) { o.Source = true } }

// AvroValue says that values, which must be []byte, hold Avro. They are decoded straight into columns, resolving the schema that
// each was written with, which source gives, against the declared schema. Without a source values are bare Avro of the declared
// schema; with one they have Confluent's wire format, the schema's id in front of the value or in the header __value_schema_id.
// The declared schema also gives comments (doc) and tags (custom attributes). references are the schemas that it refers to.
func AvroValue(schema string, source SchemaSource, references ...string) Option {
	return func(o *options) {
		o.AvroValue, o.AvroSource = &avrorows.Text{Schema: schema, References: references}, source
	}
}

// JSONValue says that values, which must be []byte, hold JSON documents, with or without a schema id in Confluent's wire format in front. The
// columns, their comments and tags are declared by an Avro schema, as for AvroValue; see package columns/jsonrows for what becomes what.
func JSONValue(schema string, references ...string) Option {
	return func(o *options) {
		o.AvroValue, o.Format = &avrorows.Text{Schema: schema, References: references}, rows.JSON
	}
}

// ProtobufSchema is a Protobuf schema as a registry holds it: the text of a .proto file, and of those that it imports by name.
type ProtobufSchema = protorows.Text

// SchemaKey names a schema in a registry, by its id or its GUID.
type SchemaKey = wire.Key

// ProtobufValue says that values, which must be []byte, hold Protobuf messages in Confluent's wire format: a schema id, which source is asked
// for, and message indexes in front of the message, or both in the header __value_schema_id. The columns, their comments and tags are declared by
// an Avro schema, as for AvroValue; see package columns/protorows for what becomes what. source wraps ErrUnknownSchema where there is no such
// schema; after any other error the record is tried again.
func ProtobufValue(schema string, source func(SchemaKey) (ProtobufSchema, error), references ...string) Option {
	return func(o *options) {
		o.AvroValue, o.Format, o.Protobuf = &avrorows.Text{Schema: schema, References: references}, rows.Protobuf, source
	}
}

// AvroSchema declares the columns of a struct value further than Go types can: comments (doc), tags (custom attributes), and
// types where Go leaves a choice, such as decimal(p,s) for a big.Rat or date for a time.Time. Fields are found by column name.
func AvroSchema(schema string, references ...string) Option {
	return func(o *options) { o.AvroHints = &avrorows.Text{Schema: schema, References: references} }
}

// LocalTimestampsAsUTC stores Avro's local timestamps as timestamps in UTC. Without it they become timestamp_ntz, which needs a
// table feature that old readers lack.
func LocalTimestampsAsUTC() Option { return func(o *options) { o.LocalAsUTC = true } }

// PartitionBy makes partition columns of the named columns, beside those whose lake tags say "partition". A batch is split into
// one file for each combination of their values, so they should have few. It counts when the table is made.
func PartitionBy(names ...string) Option {
	return func(o *options) { o.partitions = append(o.partitions, names...) }
}

// Name names a new table in its metadata.
func Name(name string) Option { return func(o *options) { o.tableName = name } }

// Comment describes the table. Without it an Avro schema's doc does.
func Comment(text string) Option { return func(o *options) { o.comment = text } }

// Properties sets table properties of a new table, such as "delta.appendOnly" or ones of your own.
func Properties(properties map[string]string) Option {
	return func(o *options) {
		if o.properties == nil {
			o.properties = map[string]string{}
		}
		maps.Copy(o.properties, properties)
	}
}

// Published sets table properties of one's own, such as who owns the rows, and keeps them: whenever the sink opens a table that says otherwise, a
// commit of metadata alone says so, together with changed comments and tags. One that is no longer given stays, until Rewrite drops it. Names
// with the prefixes of others ("delta.", "tributary.") are refused.
func Published(properties map[string]string) Option {
	return func(o *options) {
		if o.published == nil {
			o.published = map[string]string{}
		}
		for name, value := range properties {
			if strings.HasPrefix(name, "delta.") || strings.HasPrefix(name, "tributary.") {
				o.errs = append(o.errs, fmt.Errorf("Published: %s is not a property of one's own: give it by Properties", name))
			}
			o.published[name] = value
		}
	}
}

// Compression sets the codec and its level (0: the codec's default) of data files: "zstd", "snappy", "gzip", "lz4" or
// "uncompressed". Without it the table's property delta.parquet.compression.codec counts, and zstd level 1 without that.
func Compression(codec string, level int) Option {
	return func(o *options) {
		var err error
		if o.parquet, err = (parquetfile.Options{Codec: codec, Level: level}).Normalize(); err != nil {
			o.errs = append(o.errs, err)
		}
	}
}

// LandTombstones makes a row of a null value: its key and source columns, with nulls in all others. Without it null values move
// the table's progress and leave no row.
func LandTombstones() Option { return func(o *options) { o.Tombstones = true } }

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

// PlatformProgress keeps progress as the ready binary's platform does: application id "ods-sink/<topic>/<partition>", and as
// version the last offset that has landed. Without it the application id is
// "<application id>/<sink>/<topic>@<topic id>/<partition>" and the version is the next offset to read.
//
// A table may be handed over between sinks of the two forms, in both directions: a sink that finds a partition farther on in the other
// form goes on from there, and keeps the other form up to date, too, so that the former sink is fenced if it still runs. Since the
// platform's form has no topic id, it can't tell a topic that was made anew under the same name.
func PlatformProgress() Option { return func(o *options) { o.progress = platformScheme{} } }

// Store opens the table on a store that is given, in place of one found by the place: for tests.
func Store(s object.Store) Option { return func(o *options) { o.store = s } }
