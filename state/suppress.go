package state

import (
	"errors"
	"fmt"
)

// ChangeBuffer holds back changes of a table, one per key, ordered by time: the buffer of suppress. A key that is buffered already
// keeps its place when its change is replaced. Its changelog is that of Kafka Streams' InMemoryTimeOrderedKeyValueChangeBuffer: what
// the keys touched since the last commit have come to, as of the commit.
type ChangeBuffer interface {
	// Put buffers the change old -> new of key. c is the record that brought it.
	Put(time int64, key, old, new []byte, c *Context) error
	// Prior appends to dst the value of key that was passed on before its buffered change. buffered is false if key is not in the
	// buffer; value is nil if nothing was passed on.
	Prior(key, dst []byte) (value []byte, buffered bool, err error)
	// EvictWhile takes changes out, in the order of time and key, as long as the condition holds, and calls emit with each before
	// it leaves the buffer. What emit is given is valid until it returns.
	EvictWhile(condition func() bool, emit func(*BufferedChange) error) error
	// NumRecords and Bytes are the size of the buffer as suppression limits count it.
	NumRecords() int64
	Bytes() int64
	// MinTime is the time of the first change, math.MaxInt64 if there is none.
	MinTime() int64
}

// BufferedChange is a change that leaves a buffer.
type BufferedChange struct {
	Time int64
	Key  []byte
	BufferValue
}

// changeBuffer implements ChangeBuffer:
//
//	plain:   user key -> time
//	by time: time | user key -> buffer value, time (the changelog's value)
//
// The number of records and bytes are kept in the store's meta.
type changeBuffer struct {
	access
	dirty   dirtyKeys
	minTime int64
	enc     []byte
	key     []byte
}

func (s *changeBuffer) timeKey(key []byte) []byte {
	s.row = append(appendPrefix(s.row[:0], s.id, classPlain), key...)
	return s.row
}

func (s *changeBuffer) valueKey(time int64, key []byte) []byte {
	s.row2 = append(appendOrdered(appendPrefix(s.row2[:0], s.id, classByTime), time), key...)
	return s.row2
}

// lookup gives the time of a buffered key and its change, which is valid until the next call.
func (s *changeBuffer) lookup(key []byte) (time int64, v BufferValue, ok bool, err error) {
	buf, ok, err := s.getRow(s.timeKey(key), s.low[:0])
	if err != nil || !ok {
		return 0, v, false, err
	}
	s.low = buf
	if len(buf) != 8 {
		return 0, v, false, s.errRow(s.row)
	}
	time = getTS(buf)
	s.val, ok, err = s.getRow(s.valueKey(time, key), s.val[:0])
	if err != nil {
		return 0, v, false, err
	}
	if !ok {
		return 0, v, false, fmt.Errorf("store %q: a buffered key has no value: %w", s.spec.Name, ErrCorruption)
	}
	v, _, err = DecodeBufferValue(s.val)
	return time, v, err == nil, err
}

// Put implements ChangeBuffer.
func (s *changeBuffer) Put(time int64, key, old, new []byte, c *Context) error {
	if err := s.writableAt(time); err != nil {
		return err
	}
	v := BufferValue{Context: *c, Prior: old, Old: old, New: new}
	at, before, buffered, err := s.lookup(key)
	if err != nil {
		return err
	}
	if buffered {
		time, v.Prior = at, before.Prior
		s.cur.bytes -= bufferTimeBytes + before.residentBytes(len(key))
	}
	s.enc = appendOrderedTime(AppendBufferValue(s.enc[:0], &v), time)
	if err := s.putRows(time, key, s.enc, &v, buffered); err != nil {
		return err
	}
	s.dirty.add(key)
	return nil
}

// appendOrderedTime appends a buffer time as changelog values carry it.
func appendOrderedTime(dst []byte, time int64) []byte {
	var b [8]byte
	return append(dst, putTS(&b, time)...)
}

// putRows writes a change. A key that was buffered must have been subtracted from the size.
func (s *changeBuffer) putRows(time int64, key, encoded []byte, v *BufferValue, buffered bool) error {
	if !buffered {
		if _, err := s.write(s.timeKey(key), nil, putTS(&s.headBuffer, time)); err != nil {
			return err
		}
		s.cur.records++
		s.minTime = min(s.minTime, time)
	}
	if _, err := s.write(s.valueKey(time, key), nil, encoded); err != nil {
		return err
	}
	s.cur.bytes += bufferTimeBytes + v.residentBytes(len(key))
	return nil
}

func (s *changeBuffer) remove(time int64, key []byte, v *BufferValue) error {
	if _, err := s.write(s.timeKey(key), nil, nil); err != nil {
		return err
	}
	if _, err := s.write(s.valueKey(time, key), nil, nil); err != nil {
		return err
	}
	s.cur.records--
	s.cur.bytes -= bufferTimeBytes + v.residentBytes(len(key))
	return nil
}

// Prior implements ChangeBuffer.
func (s *changeBuffer) Prior(key, dst []byte) (value []byte, buffered bool, err error) {
	_, v, ok, err := s.lookup(key)
	if err != nil || !ok {
		return nil, false, err
	}
	if v.Prior == nil {
		return nil, true, nil
	}
	return notNil(append(dst, v.Prior...)), true, nil
}

