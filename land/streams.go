package land

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"gopkg.in/yaml.v3"

	"github.com/tributary-io/tributary/schemas"
)

// Stream is a declared topic and what becomes of it in the lake. What is unset is filled by complete.
type Stream struct {
	schemas.Stream
	// Format is how the topic's values are encoded: Avro if unset. Whatever it is, Schema declares the columns, in Avro.
	Format Format
	// Table is where it lands, below the lake.
	Table string
	// Compatibility is the level that the topic's subject gets.
	Compatibility sr.CompatibilityLevel
	// StopOnBadRows stops the stream's partition at a record that doesn't fit, instead of sending it to the dead letters.
	StopOnBadRows bool
}

// Format is the encoding of a topic's values.
type Format string

// The formats. JSON documents may stand behind a schema id; Protobuf messages are in Confluent's wire format.
const (
	Avro     Format = "avro"
	JSON     Format = "json"
	Protobuf Format = "protobuf"
)

// DefaultPartitions is how many partitions a new topic gets that doesn't say.
const DefaultPartitions = 3

// file is a configuration file.
type file struct {
	Brokers  addresses `yaml:"brokers"`
	Registry string    `yaml:"registry"`
	Lake     string    `yaml:"lake"`
	Group    string    `yaml:"group"`
	State    string    `yaml:"state"`
	HTTP     string    `yaml:"http"`
	Batch    struct {
		Seconds float64 `yaml:"seconds"`
		Rows    int     `yaml:"rows"`
		Bytes   int64   `yaml:"bytes"`
	} `yaml:"batch"`
	MemoryBytes    int64   `yaml:"memory_bytes"`
	ObserveSeconds float64 `yaml:"observe_seconds"`
	NoticeSeconds  float64 `yaml:"notice_seconds"`
	NoticeURL      string  `yaml:"notice_url"`
	Optimize       float64 `yaml:"optimize_seconds"`
	Vacuum         float64 `yaml:"vacuum_seconds"`
	Patience       float64 `yaml:"registry_patience_seconds"`
	Declarations   string  `yaml:"declarations"` // a folder of declarations as in package schemas
	Streams        []entry `yaml:"streams"`
}

// entry is a stream in a configuration file.
type entry struct {
	Topic         string              `yaml:"topic"`
	Format        Format              `yaml:"format"` // avro (the default), json or protobuf
	Schema        string              `yaml:"schema"` // file, relative to the configuration's folder
	Description   string              `yaml:"description"`
	Owner         string              `yaml:"owner"`
	Domain        string              `yaml:"domain"`
	Sensitivity   schemas.Sensitivity `yaml:"sensitivity"`
	Partitions    int32               `yaml:"partitions"`
	Cleanup       schemas.Cleanup     `yaml:"cleanup"`
	Retention     span                `yaml:"retention"`
	Timestamps    schemas.Timestamps  `yaml:"timestamps"`
	DeadLetters   string              `yaml:"dead_letters"`
	Table         string              `yaml:"table"`
	Compatibility string              `yaml:"compatibility"`
	BadRows       string              `yaml:"bad_rows"` // "dead-letter" (the default) or "stop"
}

// Load reads a configuration file. The error names everything that is wrong in it.
func Load(name string) (Config, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	var f file
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return Config{}, fmt.Errorf("configuration %s: %w", name, inOwnWords(err))
	}
	seconds := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	c := Config{Brokers: f.Brokers, Registry: f.Registry, Lake: f.Lake, Group: f.Group, State: f.State, HTTP: f.HTTP,
		Batch:   BatchLimits{Every: seconds(f.Batch.Seconds), Rows: f.Batch.Rows, Bytes: f.Batch.Bytes, Budget: f.MemoryBytes},
		Observe: seconds(f.ObserveSeconds), Notice: seconds(f.NoticeSeconds), NoticeURL: f.NoticeURL,
		Optimize: seconds(f.Optimize), Vacuum: seconds(f.Vacuum), Patience: seconds(f.Patience)}
	folder := filepath.Dir(name)
	var errs []error
	if f.Declarations != "" {
		streams, err := LoadFolder(beside(folder, f.Declarations))
		errs = append(errs, err)
		c.Streams = streams
	}
	for _, e := range f.Streams {
		s, err := e.stream(folder)
		if err != nil {
			errs = append(errs, fmt.Errorf("stream %q: %s", e.Topic, strings.ReplaceAll(err.Error(), "\n", "\n  ")))
			continue
		}
		c.Streams = append(c.Streams, s)
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, fmt.Errorf("configuration %s:\n%w", name, err)
	}
	return c, nil
}

