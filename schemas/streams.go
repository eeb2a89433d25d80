package schemas

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"gopkg.in/yaml.v3"
)

//go:embed *.avsc *.yaml
var files embed.FS

// Stream declares a topic: what is in it, whose it is, and how it is made.
type Stream struct {
	Topic       string      `yaml:"topic"`
	Description string      `yaml:"description"`
	Domain      string      `yaml:"domain"`      // the part of the business that it belongs to
	Owner       string      `yaml:"owner"`       // whom to ask
	Sensitivity Sensitivity `yaml:"sensitivity"` // that of its most sensitive field, or higher
	Key         Key         `yaml:"key"`
	Value       Value       `yaml:"value"`
	Partitions  int32       `yaml:"partitions"`
	Cleanup     Cleanup     `yaml:"cleanup"`
	// Retention is how long records are kept where Cleanup is delete; 0 is for ever.
	Retention time.Duration `yaml:"retention"`
	// Timestamps says whose clock a record's timestamp is.
	Timestamps Timestamps `yaml:"timestamps"`
	// DeadLetters is the topic for records that can't be processed; empty where there is none.
	DeadLetters string `yaml:"dead_letters"`

	// Schema is the text of the value's schema.
	Schema string `yaml:"-"`
}

// Key says what the records' keys are.
type Key struct {
	Format string `yaml:"format"` // "string"
	Field  string `yaml:"field"`  // the value's field that holds the same
}

// Value says what the records' values are.
type Value struct {
	Format string `yaml:"format"` // "avro"
	Schema string `yaml:"schema"` // the name of the schema's file
}

// Sensitivity says who may see data.
type Sensitivity string

// The sensitivities, from the least to the most sensitive.
const (
	Public       Sensitivity = "public"
	Internal     Sensitivity = "internal"
	Confidential Sensitivity = "confidential"
	Restricted   Sensitivity = "restricted"
)

var sensitivities = []Sensitivity{Public, Internal, Confidential, Restricted}

// Valid reports whether s is one of the sensitivities.
func (s Sensitivity) Valid() bool { return slices.Contains(sensitivities, s) }

// Exceeds reports whether s is more sensitive than other.
func (s Sensitivity) Exceeds(other Sensitivity) bool {
	return slices.Index(sensitivities, s) > slices.Index(sensitivities, other)
}

// Cleanup is a topic's cleanup.policy.
type Cleanup string

// Kafka's policies that a stream may have.
const (
	Delete  Cleanup = "delete"
	Compact Cleanup = "compact"
)

// Timestamps says who stamps records.
type Timestamps string

// Kafka's message.timestamp.type: the producer (CreateTime), or the broker as it appends (LogAppendTime).
const (
	CreateTime Timestamps = "create"
	AppendTime Timestamps = "append"
)

// TopicConfig returns the configuration with which the topic is created, by Kafka's names.
func (s Stream) TopicConfig() map[string]string {
	config := map[string]string{"cleanup.policy": string(s.Cleanup), "message.timestamp.type": "CreateTime"}
	if s.Timestamps == AppendTime {
		config["message.timestamp.type"] = "LogAppendTime"
	}
	if s.Cleanup == Delete {
		config["retention.ms"] = "-1"
		if s.Retention > 0 {
			config["retention.ms"] = fmt.Sprint(s.Retention.Milliseconds())
		}
	}
	return config
}

// Streams returns the streams that ship, ordered by topic.
func Streams() []Stream { return slices.Clone(shipped()) }

// MustStream returns the stream that ships under the topic. It panics if there is none.
func MustStream(topic string) Stream {
	for _, s := range shipped() {
		if s.Topic == topic {
			return s
		}
	}
	panic("no stream declared for topic " + topic)
}

// shipped panics on a mistake in the embedded files, which the tests find before anybody else does.
var shipped = sync.OnceValue(func() []Stream {
	s, err := Load(files)
	if err != nil {
		panic(err)
	}
	return s
})

// Load reads and checks every declaration (*.yaml) in the root of a file system, ordered by topic. The error names all that is
// wrong.
func Load(fsys fs.FS) ([]Stream, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	var (
		streams []Stream
		errs    []error
	)
	for _, name := range names {
		s, err := load(fsys, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("stream declaration %s: %w", name, err))
		}
		streams = append(streams, s)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortFunc(streams, func(a, b Stream) int { return strings.Compare(a.Topic, b.Topic) })
	return streams, nil
}

func load(fsys fs.FS, name string) (Stream, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return Stream{}, err
	}
	var s Stream
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return Stream{}, err
	}
	var errs []error
	if want := strings.TrimSuffix(path.Base(name), ".yaml"); s.Topic != want {
		errs = append(errs, fmt.Errorf("topic is %q, but the file's name says %q", s.Topic, want))
	}
	schema, err := fs.ReadFile(fsys, s.Value.Schema)
	if err != nil {
		errs = append(errs, fmt.Errorf("value.schema: %w", err))
	} else {
		s.Schema = string(schema)
		errs = append(errs, checkSchema(s)...)
	}
	return s, errors.Join(append(errs, check(s)...)...)
}
