package serde

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Avro is a serde of Avro values in Confluent's wire format: a zero byte, the id of the schema that the value was written with,
// and the value (Avro 1.12, "Binary Encoding").
//
// The schema given is the declared one. Values are written with it. Values are read by resolving the schema that their id names
// in the registry against it ("Schema Resolution"): fields that were added are skipped until they are declared, missing ones
// take their default, int becomes long, and so on. A writer's schema whose logical type differs from the declared one
// (milliseconds for microseconds, another scale) is refused: Avro would read a number that is wrong.
//
// T is a struct with `avro:"name"` tags, a pointer to one, or the Go type of a primitive. Logical types are time.Time
// (timestamp-millis and -micros, date), Decimal or *big.Rat (decimal), any encoding.TextMarshaler (string). Unions of null and
// one type are pointers or slices.
//
// It is TopicBound: the subject is "<topic>-value" or "<topic>-key" unless AvroSubject names one. Prepare registers the schema
// there, as a step of start-up. Without Prepare the first Append looks the id up, and fails if the schema isn't registered.
//
// A schema id that is met for the first time is asked of the registry, within its time limit, while the record waits. An error
// there may be Retriable. Mistakes in the schema, or between it and T, are found by Check.
func Avro[T any](reg *Registry, schema string, opts ...AvroOption) Serde[T] {
	s := &avroShared[T]{reg: reg}
	for _, o := range opts {
		o(&s.cfg)
	}
	s.readers.Store(&map[int32]*avroReader{})
	s.err = s.compile(schema)
	return s.bind(s.cfg.subject)
}

// AvroOption changes what Avro makes.
type AvroOption func(*avroConfig)

type avroConfig struct {
	subject      string
	onlyLookup   bool
	autoRegister bool
	skim         bool // check values instead of decoding them
}

// AvroSubject fixes the subject, whatever the topic: for the record-name strategies.
func AvroSubject(subject string) AvroOption { return func(c *avroConfig) { c.subject = subject } }

// AvroRegistered makes Prepare look the schema up instead of registering it, where applications may not register.
func AvroRegistered() AvroOption { return func(c *avroConfig) { c.onlyLookup = true } }

// AvroAutoRegister makes the first Append for a topic register the schema where Prepare hasn't, as Confluent's serializers do
// by default. Prefer Prepare: a schema that can't be registered then stops the start, not the stream.
func AvroAutoRegister() AvroOption { return func(c *avroConfig) { c.autoRegister = true } }

// avroShared is what the serdes of all topics have in common.
type avroShared[T any] struct {
	reg    *Registry
	cfg    avroConfig
	schema avroSchema
	enc    avroEncoder
	err    error // a mistake in the schema, or T doesn't fit it
	wrErr  error // T can be read, but not written

	scratch sync.Pool // of *avroScratch[T]

	readers atomic.Pointer[map[int32]*avroReader] // by schema id; replaced as a whole
	mu      sync.Mutex                            // over replacing readers
}

// avroReader decodes what was written with one schema id.
type avroReader struct {
	dec avroDecoder
	err error // the writer's schema can't be read as the declared one
}

// avroScratch is the memory of one call: the value has to be on the heap, since the library is handed a pointer to it.
type avroScratch[T any] struct {
	value T
	bufs  avroBuffers
}

func (s *avroShared[T]) compile(text string) error {
	typ := reflect.TypeFor[T]()
	if s.reg == nil {
		return fmt.Errorf("Avro for %s: no schema registry: make one with serde.NewRegistry", typ)
	}
	var err error
	if s.schema, err = parseAvro(text); err != nil {
		return fmt.Errorf("Avro schema for %s: %w", typ, err)
	}
	s.scratch.New = func() any { return &avroScratch[T]{bufs: newAvroBuffers()} }
	if s.cfg.skim {
		return nil
	}
	if err := s.schema.fitsReading(typ); err != nil {
		return fmt.Errorf("Avro schema %s doesn't fit the Go type %s: %w", s.schema.name(), typ, err)
	}
	if err := s.schema.fitsWriting(typ); err != nil {
		s.wrErr = fmt.Errorf("the Go type %s can't be written as Avro schema %s: %w", typ, s.schema.name(), err)
	}
	s.enc = s.schema.encoder(typ)
	return nil
}

func (s *avroShared[T]) bind(subject string) *avroSerde[T] {
	b := &avroSerde[T]{avroShared: s, subject: subject}
	b.id.Store(noSchemaID)
	return b
}

// noSchemaID stands for "not asked yet".
const noSchemaID = -1

// avroSerde is bound to a subject, or to none.
type avroSerde[T any] struct {
	*avroShared[T]
	subject string
	id      atomic.Int64 // of the declared schema under the subject

	idMu    sync.Mutex
	idErr   error // the registry's definite answer that the subject doesn't have the schema
	idUntil time.Time
}

// NonAliasing implements NonAliasing: strings and bytes are copied.
func (*avroSerde[T]) NonAliasing() {}