// beside is a path that a file in the folder gives.
func beside(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// LoadFolder reads a folder of declarations as package schemas describes them.
func LoadFolder(folder string) ([]Stream, error) {
	declared, err := schemas.Load(os.DirFS(folder))
	if err != nil {
		return nil, err
	}
	if len(declared) == 0 {
		return nil, fmt.Errorf("folder %s holds no declarations (*.yaml)", folder)
	}
	var out []Stream
	var errs []error
	for _, d := range declared {
		s, err := Of(d)
		errs = append(errs, err)
		out = append(out, s)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// Of is the stream of a declaration, with the defaults for all that it doesn't say.
func Of(d schemas.Stream) (Stream, error) {
	s := Stream{Stream: d}
	return s, s.complete()
}

func (e *entry) stream(folder string) (Stream, error) {
	var errs []error
	var missing []string
	for _, field := range [][2]string{{"topic", e.Topic}, {"schema", e.Schema}, {"owner", e.Owner}, {"domain", e.Domain}, {"sensitivity", string(e.Sensitivity)}} {
		if field[1] == "" {
			missing = append(missing, field[0])
		}
	}
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("missing: %s", strings.Join(missing, ", ")))
	}
	var schema []byte
	if e.Schema != "" {
		var err error
		if schema, err = os.ReadFile(beside(folder, e.Schema)); err != nil {
			errs = append(errs, fmt.Errorf("schema: %w", err))
		}
	}
	s := Stream{Format: e.Format, Table: e.Table, Stream: schemas.Stream{Topic: e.Topic, Description: e.Description, Domain: e.Domain, Owner: e.Owner,
		Sensitivity: e.Sensitivity, Partitions: e.Partitions, Cleanup: e.Cleanup, Retention: time.Duration(e.Retention), Timestamps: e.Timestamps,
		DeadLetters: e.DeadLetters, Schema: string(schema)}}
	if e.Compatibility != "" {
		if err := s.Compatibility.UnmarshalText([]byte(e.Compatibility)); err != nil {
			errs = append(errs, fmt.Errorf("compatibility: %w", err))
		}
	}
	switch e.BadRows {
	case "", "dead-letter":
	case "stop":
		s.StopOnBadRows = true
	default:
		errs = append(errs, fmt.Errorf("bad_rows is %q, not dead-letter or stop", e.BadRows))
	}
	if e.Topic != "" {
		errs = append(errs, s.complete())
	}
	return s, errors.Join(errs...)
}

// complete fills what a declaration leaves open.
func (s *Stream) complete() (err error) {
	if s.Table == "" {
		if s.Table, err = TableOf(s.Topic); err != nil {
			return err
		}
	}
	s.Format = cmp.Or(s.Format, Avro)
	s.Partitions = cmp.Or(s.Partitions, DefaultPartitions)
	s.Cleanup = cmp.Or(s.Cleanup, schemas.Delete)
	s.Timestamps = cmp.Or(s.Timestamps, schemas.AppendTime)
	s.DeadLetters = cmp.Or(s.DeadLetters, s.Topic+".dead_letters")
	if s.Compatibility == 0 {
		s.Compatibility = sr.CompatBackward
	}
	return nil
}

var (
	tableName = regexp.MustCompile(`^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$`)
	unfit     = regexp.MustCompile(`[^A-Za-z0-9_]`)
)

func (s *Stream) check() (errs []error) {
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("stream %s: "+format, append([]any{s.Topic}, args...)...))
	}
	if !tableName.MatchString(s.Table) {
		wrong("table %q: give folders of letters, digits, _ and -, such as raw/shop__orders", s.Table)
	}
	if s.Format != Avro && s.Format != JSON && s.Format != Protobuf {
		wrong("format is %q, not avro, json or protobuf", s.Format)
	}
	if s.Partitions < 1 {
		wrong("partitions is %d", s.Partitions)
	}
	if s.Schema == "" {
		wrong("it has no schema")
	}
	if s.Sensitivity != "" && !s.Sensitivity.Valid() {
		wrong("sensitivity is %q: it is public, internal, confidential or restricted", s.Sensitivity)
	}
	if s.Cleanup != schemas.Delete && s.Cleanup != schemas.Compact {
		wrong("cleanup is %q, not delete or compact", s.Cleanup)
	}
	if s.Timestamps != schemas.CreateTime && s.Timestamps != schemas.AppendTime {
		wrong("timestamps is %q, not create or append", s.Timestamps)
	}
	if s.DeadLetters == s.Topic {
		wrong("its dead letters would go into itself")
	}
	return errs
}

// TableOf is the table that a topic lands in unless its declaration says so: raw/<source>__<entity>.
//
// The topic's name is taken apart at its dots. A first part "ods" is left out; the next part is the source, and all others, joined
// by "_", are the entity: ods.demo.order_events lands in raw/demo__order_events, shop.eu.orders in raw/shop__eu_orders. Characters
// that aren't letters, digits or "_" become "_".
func TableOf(topic string) (string, error) {
	parts := strings.Split(topic, ".")
	if parts[0] == "ods" {
		parts = parts[1:]
	}
	if len(parts) < 2 || parts[0] == "" || strings.Join(parts[1:], "") == "" {
		return "", fmt.Errorf("topic %q doesn't say source and entity (ods.<source>.<entity>): give its stream a `table`, such as raw/shop__orders", topic)
	}
	clean := func(s string) string { return unfit.ReplaceAllString(s, "_") }
	return "raw/" + clean(parts[0]) + "__" + clean(strings.Join(parts[1:], "_")), nil
}

// WithTable is Of with a table of the caller's choice; an empty one follows TableOf.
func WithTable(d schemas.Stream, table string) (Stream, error) {
	s := Stream{Stream: d, Table: table}
	return s, s.complete()
}
