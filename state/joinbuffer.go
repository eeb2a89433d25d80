package state

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// RecordBuffer holds back the records of a stream that is joined with a table with grace (KIP-923), ordered by time. The semantics are
// those of Kafka Streams' RocksDBTimeOrderedKeyValueBuffer: the records put move its stream time, and Advance does.
type RecordBuffer interface {
	// Put buffers a record. It is false, and does nothing, if the record is older than grace allows.
	Put(key, value []byte, ts int64, c *Context) (ok bool, err error)
	// Evict takes the records out that stream time less grace has reached, in the order of time, key and arrival, and calls emit
	// with each before it leaves the buffer. What emit is given is valid until it returns.
	Evict(emit func(*BufferedRecord) error) error
	// Advance moves stream time on without a record; it never goes back. A buffer restored from its changelog has the time of its records.
	Advance(ts int64)
	// NumRecords is the number of records buffered.
	NumRecords() int64
	// Bytes is the memory that the records buffered would take, as Kafka Streams estimates it.
	Bytes() int64
	// StreamTime is the largest timestamp put, -1 before the first.
	StreamTime() int64
}

// BufferedRecord is a record that leaves a buffer.
type BufferedRecord struct {
	Key     []byte
	Value   []byte
	Context Context
}

// recordBuffer implements RecordBuffer:
//
//	by time: timestamp | user key | sequence number -> buffer value, 8 zero bytes (the changelog's value)
//
// The changelog's key is a zero byte, timestamp, user key and sequence number.
type recordBuffer struct {
	access
	noHooks
	enc []byte
	key []byte
}

const recordBufferTail = 4

func (s *recordBuffer) rowKey(key []byte, ts int64, seq uint32) []byte {
	s.row = append(appendOrdered(appendPrefix(s.row[:0], s.id, classByTime), ts), key...)
	s.row = binary.BigEndian.AppendUint32(s.row, seq)
	return s.row
}

func (s *recordBuffer) changelogKey(row []byte, scratch *[]byte) []byte {
	b := append((*scratch)[:0], 0)
	b = binary.BigEndian.AppendUint64(b, uint64(ordered(row[prefixLen:])))
	*scratch = append(b, row[segmentEnd:]...)
	return *scratch
}

// Put implements RecordBuffer.
func (s *recordBuffer) Put(key, value []byte, ts int64, c *Context) (ok bool, err error) {
	if err := s.writableAt(ts); err != nil {
		return false, err
	}
	if subSaturating(s.cur.streamTime, s.spec.GraceMs) > ts {
		return false, nil
	}
	s.cur.seq = nextSeq(s.cur.seq)
	s.observe(ts)
	v := BufferValue{Context: *c, New: value}
	s.enc = appendOrderedTime(AppendBufferValue(s.enc[:0], &v), 0)
	e, err := s.write(s.rowKey(key, ts, s.cur.seq), nil, s.enc)
	if err != nil {
		return false, err
	}
	s.logRow(e, 0, NoTimestamp)
	s.count(1, len(key), &v)
	return true, nil
}

// Advance implements RecordBuffer.
func (s *recordBuffer) Advance(ts int64) { s.observe(ts) }

// count adds records to the size, whose keys have a prefix, a timestamp and a sequence number.
func (s *recordBuffer) count(n int64, keyLen int, v *BufferValue) {
	s.cur.records += n
	s.cur.bytes += n * v.residentBytes(1+8+keyLen+recordBufferTail)
}

// Evict implements RecordBuffer.
func (s *recordBuffer) Evict(emit func(*BufferedRecord) error) error {
	until := subSaturating(s.cur.streamTime, s.spec.GraceMs)
	if s.cur.records == 0 || until < 0 {
		return nil
	}
	if err := s.writable(); err != nil {
		return err
	}
	it := &cursor{}
	if err := it.init(s.store, false); err != nil {
		return err
	}
	defer it.close()
	low := appendPrefix(nil, s.id, classByTime)
	it.reset(low, appendOrdered(append([]byte(nil), low...), until+1), false, false)
	for it.next() {
		if err := s.evict(it, emit); err != nil {
			return err
		}
	}
	return it.close()
}

func (s *recordBuffer) evict(it *cursor, emit func(*BufferedRecord) error) error {
	row := it.key()
	if len(row) < segmentEnd+recordBufferTail {
		return s.errRow(row)
	}
	v, _, err := DecodeBufferValue(it.value())
	if err != nil {
		return fmt.Errorf("store %q: %w", s.spec.Name, errors.Join(err, ErrCorruption))
	}
	s.key = append(s.key[:0], row...)
	key := s.key[segmentEnd : len(row)-recordBufferTail]
	if err := emit(&BufferedRecord{Key: key, Value: v.New, Context: v.Context}); err != nil {
		return err
	}
	e, err := s.write(s.key, nil, nil)
	if err != nil {
		return err
	}
	s.logRow(e, 0, NoTimestamp)
	s.count(-1, len(key), &v)
	return nil
}

// NumRecords implements RecordBuffer.
func (s *recordBuffer) NumRecords() int64 { return s.cur.records }

// Bytes implements RecordBuffer.
func (s *recordBuffer) Bytes() int64 { return s.cur.bytes }

func (s *recordBuffer) restore(r *RestoreRecord) error {
	if len(r.Key) < 1+8+recordBufferTail || r.Key[0] != 0 {
		return errChangelogKey(r.Key, "join buffer")
	}
	ts := int64(binary.BigEndian.Uint64(r.Key[1:]))
	n := len(r.Key) - recordBufferTail
	key, seq := r.Key[9:n], binary.BigEndian.Uint32(r.Key[n:])
	s.cur.seq = max(s.cur.seq, seq)
	s.observe(ts)
	row := s.rowKey(key, ts, seq)
	before, had, err := s.getRow(row, s.val[:0])
	if err != nil {
		return err
	}
	s.val = before
	if had {
		v, _, err := DecodeBufferValue(before)
		if err != nil {
			return err
		}
		s.count(-1, len(key), &v)
	}
	if r.Value != nil {
		v, _, err := DecodeBufferValue(r.Value)
		if err != nil {
			return err
		}
		s.count(1, len(key), &v)
	}
	_, err = s.write(row, nil, r.Value)
	return err
}