// Check implements Checker.
func (s *avroSerde[T]) Check() error { return s.err }

// ForTopic implements TopicBound.
func (s *avroSerde[T]) ForTopic(topic string, isKey bool) Serde[T] {
	if s.cfg.subject != "" {
		return s
	}
	return s.bind(Subject(topic, isKey))
}

// Subject is the name under which the schemas of a topic's keys or values are registered (Confluent's TopicNameStrategy).
func Subject(topic string, isKey bool) string {
	if isKey {
		return topic + "-key"
	}
	return topic + "-value"
}

// Prepare implements Preparer: it registers the declared schema under the serde's subject.
func (s *avroSerde[T]) Prepare(ctx context.Context) error {
	if err := s.writable(); err != nil {
		return err
	}
	ask := s.reg.Register
	if s.cfg.onlyLookup {
		ask = s.reg.Lookup
	}
	id, err := ask(ctx, s.subject, s.schema.text)
	if err == nil {
		s.id.Store(int64(id))
	}
	return err
}

var errNoSubject = errors.New("Avro serde isn't bound to a topic, so its subject is unknown: bind it, or name one with AvroSubject")

func (s *avroSerde[T]) writable() error {
	switch {
	case s.err != nil:
		return s.err
	case s.wrErr != nil:
		return s.wrErr
	case s.subject == "":
		return errNoSubject
	}
	return nil
}

func (s *avroSerde[T]) Append(dst []byte, v T) ([]byte, error) {
	id := s.id.Load()
	if id == noSchemaID {
		var err error
		if id, err = s.findID(); err != nil {
			return dst, err
		}
	}
	sc := s.scratch.Get().(*avroScratch[T])
	defer s.release(sc)
	sc.value = v
	body, err := sc.bufs.encode(s.enc, unsafe.Pointer(&sc.value))
	if err != nil {
		return dst, fmt.Errorf("Avro schema %s: %w", s.schema.name(), err)
	}
	return append(AppendFrame(dst, int32(id)), body...), nil
}

// findID gets the declared schema's id for the first record. A definite no is kept for a while, so that a run of records isn't a
// run of requests.
func (s *avroSerde[T]) findID() (int64, error) {
	if err := s.writable(); err != nil {
		return 0, err
	}
	s.idMu.Lock()
	defer s.idMu.Unlock()
	if s.idErr != nil && s.reg.now().Before(s.idUntil) {
		return 0, s.idErr
	}
	ask := s.reg.Lookup
	if s.cfg.autoRegister {
		ask = s.reg.Register
	}
	id, err := ask(context.Background(), s.subject, s.schema.text)
	if err != nil {
		if !Retriable(err) {
			s.idErr, s.idUntil = err, s.reg.now().Add(unknownFor)
		}
		return 0, err
	}
	s.idErr = nil
	s.id.Store(int64(id))
	return int64(id), nil
}

func (s *avroSerde[T]) Decode(data []byte) (v T, err error) {
	id, body, err := ParseFrame(data)
	if err != nil {
		return v, err
	}
	r := (*s.readers.Load())[id]
	if r == nil {
		if r, err = s.newReader(id); err != nil {
			return v, err
		}
	}
	if r.err != nil {
		return v, r.err
	}
	sc := s.scratch.Get().(*avroScratch[T])
	defer s.release(sc)
	if err := sc.bufs.decode(r.dec, unsafe.Pointer(&sc.value), body); err != nil {
		return v, fmt.Errorf("Avro value of %d bytes with schema id %d: %w", len(body), id, err)
	}
	return sc.value, nil
}

// release clears the value: the library would decode into what a pointer in it points to, and the pool would keep it alive.
func (s *avroShared[T]) release(sc *avroScratch[T]) {
	var zero T
	sc.value = zero
	s.scratch.Put(sc)
}

// newReader gets the writer's schema and compiles it against the declared one. That a schema can't be read is remembered, since
// neither of the two ever changes; that it can't be had is not.
func (s *avroShared[T]) newReader(id int32) (*avroReader, error) {
	if s.err != nil {
		return nil, s.err
	}
	text, err := s.reg.WriterSchema(context.Background(), int(id))
	if err != nil {
		return nil, err
	}
	r := &avroReader{}
	if r.dec, err = s.newDecoder(text); err != nil {
		r.err = fmt.Errorf("Avro schema with id %d: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(*s.readers.Load())
	next[id] = r
	s.readers.Store(&next)
	return r, nil
}

func (s *avroShared[T]) newDecoder(text string) (d avroDecoder, err error) {
	writer, err := parseAvro(text)
	if err != nil {
		return d, err
	}
	if s.cfg.skim {
		d, err = s.schema.skimmer(writer)
	} else {
		d, err = s.schema.decoder(writer, reflect.TypeFor[T]())
	}
	if err != nil {
		err = fmt.Errorf("it can't be read as the declared %s: %w", s.schema.name(), err)
	}
	return d, err
}