// EvictWhile implements ChangeBuffer.
func (s *changeBuffer) EvictWhile(condition func() bool, emit func(*BufferedChange) error) error {
	if !condition() || s.cur.records == 0 {
		return nil
	}
	if err := s.writable(); err != nil {
		return err
	}
	it, err := s.scan()
	if err != nil {
		return err
	}
	defer it.close()
	var e BufferedChange
	for next := it.next(); next && condition(); {
		if err := s.decode(it, &e); err != nil {
			return err
		}
		if err := emit(&e); err != nil {
			return err
		}
		if err := s.remove(e.Time, e.Key, &e.BufferValue); err != nil {
			return err
		}
		s.dirty.add(e.Key)
		if next = it.next(); next {
			s.minTime = ordered(it.key()[prefixLen:])
		} else {
			s.minTime = maxTime
		}
	}
	return it.close()
}

// scan walks over the changes in the order of time.
func (s *changeBuffer) scan() (*cursor, error) {
	it := &cursor{}
	if err := it.init(s.store, s.readOnly); err != nil {
		return nil, err
	}
	it.reset(appendPrefix(nil, s.id, classByTime), appendPrefix(nil, s.id, classByTime+1), false, false)
	return it, nil
}

// decode gives the change that the cursor is on; its key is copied, since the cursor moves on before the key is done with.
func (s *changeBuffer) decode(it *cursor, e *BufferedChange) error {
	row := it.key()
	if len(row) < segmentEnd {
		return s.errRow(row)
	}
	e.Time = ordered(row[prefixLen:])
	s.key = append(s.key[:0], row[segmentEnd:]...)
	e.Key = s.key
	v, _, err := DecodeBufferValue(it.value())
	if err != nil {
		return fmt.Errorf("store %q: %w", s.spec.Name, errors.Join(err, ErrCorruption))
	}
	e.BufferValue = v
	return nil
}

// NumRecords implements ChangeBuffer.
func (s *changeBuffer) NumRecords() int64 { return s.cur.records }

// Bytes implements ChangeBuffer.
func (s *changeBuffer) Bytes() int64 { return s.cur.bytes }

// MinTime implements ChangeBuffer.
func (s *changeBuffer) MinTime() int64 { return s.minTime }

func (s *changeBuffer) changelogKey(row []byte, _ *[]byte) []byte { return row[prefixLen:] }

// seal logs what became of the keys touched.
func (s *changeBuffer) seal() error {
	keys := s.dirty.take()
	if !s.logs() {
		return nil
	}
	for _, key := range keys {
		_, _, ok, err := s.lookup(key)
		if err != nil {
			return err
		}
		var value []byte
		if ok {
			value = s.val
		}
		if err := s.open.logRaw(key, value, NoTimestamp, ok); err != nil {
			return err
		}
	}
	return nil
}

func (s *changeBuffer) dropped() error {
	s.dirty.take()
	s.minTime = maxTime
	it, err := s.scan()
	if err != nil {
		return err
	}
	if it.next() {
		s.minTime = ordered(it.key()[prefixLen:])
	}
	return it.close()
}

// restore puts a changelog record of format 3, the one that Kafka Streams has written since 2.6.
func (s *changeBuffer) restore(r *RestoreRecord) error {
	at, before, buffered, err := s.lookup(r.Key)
	if err != nil {
		return err
	}
	if r.Value == nil {
		if !buffered {
			return nil
		}
		if err := s.remove(at, r.Key, &before); err != nil {
			return err
		}
		return s.refreshMinTime(at)
	}
	if err := checkBufferVersion(r.Headers); err != nil {
		return err
	}
	v, rest, err := DecodeBufferValue(r.Value)
	if err != nil {
		return err
	}
	if len(rest) != bufferTimeBytes {
		return fmt.Errorf("%d bytes after the value, not %d: %w", len(rest), bufferTimeBytes, ErrBufferValue)
	}
	return s.replace(getTS(rest), at, &before, buffered, r, &v)
}

// replace puts a restored change. Its time is the one that counts: it differs from that of the change before it where the key left the
// buffer and came back between two commits.
func (s *changeBuffer) replace(time, at int64, before *BufferValue, buffered bool, r *RestoreRecord, v *BufferValue) error {
	if buffered && at == time {
		s.cur.bytes -= bufferTimeBytes + before.residentBytes(len(r.Key))
		return s.putRows(time, r.Key, r.Value, v, true)
	}
	if buffered {
		if err := s.remove(at, r.Key, before); err != nil {
			return err
		}
		if err := s.refreshMinTime(at); err != nil {
			return err
		}
	}
	return s.putRows(time, r.Key, r.Value, v, false)
}

func checkBufferVersion(headers []Header) error {
	for i := len(headers) - 1; i >= 0; i-- {
		if h := headers[i]; h.Key == "v" {
			if len(h.Value) == 1 && h.Value[0] == 3 {
				return nil
			}
			return fmt.Errorf("format version %v of a suppress changelog, only 3 is supported: %w", h.Value, ErrBufferValue)
		}
	}
	return fmt.Errorf("a suppress changelog record has no format version: %w", ErrBufferValue)
}

// refreshMinTime finds the first change after one at time was removed.
func (s *changeBuffer) refreshMinTime(time int64) error {
	if time > s.minTime {
		return nil
	}
	it, err := s.scan()
	if err != nil {
		return err
	}
	s.minTime = maxTime
	if it.next() {
		s.minTime = ordered(it.key()[prefixLen:])
	}
	return it.close()
}
