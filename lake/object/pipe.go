package object

import (
	"context"
	"io"
)

// NewPipe makes the Writer of a store whose client reads what it uploads: upload runs beside the writer until it has read everything or
// its context ends, and makes the object only in the first case. fail makes the store's errors of the client's.
func NewPipe(ctx context.Context, upload func(context.Context, io.Reader) error, fail func(operation string, err error) error) Writer {
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	p := &pipe{w: w, fail: fail, cancel: cancel, done: make(chan error, 1)}
	go func() {
		err := upload(ctx, r)
		end := err
		if end == nil {
			end = io.ErrClosedPipe
		}
		_ = r.CloseWithError(end) // always nil; a writer that goes on learns of it
		p.done <- err
	}()
	return p
}

type pipe struct {
	w      *io.PipeWriter
	fail   func(string, error) error
	cancel context.CancelFunc
	done   chan error
	closed bool
}

func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	return n, p.fail("write", err)
}

func (p *pipe) Close() error {
	p.closed = true
	defer p.cancel()
	_ = p.w.Close() // always nil
	return p.fail("close", <-p.done)
}

func (p *pipe) Abort() {
	if p.closed {
		return
	}
	p.closed = true
	p.cancel()
	_ = p.w.CloseWithError(context.Canceled) // always nil
	<-p.done
}
