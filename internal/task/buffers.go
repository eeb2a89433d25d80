package task

import (
	"fmt"

	"github.com/tributary-io/tributary/state"
)

// bufferDB is a DB that has the stores which joins and suppression keep to themselves (see processors.BufferStores).
type bufferDB interface {
	JoinList(name string) (state.JoinListBytes, error)
	ChangeBuffer(name string) (state.ChangeBuffer, error)
	RecordBuffer(name string) (state.RecordBuffer, error)
}

func (s *nodeStores) buffers(name string) (bufferDB, error) {
	in, err := s.find(name)
	if err != nil {
		return nil, err
	}
	db, ok := in.(bufferDB)
	if !ok {
		return nil, fmt.Errorf("internal: %T has no buffers", in)
	}
	return db, nil
}

func (s *nodeStores) JoinList(name string) (state.JoinListBytes, error) {
	db, err := s.buffers(name)
	if err != nil {
		return nil, err
	}
	return db.JoinList(name)
}

func (s *nodeStores) ChangeBuffer(name string) (state.ChangeBuffer, error) {
	db, err := s.buffers(name)
	if err != nil {
		return nil, err
	}
	return db.ChangeBuffer(name)
}

func (s *nodeStores) RecordBuffer(name string) (state.RecordBuffer, error) {
	db, err := s.buffers(name)
	if err != nil {
		return nil, err
	}
	return db.RecordBuffer(name)
}
