package lake

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/rows"
	"github.com/tributary-io/tributary/lake/sink"
)

// deltaSink is what Delta returns. It is bound once, when the topology is built, and may be opened by many instances.
type deltaSink struct {
	place  string
	opts   options
	layout *layout // set by Bind

	checkMu sync.Mutex
	check   *columns.Builder // of CheckRow; empty between two calls
}

// Delta makes a sink of a Delta table. place is the path of the table's folder, or a URL that object.Open knows: file:///path, and
// s3://bucket/folder in programs that import package lake/object/s3store. The table is made when the sink is first opened, if it
// isn't there.
//
// Columns are the fields of the stream's value type (see package columns/gorows for names, tags and types), or those of an Avro
// schema given by AvroValue. Options add columns and say how the table is made.
func Delta(place string, opts ...Option) sink.Sink {
	s := &deltaSink{place: place, opts: options{Options: rows.Options{ValueName: "value"}}}
	for _, o := range opts {
		o(&s.opts)
	}
	return s
}

// String implements sink.Sink.
func (s *deltaSink) String() string { return "delta:" + s.place }

// Bind implements sink.Sink.
func (s *deltaSink) Bind(key, value reflect.Type) error {
	l, errs := newLayout(&s.opts, key, value)
	errs = append(errs, s.opts.errs...)
	if s.place == "" {
		errs = append(errs, errors.New("the place of the table is empty: name a folder or an URL"))
	}
	if len(errs) > 0 {
		return fmt.Errorf("table %s can't hold the stream's rows:\n%w", s.place, errors.Join(errs...))
	}
	s.layout = l
	return nil
}

// CheckRow implements sink.Checker: a row that doesn't become columns on the harness wouldn't in production.
func (s *deltaSink) CheckRow(key, value any, meta *sink.Meta) error {
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	if s.check == nil {
		s.check = columns.NewBuilder(s.layout.Schema)
	}
	defer s.check.Reset()
	if err := s.layout.append(s.check, 0, key, value, meta); err != rows.ErrTombstone {
		return err
	}
	return nil
}

// Open implements sink.Sink.
func (s *deltaSink) Open(ctx context.Context, env sink.Env) (sink.Writer, error) {
	if s.layout == nil {
		return nil, fmt.Errorf("table %s is opened before it is bound to the stream's types", s.place)
	}
	return openWriter(ctx, s, env)
}
