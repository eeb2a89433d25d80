package land

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/serde"
)

// Pauses between two questions to a registry that doesn't answer.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	// oneQuestion bounds one of them.
	oneQuestion = 10 * time.Second
	// atOnce is how long a record waits in place for an answer; after that its stream waits, and the others go on.
	atOnce = 200 * time.Millisecond
)

// lookups ask a registry for the schemas that records were written with, in the background and again and again, so that nothing but the
// records that need one has to wait.
type lookups struct {
	ctx      context.Context // ends the asking
	registry *serde.Registry
	outage   *outage

	running sync.WaitGroup
	mu      sync.Mutex
	open    map[lake.SchemaKey]*lookup
}

// lookup is a question on its way.
type lookup struct {
	done   chan struct{} // closed when there is an answer
	schema serde.Schema
	err    error
}

func newLookups(ctx context.Context, registry *serde.Registry, o *outage) *lookups {
	return &lookups{ctx: ctx, registry: registry, outage: o, open: map[lake.SchemaKey]*lookup{}}
}

// close waits until nothing is asked any more; the context must have ended.
func (l *lookups) close() { l.running.Wait() }

// find finds a question, or begins it. isNew says that it wasn't there.
func (l *lookups) find(key lake.SchemaKey) (q *lookup, isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q = l.open[key]; q != nil {
		return q, false
	}
	q = &lookup{done: make(chan struct{})}
	l.open[key] = q
	l.running.Go(func() { l.ask(key, q) })
	return q, true
}

// ask asks until there is an answer.
func (l *lookups) ask(key lake.SchemaKey, q *lookup) {
	defer close(q.done)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		q.schema, q.err = l.once(key)
		switch {
		case q.err == nil, l.ctx.Err() != nil:
			return
		case !serde.Retriable(q.err):
			q.err = fmt.Errorf("%w: %w", lake.ErrUnknownSchema, q.err)
			return
		}
		l.outage.fails(key, q.err)
		select {
		case <-l.ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (l *lookups) once(key lake.SchemaKey) (serde.Schema, error) {
	ctx, cancel := context.WithTimeout(l.ctx, oneQuestion)
	defer cancel()
	if key.ByGUID {
		return l.registry.SchemaByGUID(ctx, key.GUID)
	}
	return l.registry.SchemaByID(ctx, int(key.ID))
}

// take gives an answer to who asked for it. The next one is answered from the registry's own memory.
func (l *lookups) take(key lake.SchemaKey, q *lookup) (serde.Schema, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[key] == q {
		delete(l.open, key)
	}
	return q.schema, q.err
}

// writers finds the schemas that one stream's records were written with, for all formats. While there is no answer the error is a
// *sink.NotYetError: that says nothing of the record.
type writers struct {
	topic string
	*lookups
}

// SchemaByID implements lake.SchemaSource.
func (w *writers) SchemaByID(id int) (lake.WriterSchema, error) {
	return avroText(w.get(lake.SchemaKey{ID: uint32(id)}))
}

// SchemaByGUID finds the schemas that newer serializers name in headers.
func (w *writers) SchemaByGUID(guid [16]byte) (lake.WriterSchema, error) {
	return avroText(w.get(lake.SchemaKey{GUID: guid, ByGUID: true}))
}

func avroText(s serde.Schema, err error) (lake.WriterSchema, error) {
	if err != nil {
		return lake.WriterSchema{}, err
	}
	if s.Type != serde.SchemaAvro {
		return lake.WriterSchema{}, fmt.Errorf("%w of type Avro: it is of type %s", lake.ErrUnknownSchema, s.Type)
	}
	out := lake.WriterSchema{Schema: s.Text}
	for _, ref := range s.References {
		out.References = append(out.References, ref.Text)
	}
	return out, nil
}

// protobuf finds the schemas of Protobuf messages.
func (w *writers) protobuf(key lake.SchemaKey) (lake.ProtobufSchema, error) {
	s, err := w.get(key)
	if err != nil {
		return lake.ProtobufSchema{}, err
	}
	if s.Type != serde.SchemaProtobuf {
		return lake.ProtobufSchema{}, fmt.Errorf("%w of type Protobuf: it is of type %s", lake.ErrUnknownSchema, s.Type)
	}
	out := lake.ProtobufSchema{Schema: s.Text, Imports: map[string]string{}}
	for _, ref := range s.References {
		out.Imports[ref.Name] = ref.Text
	}
	return out, nil
}

func (w *writers) get(key lake.SchemaKey) (serde.Schema, error) {
	q, isNew := w.find(key)
	if isNew {
		timer := time.NewTimer(atOnce)
		defer timer.Stop()
		select {
		case <-q.done:
		case <-timer.C:
		}
	}
	select {
	case <-q.done:
	default:
		w.outage.waits(w.topic, key)
		return serde.Schema{}, &sink.NotYetError{Err: fmt.Errorf("the schema registry has given no answer about schema %s", key)}
	}
	s, err := w.take(key, q)
	if err != nil && !errors.Is(err, lake.ErrUnknownSchema) { // the end
		return s, &sink.NotYetError{Err: err}
	}
	w.outage.ends(w.topic)
	return s, err
}
