package protorows

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/columns/avrorows"
	"github.com/tributary-io/tributary/lake/columns/wire"
	"github.com/tributary-io/tributary/lake/sink"
)

// Decoder reads the values of a topic of Protobuf messages in Confluent's wire format. It is safe for concurrent use.
type Decoder struct {
	t     *avrorows.Transcoder[value]
	plans *wire.Plans[*file]
	pool  sync.Map // protoreflect.MessageDescriptor to *sync.Pool of *dynamicpb.Message
}

// NewDecoder makes a decoder for a declared schema.
func NewDecoder(d *avrorows.Declared, source Source) (*Decoder, error) {
	if source == nil {
		return nil, errors.New("messages in Protobuf don't say what is in them: a source of schemas is needed")
	}
	t, err := avrorows.NewTranscoder[value](d)
	if err != nil {
		return nil, err
	}
	return &Decoder{t: t, plans: wire.NewPlans(func(k wire.Key) (*file, error) {
		text, err := source(k)
		if err != nil {
			return nil, err
		}
		f, err := compile(text)
		if err != nil {
			return nil, &sink.RowError{Err: err}
		}
		return f, nil
	})}, nil
}

// Append reads one message into the columns from number first on. A *sink.RowError says that the value is bad; any other error comes from the
// source, and the same call may succeed later. The caller rolls back.
func (d *Decoder) Append(b *columns.Builder, first int, data []byte, headers []sink.Header) error {
	f, err := wire.Split(data, headers)
	if err != nil {
		return &sink.RowError{Err: err}
	}
	file, err := d.plans.Find(f.Key)
	if err != nil {
		return err
	}
	indexed := f.Body
	if f.InHeader {
		indexed = f.Tail
	}
	desc, body, err := file.message(indexed)
	if err != nil {
		return &sink.RowError{Err: fmt.Errorf("schema %s: %w", f.Key, err)}
	}
	if f.InHeader {
		body = f.Body
	}
	pool := d.messages(desc)
	m := pool.Get().(*dynamicpb.Message)
	defer pool.Put(m)
	proto.Reset(m)
	if err := proto.Unmarshal(body, m); err != nil {
		return &sink.RowError{Err: fmt.Errorf("the value is not a message %s of schema %s: %w", desc.FullName(), f.Key, err)}
	}
	return d.t.Append(b, first, value{message: m})
}

// messages keeps emptied messages of a type.
func (d *Decoder) messages(desc protoreflect.MessageDescriptor) *sync.Pool {
	p, ok := d.pool.Load(desc)
	if !ok {
		p, _ = d.pool.LoadOrStore(desc, &sync.Pool{New: func() any { return dynamicpb.NewMessage(desc) }})
	}
	return p.(*sync.Pool)
}
