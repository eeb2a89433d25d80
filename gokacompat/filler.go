package gokacompat

import (
	"fmt"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// filler keeps a table of another topic: the last value of each key, where a null deletes it.
type filler struct {
	store string
	rows  state.KeyValueBytes
}

// none is what a filler sends.
type none = []byte

func newFiller(store string) func() processors.Processor[[]byte, []byte, none, none] {
	return func() processors.Processor[[]byte, []byte, none, none] { return &filler{store: store} }
}

func (f *filler) Init(ctx processors.ProcessorContext[none, none]) (err error) {
	f.rows, err = ctx.Stores().KeyValueBytes(f.store)
	return err
}

func (f *filler) Process(r *processors.Record[[]byte, []byte]) error {
	if err := f.rows.Put(filled(r.Key), r.Value, r.Timestamp); err != nil {
		return &storeError{fmt.Errorf("store %s: %w", f.store, err)}
	}
	return nil
}

func (f *filler) Close() error { return nil }

// filled makes an empty key of a null one, as goka reads it.
func filled(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// storeError is an error that isn't the record's: no handler may skip it.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }
func (e *storeError) Fatal()        {}
