package land

import (
	"fmt"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Topology is the application that a Sink runs, for tests on the harness: which columns a record becomes, and which go to the dead letters.
// schemas gives the schemas that Avro records were written with; streams of Protobuf need a Sink. Of the configuration the lake, the group and
// the streams count. Config.Handlers are the error handlers that belong to it.
func Topology(cfg Config, schemas lake.SchemaSource) (*topology.Plan, error) {
	if cfg.Group == "" {
		cfg.Group = DefaultGroup
	}
	return cfg.plan(func(s *Stream) sink.Sink { return cfg.table(s, harnessed{schemas}, 0) })
}

// harnessed is a source of schemas without a registry.
type harnessed struct{ lake.SchemaSource }

func (harnessed) protobuf(lake.SchemaKey) (lake.ProtobufSchema, error) {
	return lake.ProtobufSchema{}, fmt.Errorf("%w: Protobuf needs a registry", lake.ErrUnknownSchema)
}

// schemaSource finds the schemas that records were written with.
type schemaSource interface {
	lake.SchemaSource
	protobuf(lake.SchemaKey) (lake.ProtobufSchema, error)
}

// sinkPrefix is in front of a topic in the name of its sink.
const sinkPrefix = "land-"

// plan declares the application: for each stream a source of bytes that ends in a table.
func (c *Config) plan(table func(*Stream) sink.Sink) (*topology.Plan, error) {
	b := topology.NewBuilder(c.Group)
	for i := range c.Streams {
		s := &c.Streams[i]
		b.Stream(s.Topic, serde.Bytes, serde.Bytes, topology.Timestamps(anyTime)).ToLake(table(s), topology.Name(sinkPrefix+s.Topic))
	}
	p, err := b.Build()
	if err != nil {
		return nil, err
	}
	if internal := p.InternalTopics(); len(internal) > 0 {
		return nil, fmt.Errorf("internal: landing needs topics of its own: %v", internal)
	}
	return p, nil
}

// table is the sink of a stream. version is that of its schema in the registry; 0 is unknown.
func (c *Config) table(s *Stream, source schemaSource, version int) sink.Sink {
	opts := []lake.Option{
		s.value(source), lake.SourceColumns(), lake.RunColumns(c.RunID()), lake.PlatformProgress(),
		lake.Name(s.Table), lake.Published(s.properties()),
	}
	if version > 0 {
		opts = append(opts, lake.SchemaVersion(version))
	}
	if c.Optimize != 0 {
		opts = append(opts, lake.AutoOptimize(c.Optimize, lake.OptimizeOptions{}))
	}
	if c.Vacuum != 0 {
		opts = append(opts, lake.AutoVacuum(c.Vacuum, lake.VacuumOptions{}))
	}
	return lake.Delta(c.TablePlace(s), opts...)
}

// value says how the stream's bytes become columns.
func (s *Stream) value(source schemaSource) lake.Option {
	switch s.Format {
	case JSON:
		return lake.JSONValue(s.Schema)
	case Protobuf:
		return lake.ProtobufValue(s.Schema, source.protobuf)
	}
	return lake.AvroValue(s.Schema, source)
}

// anyTime takes records without a time of their own as well: here the time counts for nothing but its column.
var anyTime processors.TimestampExtractor[[]byte, []byte] = func(r *processors.Record[[]byte, []byte], _ *processors.RawRecord, _ int64) (int64, error) {
	return max(0, r.Timestamp), nil
}

// properties are what the table says of its stream: they follow the declaration.
func (s *Stream) properties() map[string]string {
	all := map[string]string{"ods.topic": s.Topic}
	for key, value := range map[string]string{"ods.owner": s.Owner, "ods.domain": s.Domain, "ods.sensitivity": string(s.Sensitivity)} {
		if value != "" {
			all[key] = value
		}
	}
	return all
}

// Handlers send what doesn't fit to its stream's dead letters, or stop the stream where it says so.
func (c *Config) Handlers() processors.Handlers {
	dead := map[string]string{}
	for i := range c.Streams {
		if s := &c.Streams[i]; !s.StopOnBadRows {
			dead[s.Topic] = s.DeadLetters
		}
	}
	decide := processors.HandleErrors(func(e *processors.ErrorContext) processors.Verdict {
		topic, ok := dead[e.Topic]
		return processors.Verdict{Fail: !ok, DeadLetterTopic: topic}
	})
	return processors.Handlers{Deserialization: decide, Processing: decide}
}
