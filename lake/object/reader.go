package object

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync/atomic"
)

// wholeObject is the size up to which a Reader fetches an object in one request.
const wholeObject = 8 << 20

// Reader reads one object at any place, as libraries of file formats want it: piece by piece, or held whole in memory if it is small.
// It is used by one goroutine, except that ReadAt may be called concurrently.
type Reader struct {
	ctx   context.Context
	store Store
	name  string
	size  int64
	pos   int64
	whole *bytes.Reader
	err   atomic.Pointer[error]
}

// OpenReader starts to read an object. size is what its listing or its table says, 0 if that isn't known: it only decides on how the object
// is fetched. ctx holds for all that is read.
func OpenReader(ctx context.Context, s Store, name string, size int64) (*Reader, error) {
	r := &Reader{ctx: ctx, store: s, name: name}
	if size > wholeObject {
		info, err := s.Stat(ctx, name)
		r.size = info.Size
		return r, err
	}
	data, err := s.Get(ctx, name)
	r.whole, r.size = bytes.NewReader(data), int64(len(data))
	return r, err
}

// Err returns the store's error, if there was one: libraries don't always pass it on.
func (r *Reader) Err() error {
	if err := r.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Size is the object's size in bytes.
func (r *Reader) Size() int64 { return r.size }

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(p []byte, off int64) (int, error) {
	if r.whole != nil {
		return r.whole.ReadAt(p, off)
	}
	data, err := r.store.GetRange(r.ctx, r.name, off, int64(len(p)))
	if err != nil {
		r.err.Store(&err)
		return 0, err
	}
	n := copy(p, data)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.ReadAt(p, r.pos)
	r.pos += int64(n)
	return n, err
}

// Seek implements io.Seeker.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.pos
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek before the start of %s", r.name)
	}
	r.pos = offset
	return offset, nil
}
