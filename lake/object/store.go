package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Store is a place for objects. Names are relative to the store's root, separated by slashes, without empty parts, "." or
// ".."; whoever makes names keeps them to ASCII. All methods may be called concurrently.
//
// Errors wrap ErrNotFound, ErrExists, ErrNoSpace, ErrUnknown or fs.ErrPermission where they apply and name the object.
type Store interface {
	// String names the store for people: a path or an URL, never with credentials.
	String() string

	// PutIfAbsent stores data under name, atomically and durably, if nothing is stored there yet. The outcomes:
	//   - nil: this call stored it.
	//   - ErrExists: an object of that name is there. It may still be this caller's, from an earlier call (or a retry inside
	//     the client) whose reply was lost: read it and compare.
	//   - ErrUnknown: it may be stored now, later, or never. Read it back; if it is absent, put the same bytes again.
	//   - any other error: this call stored nothing.
	PutIfAbsent(ctx context.Context, name string, data []byte) error
	// Put stores data under name, atomically and durably, replacing what is there.
	Put(ctx context.Context, name string, data []byte) error
	// Create starts a new object under a name that nobody else uses (it holds a UUID). See Writer.
	Create(ctx context.Context, name string) (Writer, error)
	// Sync makes objects written with Create durable. It must be called before anything durable refers to them. Many names
	// in one call cost less than many calls.
	Sync(ctx context.Context, names ...string) error

	// Get returns the whole object.
	Get(ctx context.Context, name string) ([]byte, error)
	// GetRange returns up to n bytes from offset off; fewer only at the object's end.
	GetRange(ctx context.Context, name string, off, n int64) ([]byte, error)
	// Stat returns the object's size and time.
	Stat(ctx context.Context, name string) (Info, error)
	// List yields the objects whose names start with prefix and are greater than after ("" for all), in the byte order of
	// their names. It reads ahead page by page, so stopping early is cheap.
	List(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
	// Delete removes the object. One that isn't there is no error.
	Delete(ctx context.Context, name string) error
}

// Writer writes one object. It is used by one goroutine.
type Writer interface {
	io.Writer
	// Close completes the object: it can be read after Close returns nil. It is durable only after Store.Sync.
	Close() error
	// Abort drops the object as far as possible. It may be called after Close, when it does nothing.
	Abort()
}

// Info describes an object.
type Info struct {
	Name     string
	Size     int64     // bytes
	Modified time.Time // by the store's clock
}

// Errors that callers act upon. Test with errors.Is.
var (
	ErrNotFound = errors.New("object not found")
	ErrExists   = errors.New("object exists")
	ErrNoSpace  = errors.New("no space left in the object store")
	ErrUnknown  = errors.New("outcome unknown")
)

// Error is what a store returns: what was tried, on which object, and why it failed.
type Error struct {
	Op    string // "put if absent", "get", …
	Store string
	Name  string
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s in %s: %v", e.Op, e.Name, e.Store, e.Err) }

func (e *Error) Unwrap() error { return e.Err }
