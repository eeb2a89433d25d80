package state

import "fmt"

// Stores finds stores by name. DB and View implement it. A store of another kind, or none, is a *LookupError.
type Stores interface {
	// KeyValueBytes finds a store of kind KeyValue or TimestampedKeyValue.
	KeyValueBytes(name string) (KeyValueBytes, error)
	// WindowBytes finds a store of kind Window or TimestampedWindow.
	WindowBytes(name string) (WindowBytes, error)
	// SessionBytes finds a store of kind Session.
	SessionBytes(name string) (SessionBytes, error)
	// VersionedBytes finds a store of kind Versioned.
	VersionedBytes(name string) (VersionedBytes, error)
	// Spec gives the declaration of the store.
	Spec(name string) (Spec, bool)
}

// LookupError says that there is no such store, or that it is of another kind than the one asked for.
type LookupError struct {
	Store string
	Want  string
	Got   Kind // 0 if there is no such store
}

func (e *LookupError) Error() string {
	if e.Got == 0 {
		return fmt.Sprintf("no store %q in this task: connect it to the processor that uses it", e.Store)
	}
	return fmt.Sprintf("store %q is of kind %s, not %s", e.Store, e.Got, e.Want)
}

// checkKind fails unless the store is exactly of that kind. A typed facade over another kind would show timestamps as values.
func checkKind(s Stores, name string, want Kind) error {
	spec, ok := s.Spec(name)
	if !ok {
		return &LookupError{Store: name, Want: want.String()}
	}
	if spec.Kind != want {
		return &LookupError{Store: name, Want: want.String(), Got: spec.Kind}
	}
	return nil
}
