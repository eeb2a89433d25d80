package object

import "context"

// Open opens the store at a place: a file path, file:///path, mem://name or s3://bucket/prefix?endpoint=…&region=….
func Open(ctx context.Context, place string) (Store, error) { panic("not built yet") }

// NewLocal opens (and creates) a folder as a store.
func NewLocal(dir string) (Store, error) { panic("not built yet") }

// NewMemory makes an empty store in memory.
func NewMemory(name string) Store { panic("not built yet") }

// CheckPutIfAbsent refuses a store whose put-if-absent isn't one.
func CheckPutIfAbsent(ctx context.Context, s Store) error { panic("not built yet") }
