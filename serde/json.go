package serde

import (
	"bytes"
	"encoding/json"
	jsonv2 "encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"github.com/tributary-io/tributary/serde/internal/plainjson"
)

// JSON is a serde of one JSON text a record, by encoding/json and T's tags.
//
// It writes compact text without HTML escapes, maps with sorted keys, so equal values have equal bytes. It reads exactly one
// JSON text; fields that T doesn't have are ignored, unless StrictFields is given. The text `null` is not a Kafka null: it
// gives nil where T is nullable, and is an error elsewhere, since a struct full of zeros would hide it.
//
// Numbers read into an interface are float64 and exact to 2^53 only. A T with an UnmarshalJSON of its own must copy what it
// keeps, as json.Unmarshaler demands.
func JSON[T any](opts ...JSONOption) Serde[T] {
	s := jsonSerde[T]{nullable: Nullable[T](), plan: plainjson.For(reflect.TypeFor[T]())}
	for _, o := range opts {
		o(&s.cfg)
	}
	return s
}

// JSONOption changes how JSON reads.
type JSONOption func(*jsonConfig)

type jsonConfig struct{ strict bool }

// StrictFields makes a field that T doesn't have an error.
func StrictFields() JSONOption { return func(c *jsonConfig) { c.strict = true } }

type jsonSerde[T any] struct {
	cfg      jsonConfig
	nullable bool
	plan     *plainjson.Plan // nil where all is left to encoding/json
}

func (jsonSerde[T]) NonAliasing() {}

func (jsonSerde[T]) Append(dst []byte, v T) ([]byte, error) {
	e := jsonEncoders.Get().(*jsonEncoder)
	e.dst = dst
	err := e.enc.Encode(&v)
	out := e.dst
	e.dst = nil
	jsonEncoders.Put(e)
	if err != nil {
		return dst, fmt.Errorf("JSON of %s: %w", reflect.TypeFor[T](), err)
	}
	return out[:len(out)-1], nil // without the newline that ends each text of a stream
}

func (s jsonSerde[T]) Decode(data []byte) (T, error) {
	if s.plan != nil {
		var v T // not on the heap, unlike what encoding/json writes to
		if s.plan.Decode(data, unsafe.Pointer(&v), s.cfg.strict) {
			return v, nil
		}
	}
	return s.decode(data)
}

// decode leaves the text to encoding/json.
func (s jsonSerde[T]) decode(data []byte) (v T, err error) {
	if !s.nullable && bytes.Equal(bytes.TrimSpace(data), jsonNull) {
		return v, fmt.Errorf("JSON null for %s: declare it as *%[1]s", reflect.TypeFor[T]())
	}
	if s.cfg.strict {
		err = decodeStrict(data, &v)
	} else {
		err = jsonv2.Unmarshal(data, &v, jsonInOnePass)
	}
	if err != nil {
		var zero T // not half a value
		return zero, fmt.Errorf("JSON for %s: %w", reflect.TypeFor[T](), err)
	}
	return v, nil
}

// jsonInOnePass are the rules of encoding/json, but for the pass that it makes over a text beforehand, so that an error leaves its target as it
// was: here the target is thrown away then.
var jsonInOnePass = jsonv2.JoinOptions(json.DefaultOptionsV1(), json.ReportErrorsWithLegacySemantics(false))

var jsonNull = []byte("null")

func decodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		return errors.New("more than one JSON text")
	}
	return nil
}

// jsonEncoder is an encoder whose writer appends to dst, so that the text goes straight behind what the caller has there.
type jsonEncoder struct {
	dst []byte
	enc *json.Encoder
}

func (e *jsonEncoder) Write(p []byte) (int, error) {
	e.dst = append(e.dst, p...)
	return len(p), nil
}

var jsonEncoders = sync.Pool{New: func() any {
	e := &jsonEncoder{}
	e.enc = json.NewEncoder(e)
	e.enc.SetEscapeHTML(false)
	return e
}}
