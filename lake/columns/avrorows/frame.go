package avrorows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/sink"
)

// Source gives the schemas that producers have written with. A schema registry's client is one. It is asked once for each id (and
// now and then for one that it doesn't know), and must be safe for concurrent use.
type Source interface {
	// SchemaByID returns the schema with the registry's id. ErrUnknownSchema (wrapped) says that there is none: the record is
	// bad. Any other error says that the registry can't be asked now: the record is tried again.
	SchemaByID(id int) (Text, error)
}

// SourceFunc makes a Source of a function.
type SourceFunc func(id int) (Text, error)

// SchemaByID implements Source.
func (f SourceFunc) SchemaByID(id int) (Text, error) { return f(id) }

// GUIDSource is a Source that also knows the GUIDs that newer Confluent clients put into headers.
type GUIDSource interface {
	Source
	SchemaByGUID(guid [16]byte) (Text, error)
}

// ErrUnknownSchema says that a registry has no schema of an id.
var ErrUnknownSchema = errors.New("the registry has no such schema")

// schemaHeader holds the schema's id where it is not in front of the value: 0x00 and an id of four bytes, or 0x01 and a GUID.
const schemaHeader = "__value_schema_id"

const (
	magicID   = 0
	magicGUID = 1
	prefixLen = 5
)

// key is what finds a writer's schema.
type key struct {
	id   uint32
	guid [16]byte
	kind byte // magicID or magicGUID
}

// Decoder reads the values of a topic: it finds each value's schema, and the plan for it. It is safe for concurrent use.
type Decoder struct {
	declared *Declared
	source   Source // nil: values are bare, and written with the declared schema
	bare     *Plan

	last    atomic.Pointer[entry]
	mu      sync.Mutex
	plans   map[key]*entry
	unknown map[key]*unknown
}

// unknown remembers for some records that the source has no schema of a key: it may be registered later, but a stream of bad
// records must not become a stream of requests.
type unknown struct {
	err  error // a *sink.RowError
	left int   // records that are not asked for again
}

// unknownFor is how many records are taken as bad before the source is asked again.
const unknownFor = 1000

// maxUnknown bounds how many keys are remembered as unknown: bytes that aren't Avro at all may hold any id.
const maxUnknown = 1000

type entry struct {
	key  key
	plan *Plan
	err  error // a *sink.RowError: the schema is unknown or doesn't fit
}

// NewDecoder makes a decoder. Without a source values are bare Avro of the declared schema; with one they start with 0x00 and a
// schema id of four bytes (Confluent's wire format), or have the id in a header.
func NewDecoder(d *Declared, source Source) (*Decoder, error) {
	bare, err := d.plan(d.root)
	if err != nil {
		return nil, err
	}
	return &Decoder{declared: d, source: source, bare: bare, plans: map[key]*entry{}, unknown: map[key]*unknown{}}, nil
}

// Width is the number of columns that a value fills.
func (d *Decoder) Width() int { return d.bare.width }

// Append decodes one value into the columns from number first on. A *sink.RowError says that the value is bad; any other error
// comes from the source, and the same call may succeed later. The caller rolls back.
func (d *Decoder) Append(b *columns.Builder, first int, data []byte, headers []sink.Header) error {
	if d.source == nil {
		return d.bare.Append(b, first, data)
	}
	k, body, err := split(data, headers)
	if err != nil {
		return &sink.RowError{Err: err}
	}
	e := d.last.Load()
	if e == nil || e.key != k {
		if e, err = d.find(k); err != nil {
			return err
		}
		d.last.Store(e)
	}
	if e.err != nil {
		return e.err
	}
	return e.plan.Append(b, first, body)
}

// split takes the schema's key off a value.
func split(data []byte, headers []sink.Header) (k key, body []byte, err error) {
	for i := range headers {
		if headers[i].Key == schemaHeader {
			k, err = headerKey(headers[i].Value)
			return k, data, err
		}
	}
	switch {
	case len(data) == 0:
		return k, nil, errors.New("the value is empty: Avro with a schema id has at least 5 bytes")
	case data[0] != magicID:
		return k, nil, fmt.Errorf("the value starts with byte 0x%02x, not with 0x00 and a schema id: it was not written by a serializer for the schema registry", data[0])
	case len(data) < prefixLen:
		return k, nil, fmt.Errorf("the value has %d bytes, too few for 0x00 and a schema id of 4", len(data))
	}
	return key{id: binary.BigEndian.Uint32(data[1:prefixLen])}, data[prefixLen:], nil
}

func headerKey(v []byte) (k key, err error) {
	switch {
	case len(v) == 5 && v[0] == magicID:
		k.id = binary.BigEndian.Uint32(v[1:])
	case len(v) == 17 && v[0] == magicGUID:
		k.kind = magicGUID
		copy(k.guid[:], v[1:])
	default:
		err = fmt.Errorf("header %s has %d bytes, neither 0x00 and a schema id of 4 nor 0x01 and a GUID of 16", schemaHeader, len(v))
	}
	return k, err
}

// find returns the plan for a key, asking the source for a schema that it hasn't seen.
func (d *Decoder) find(k key) (*entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.plans[k]; e != nil {
		return e, nil
	}
	if u := d.unknown[k]; u != nil && u.left > 0 {
		u.left--
		return nil, u.err
	}
	text, err := d.ask(k)
	if errors.Is(err, ErrUnknownSchema) {
		err = &sink.RowError{Err: fmt.Errorf("schema %s: %w", k, err)}
		if len(d.unknown) >= maxUnknown {
			clear(d.unknown)
		}
		d.unknown[k] = &unknown{err, unknownFor}
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("schema %s can't be had from the registry: %w", k, err)
	}
	e := &entry{key: k}
	if e.plan, err = d.declared.Plan(text); err != nil {
		e.err = &sink.RowError{Err: fmt.Errorf("schema %s: %w", k, err)}
	}
	d.plans[k] = e
	delete(d.unknown, k)
	return e, nil
}

func (d *Decoder) ask(k key) (Text, error) {
	if k.kind == magicID {
		return d.source.SchemaByID(int(k.id))
	}
	g, ok := d.source.(GUIDSource)
	if !ok {
		return Text{}, fmt.Errorf("%w: this source of schemas can't look up GUIDs", ErrUnknownSchema)
	}
	return g.SchemaByGUID(k.guid)
}

func (k key) String() string {
	if k.kind == magicGUID {
		g := k.guid
		return string(columns.AppendUUID(nil, &g))
	}
	return fmt.Sprintf("id %d", k.id)
}
