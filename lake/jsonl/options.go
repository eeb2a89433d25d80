package jsonl

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// Option changes what Sink makes. Options that are wrong are reported when the topology is built.
type Option func(*options)

type options struct {
	compression string // a key of codecs
	tombstones  bool
	checkTypes  [2]reflect.Type
	check       func(key, value any, meta *sink.Meta) error
	store       object.Store
	errs        []error
}

// Compression compresses files: "gzip" or "zstd". Their names end in .gz or .zst. Without it they are plain text.
func Compression(name string) Option {
	return func(o *options) {
		if _, ok := codecs[name]; !ok || name == "" {
			o.errs = append(o.errs, fmt.Errorf("compression %q: use gzip or zstd", name))
		}
		o.compression = name
	}
}

// LandTombstones makes a line of a null value, with null in it. Without it null values are counted and make no line.
func LandTombstones() Option { return func(o *options) { o.tombstones = true } }

// Check looks at each record before it lands: one for which f returns an error is rejected. Rejects are counted in the manifest, and go to
// the processing-error handler as f's error, in a *sink.RowError. key and value are nil for a Kafka null, and must not be kept. K and V
// must be the stream's types.
func Check[K, V any](f func(key *K, value *V, meta *sink.Meta) error) Option {
	return func(o *options) {
		if o.check != nil {
			o.errs = append(o.errs, errors.New("a landing has one check: put them into one function"))
			return
		}
		o.checkTypes = [2]reflect.Type{reflect.TypeFor[K](), reflect.TypeFor[V]()}
		o.check = func(key, value any, meta *sink.Meta) error {
			k, _ := key.(*K)
			v, _ := value.(*V)
			return f(k, v, meta)
		}
	}
}

// Store lands in a store that is given, in place of one found by the place: for tests.
func Store(s object.Store) Option { return func(o *options) { o.store = s } }

// landing is what Sink returns. It is bound once, when the topology is built, and may be opened by many instances.
type landing struct {
	place string
	opts  options
	bound bool
}

// Sink makes a sink of JSON Lines. place is the path of a folder, or a URL that object.Open knows: file:///path, and s3://bucket/folder in
// programs that import package lake/object/s3store. A place takes one sink: another application's, or another sink's, is refused.
//
// A value of type []byte or json.RawMessage is JSON text, which is landed as it is, without white space between its tokens; one that is
// not JSON is rejected. Any other value is what encoding/json makes of it. A key of type string becomes a JSON string; []byte does in
// base64, as encoding/json has it.
func Sink(place string, opts ...Option) sink.Sink {
	l := &landing{place: place}
	for _, o := range opts {
		o(&l.opts)
	}
	return l
}

// String implements sink.Sink.
func (l *landing) String() string { return "jsonl:" + l.place }

// Bind implements sink.Sink.
func (l *landing) Bind(key, value reflect.Type) error {
	errs := l.opts.errs
	for what, t := range map[string]reflect.Type{"keys": key, "values": value} {
		if why := unfit(t); why != "" {
			errs = append(errs, fmt.Errorf("%s of type %v: %s", what, t, why))
		}
	}
	if c := l.opts.checkTypes; l.opts.check != nil && c != [2]reflect.Type{key, value} {
		errs = append(errs, fmt.Errorf("the check is for %v and %v, the stream has %v and %v", c[0], c[1], key, value))
	}
	if len(errs) > 0 {
		return fmt.Errorf("landing %s can't hold the stream's rows:\n%w", l.place, errors.Join(errs...))
	}
	l.bound = true
	return nil
}

// unfit says why values of a type have no JSON; "" if they have.
func unfit(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return "they can't be written as JSON"
	}
	return ""
}

// CheckRow implements sink.Checker.
func (l *landing) CheckRow(key, value any, meta *sink.Meta) error {
	if l.opts.check == nil {
		return nil
	}
	if isNull(value) {
		value = nil
	}
	if err := l.opts.check(key, value, meta); err != nil {
		return &sink.RowError{Err: err}
	}
	return nil
}

// Open implements sink.Sink.
func (l *landing) Open(ctx context.Context, env sink.Env) (sink.Writer, error) {
	if !l.bound {
		return nil, fmt.Errorf("landing %s is opened before it is bound to the stream's types", l.place)
	}
	return openWriter(ctx, l, env)
}
