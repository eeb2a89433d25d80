package state

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// JoinListBytes is the store of unmatched records that both sides of a left or outer stream-stream join share: a list of values for
// each key. Keys are made by AppendJoinKey, so that scans go by time, and values by AppendSideValue.
type JoinListBytes interface {
	// Add appends value to the list of key.
	Add(key, value []byte) error
	// Delete removes the list of key.
	Delete(key []byte) error
	// DeleteIfPresent removes the list of key if there is one; only then does the changelog get a record.
	DeleteIfPresent(key []byte) error
	// All scans all values in the order of their keys, and those of one key in the order in which they were added.
	All() (KeyValueIterator, error)
}

// AppendJoinKey appends the key of a join list: timestamp (8 bytes), 1 for the left side or 0, key.
func AppendJoinKey(dst, key []byte, ts int64, left bool) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(ts))
	return append(append(dst, sideByte(left)), key...)
}

// CutJoinKey takes a key of a join list apart.
func CutJoinKey(b []byte) (key []byte, ts int64, left, ok bool) {
	if len(b) < 9 || b[8] > 1 {
		return nil, 0, false, false
	}
	return b[9:], int64(binary.BigEndian.Uint64(b)), b[8] == 1, true
}

// AppendSideValue appends a value of a join list: 1 for the left side or 0, value.
func AppendSideValue(dst, value []byte, left bool) []byte {
	return append(append(dst, sideByte(left)), value...)
}

// CutSideValue takes a value of a join list apart.
func CutSideValue(b []byte) (value []byte, left, ok bool) {
	if len(b) < 1 || b[0] > 1 {
		return nil, false, false
	}
	return b[1:], b[0] == 1, true
}

func sideByte(left bool) byte {
	if left {
		return 1
	}
	return 0
}

// The list of a key is laid out as Kafka's ListSerializer does for values of varying size: 1, the number of values (4 bytes), and for each
// its length (4 bytes) and itself.

const (
	listOfVaryingSize = 1
	listHead          = 5
)

// ErrList marks bytes that are no list of values.
var ErrList = errors.New("state: malformed list of values")

// appendToList appends value to an encoded list, which may be empty.
func appendToList(list, value []byte) ([]byte, error) {
	if len(list) == 0 {
		list = append(list, listOfVaryingSize, 0, 0, 0, 0)
	}
	if len(list) < listHead || list[0] != listOfVaryingSize {
		return nil, fmt.Errorf("%d bytes: %w", len(list), ErrList)
	}
	n := binary.BigEndian.Uint32(list[1:])
	binary.BigEndian.PutUint32(list[1:], n+1)
	return append(appendInt32(list, int32(len(value))), value...), nil
}

// checkList takes the head off a list.
func checkList(list []byte) (n uint32, values []byte, err error) {
	if len(list) < listHead || list[0] != listOfVaryingSize {
		return 0, nil, fmt.Errorf("%d bytes: %w", len(list), ErrList)
	}
	return binary.BigEndian.Uint32(list[1:]), list[listHead:], nil
}

// cutListValue takes the next value off a list without its head.
func cutListValue(values []byte) (value, rest []byte, err error) {
	d := decoder{b: values}
	value = d.take(int(d.int32()))
	if d.failed {
		return nil, nil, fmt.Errorf("value within %d bytes: %w", len(values), ErrList)
	}
	return value, d.b, nil
}

// joinList implements JoinListBytes on a plain key-value layout.
type joinList struct {
	keyValue
}

// Add implements JoinListBytes.
func (s *joinList) Add(key, value []byte) error {
	list, _, _, err := s.Get(key, s.val[:0])
	if err != nil {
		return err
	}
	if list, err = appendToList(list, value); err != nil {
		return fmt.Errorf("store %q: %w", s.spec.Name, err)
	}
	s.val = list
	return s.Put(key, list, 0)
}

// Delete implements JoinListBytes.
func (s *joinList) Delete(key []byte) error { return s.Put(key, nil, 0) }

// DeleteIfPresent implements JoinListBytes.
func (s *joinList) DeleteIfPresent(key []byte) error {
	list, _, ok, err := s.Get(key, s.val[:0])
	if err != nil || !ok {
		return err
	}
	s.val = list
	return s.Put(key, nil, 0)
}

// All implements JoinListBytes.
func (s *joinList) All() (KeyValueIterator, error) {
	lists, err := s.Range(nil, nil)
	if err != nil {
		return nil, err
	}
	return &joinListIterator{lists: lists}, nil
}

// joinListIterator walks over the values of lists.
type joinListIterator struct {
	lists  KeyValueIterator
	left   uint32
	values []byte
	value  []byte
	failed error
}

func (it *joinListIterator) Next() bool {
	if it.failed != nil {
		return false
	}
	for it.left == 0 {
		if !it.lists.Next() {
			return false
		}
		if it.left, it.values, it.failed = checkList(it.lists.Value()); it.failed != nil {
			return false
		}
	}
	it.left--
	it.value, it.values, it.failed = cutListValue(it.values)
	return it.failed == nil
}

func (it *joinListIterator) Key() []byte      { return it.lists.Key() }
func (it *joinListIterator) Value() []byte    { return it.value }
func (it *joinListIterator) Timestamp() int64 { return 0 }

func (it *joinListIterator) Err() error {
	if it.failed != nil {
		return it.failed
	}
	return it.lists.Err()
}

func (it *joinListIterator) Close() error {
	err := it.lists.Close()
	if it.failed != nil {
		return it.failed
	}
	return err
}
