package avrorows

import (
	"fmt"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/columns/wire"
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
var ErrUnknownSchema = wire.ErrUnknownSchema

// Ask gets the schema of a key from a source.
func Ask(s Source, k wire.Key) (Text, error) {
	if !k.ByGUID {
		return s.SchemaByID(int(k.ID))
	}
	g, ok := s.(GUIDSource)
	if !ok {
		return Text{}, fmt.Errorf("%w: this source of schemas can't look up GUIDs", ErrUnknownSchema)
	}
	return g.SchemaByGUID(k.GUID)
}

// Decoder reads the values of a topic: it finds each value's schema, and the plan for it. It is safe for concurrent use.
type Decoder struct {
	source Source // nil: values are bare, and written with the declared schema
	bare   *Plan
	plans  *wire.Plans[*Plan]
}

// NewDecoder makes a decoder. Without a source values are bare Avro of the declared schema; with one they start with 0x00 and a
// schema id of four bytes (Confluent's wire format), or have the id in a header.
func NewDecoder(d *Declared, source Source) (*Decoder, error) {
	bare, err := d.plan(d.root)
	if err != nil {
		return nil, err
	}
	plans := wire.NewPlans(func(k wire.Key) (*Plan, error) {
		text, err := Ask(source, k)
		if err != nil {
			return nil, err
		}
		p, err := d.Plan(text)
		if err != nil {
			return nil, &sink.RowError{Err: err}
		}
		return p, nil
	})
	return &Decoder{source, bare, plans}, nil
}

// Width is the number of columns that a value fills.
func (d *Decoder) Width() int { return d.bare.width }

// Append decodes one value into the columns from number first on. A *sink.RowError says that the value is bad; any other error
// comes from the source, and the same call may succeed later. The caller rolls back.
func (d *Decoder) Append(b *columns.Builder, first int, data []byte, headers []sink.Header) error {
	if d.source == nil {
		return d.bare.Append(b, first, data)
	}
	f, err := wire.Split(data, headers)
	if err == nil && len(f.Tail) > 0 {
		err = fmt.Errorf("header %s has %d bytes too many: it was not written by an Avro serializer", wire.Header, len(f.Tail))
	}
	if err != nil {
		return &sink.RowError{Err: err}
	}
	p, err := d.plans.Find(f.Key)
	if err != nil {
		return err
	}
	return p.Append(b, first, f.Body)
}
