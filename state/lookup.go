package state

// This file finds stores by name, for the task (DB) and for queries (View).

// newKind makes the implementation of a store's kind.
func newKind(s *store, readOnly bool) kindOps {
	a := access{store: s, readOnly: readOnly}
	switch s.spec.Kind {
	case Window, TimestampedWindow:
		return &window{access: a}
	case Session:
		return &session{access: a}
	case Versioned:
		return &versioned{access: a}
	case JoinList:
		return &joinList{keyValue{access: a}}
	case SuppressBuffer:
		return &changeBuffer{access: a}
	case JoinBuffer:
		return &recordBuffer{access: a}
	}
	return &keyValue{access: a}
}

// findKind finds a store whose implementation is a T.
func findKind[T any](db *DB, name, want string, readOnly bool) (t T, err error) {
	s := db.byName[name]
	if s == nil {
		return t, &LookupError{Store: name, Want: want}
	}
	impl := s.impl
	if readOnly {
		impl = newKind(s, true) // with buffers of its own
	}
	t, ok := impl.(T)
	if !ok || s.spec.Kind == JoinList && want != JoinList.String() {
		return t, &LookupError{Store: name, Want: want, Got: s.spec.Kind}
	}
	return t, nil
}

// KeyValueBytes finds a store of kind KeyValue or TimestampedKeyValue.
func (db *DB) KeyValueBytes(name string) (KeyValueBytes, error) {
	return findKind[KeyValueBytes](db, name, "keyValue or timestampedKeyValue", false)
}

// WindowBytes finds a store of kind Window or TimestampedWindow.
func (db *DB) WindowBytes(name string) (WindowBytes, error) {
	return findKind[WindowBytes](db, name, "window or timestampedWindow", false)
}

// SessionBytes finds a store of kind Session.
func (db *DB) SessionBytes(name string) (SessionBytes, error) {
	return findKind[SessionBytes](db, name, "session", false)
}

// VersionedBytes finds a store of kind Versioned.
func (db *DB) VersionedBytes(name string) (VersionedBytes, error) {
	return findKind[VersionedBytes](db, name, "versioned", false)
}

// JoinList finds a store of kind JoinList.
func (db *DB) JoinList(name string) (JoinListBytes, error) {
	return findKind[JoinListBytes](db, name, JoinList.String(), false)
}

// ChangeBuffer finds a store of kind SuppressBuffer.
func (db *DB) ChangeBuffer(name string) (ChangeBuffer, error) {
	return findKind[ChangeBuffer](db, name, SuppressBuffer.String(), false)
}

// RecordBuffer finds a store of kind JoinBuffer.
func (db *DB) RecordBuffer(name string) (RecordBuffer, error) {
	return findKind[RecordBuffer](db, name, JoinBuffer.String(), false)
}

// KeyValueBytes finds a store of kind KeyValue or TimestampedKeyValue.
func (v *View) KeyValueBytes(name string) (KeyValueBytes, error) {
	return findKind[KeyValueBytes](v.db, name, "keyValue or timestampedKeyValue", true)
}

// WindowBytes finds a store of kind Window or TimestampedWindow.
func (v *View) WindowBytes(name string) (WindowBytes, error) {
	return findKind[WindowBytes](v.db, name, "window or timestampedWindow", true)
}

// SessionBytes finds a store of kind Session.
func (v *View) SessionBytes(name string) (SessionBytes, error) {
	return findKind[SessionBytes](v.db, name, "session", true)
}

// VersionedBytes finds a store of kind Versioned.
func (v *View) VersionedBytes(name string) (VersionedBytes, error) {
	return findKind[VersionedBytes](v.db, name, "versioned", true)
}
