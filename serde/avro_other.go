package serde

import (
	"reflect"
	"unsafe"

	"github.com/twmb/avro"
)

// otherDecoder decodes data into the value that v points to. The whole of data must be the value.
type otherDecoder func(v unsafe.Pointer, data []byte) error

// newOtherDecoder makes a decoder with another library, slower but complete, for the few pairs of schemas that the usual one
// can't read: a field that became nullable, above all.
func newOtherDecoder(reader, writer string, t reflect.Type) (otherDecoder, error) {
	r, err := avro.Parse(reader)
	if err != nil {
		return nil, err
	}
	w, err := avro.Parse(writer)
	if err != nil {
		return nil, err
	}
	resolved, err := avro.Resolve(w, r)
	if err != nil {
		return nil, err
	}
	return func(v unsafe.Pointer, data []byte) error {
		rest, err := resolved.Decode(data, reflect.NewAt(t, v).Interface(), avro.SkipUnknown())
		if err == nil && len(rest) > 0 {
			return errTrailing
		}
		return err
	}, nil
}
